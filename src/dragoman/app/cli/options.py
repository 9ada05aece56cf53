"""The options that commands share, each with its name and its help; and what they come to."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from msgspec import Struct
from msgspec.structs import replace
from typer import Argument, Option

if TYPE_CHECKING:
    from ...model.task import State

__all__ = [
    "Shown",
    "Way",
    "binding_of",
    "dialect_of",
    "headers_of",
    "reaching",
    "shown",
    "state_of",
    "target_and_task",
    "target_and_text",
    "time_of",
]

Target = Annotated[
    str | None,
    Argument(
        metavar="TARGET", help="An agent's address, as http://host:port. Left out: this machine's node."
    ),
]

# How the agent is reached.

AgentCard = Annotated[
    str | None,
    Option(
        "-a",
        "--agent-card",
        metavar="REF",
        envvar="A2ACLI_AGENT_CARD",
        help="The agent, instead of TARGET.",
    ),
]
Header = Annotated[
    list[str] | None,
    Option("--header", "--svc-param", metavar="NAME:VALUE", help="Send this header along; repeatable."),
]
Bearer = Annotated[
    str | None,
    Option("--bearer", metavar="TOKEN", envvar="A2ACLI_BEARER", help="The credential.", show_default=False),
]
Trust = Annotated[
    list[str] | None,
    Option("--trust", metavar="ORIGIN", help="Another origin that the card may send us to; repeatable."),
]
Dialect = Annotated[
    str,
    Option(
        "--dialect",
        metavar="VERSION",
        envvar="DRAGOMAN_DIALECT",
        help="Speak this version of the protocol, whatever the card says: 1.0, 0.3, 0.2 or 0.1.",
    ),
]
Binding = Annotated[
    str,
    Option(
        "--binding",
        metavar="NAME",
        envvar="A2ACLI_BINDING",
        help="Use this binding, whatever the card prefers: jsonrpc or rest.",
    ),
]
Timeout = Annotated[
    str | None,
    Option(
        "--timeout", metavar="TIME", envvar="A2ACLI_TIMEOUT", help="Give up after this long, as in 30s or 5m."
    ),
]
NodeStore = Annotated[
    str | None,
    Option("--store", metavar="sqlite:PATH", help="Without TARGET: ask the node that has this store open."),
]
ConfigFile = Annotated[
    str | None, Option("--config", metavar="FILE", help="Read this instead of ./dragoman.toml.")
]

# How the answer is shown.

Output = Annotated[str, Option("-o", "--output", metavar="text|json", help="How to answer.")]
Stream = Annotated[bool, Option("--stream", help="Tell events as they happen; with -o json as JSON Lines.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Only what the agent said.")]
Raw = Annotated[bool, Option("--raw", help="Leave control sequences in the agent's text.")]
Debug = Annotated[bool, Option("--debug", help="Log on stderr what is done and what was seen.")]
ExitStatus = Annotated[
    bool,
    Option(
        "--exit-status",
        help="Exit by the task's state: 10 failed, 11 canceled, 12 rejected, 13 input-required, "
        "14 auth-required, 15 not settled.",
    ),
]

# What is said, and to which task.

Text = Annotated[list[str] | None, Option("--text", metavar="TEXT", help="A part of text.")]
File = Annotated[list[str] | None, Option("--file", metavar="PATH|URL", help="A file, or where one is.")]
Value = Annotated[
    list[str] | None,
    Option("--data", metavar="PATH|-|JSON", help="A JSON value: in a file, on stdin, or as it is."),
]
MediaType = Annotated[
    list[str] | None, Option("--media-type", metavar="TYPE", help="What the part before this is.")
]
TaskId = Annotated[
    str, Option("--task-id", metavar="ID", envvar="A2ACLI_TASK_ID", help="Go on with this task.")
]
ContextId = Annotated[
    str,
    Option("--context-id", metavar="ID", envvar="A2ACLI_CONTEXT_ID", help="Begin a task in this context."),
]
MessageId = Annotated[
    str, Option("--message-id", metavar="ID", help="The message's own id; the same when you retry.")
]
Key = Annotated[
    str | None,
    Option(
        "--key", metavar="KEY", help="The same message under the same key is one task, however often sent."
    ),
]
Metadata = Annotated[str, Option("--metadata", metavar="JSON", help="An object that goes with the request.")]
Async = Annotated[
    bool,
    Option("--async", "--no-wait", "--return-immediately", help="Do not wait: answer with the task's id."),
]
History = Annotated[
    int | None,
    Option("--history", "--history-length", metavar="N", min=0, help="The newest N messages only."),
]
PollInterval = Annotated[str, Option("--poll-interval", metavar="TIME", help="How often to look.")]


class Way(Struct, frozen=True):
    """How to reach an agent. `target` is empty for the node of this machine."""

    target: str = ""
    headers: dict[str, str] = {}
    trust: tuple[str, ...] = ()
    timeout: float | None = None
    store: str | None = None
    debug: bool = False
    dialect: str = ""
    binding: str = ""

    @property
    def words(self) -> list[str]:
        """What a command says to go the same way, but for credentials."""
        flags = (("--dialect", self.dialect), ("--binding", _BINDING_WORDS.get(self.binding, "")))
        return [self.target] * bool(self.target) + [word for pair in flags if pair[1] for word in pair]

    def to(self, target: str | None) -> Way:
        """The same way to another agent; to the same one if none is named."""
        return replace(self, target=target) if target else self


_BINDING_WORDS = {"JSONRPC": "jsonrpc", "HTTP+JSON": "rest"}

# Nothing said: the node of this machine, as its card says.
NEAR = Way()


class Shown(Struct, frozen=True):
    """How to tell what came of it."""

    as_json: bool = False
    streams: bool = False
    quiet: bool = False
    raw: bool = False
    exits_by_state: bool = False


def reaching(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say how an agent is reached; it gets them as one `way`."""
    hints = get_type_hints(command, include_extras=True)
    own = [
        each.replace(annotation=hints[name])
        for name, each in inspect.signature(command).parameters.items()
        if name != "way"
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in _REACHING.items()
    ]

    @functools.wraps(command)
    def reached(**given: Any) -> None:
        way = _way(**{name: given.pop(name) for name in _REACHING})
        command(**given, way=way)

    everything = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own] + shared
    reached.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    reached.__annotations__ = {each.name: each.annotation for each in everything}
    return reached


_REACHING: dict[str, tuple[Any, Any]] = {
    "timeout": (Timeout, None),
    "agent_card": (AgentCard, None),
    "dialect": (Dialect, ""),
    "binding": (Binding, ""),
    "header": (Header, None),
    "bearer": (Bearer, None),
    "trust": (Trust, None),
    "store": (NodeStore, None),
    "debug": (Debug, False),
}


def _way(
    *,
    timeout: str | None,
    agent_card: str | None,
    dialect: str,
    binding: str,
    header: list[str] | None,
    bearer: str | None,
    trust: list[str] | None,
    store: str | None,
    debug: bool,
) -> Way:
    return Way(
        agent_card or "",
        headers_of(header, bearer),
        tuple(trust or ()),
        None if timeout is None else time_of(timeout, "--timeout"),
        store,
        debug,
        dialect_of(dialect),
        binding_of(binding),
    )


def headers_of(header: list[str] | None, bearer: str | None) -> dict[str, str]:
    """Headers as they were typed, with the credential among them."""
    headers = {}
    for line in header or ():
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            raise typer.BadParameter(f"{name!r} is not NAME:VALUE", param_hint="'--header'")
        headers[name.strip()] = value.strip()
    if bearer:
        headers.setdefault("Authorization", f"Bearer {bearer}")
    return headers


def dialect_of(text: str) -> str:
    """A version of the protocol that was typed."""
    if not text:
        return ""
    from ...wire.versions import LABELS, label_of

    label = label_of(text)
    if label is None:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(LABELS)}", param_hint="'--dialect'")
    return label


def binding_of(text: str) -> str:
    """A binding that was typed, as people or the protocol call it."""
    name = _BINDINGS.get(text.lower().replace("-", "").replace("+", ""))
    if name is None:
        raise typer.BadParameter(f"{text!r} is neither jsonrpc nor rest", param_hint="'--binding'")
    return name


_BINDINGS = {"": "", "jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "httpjson": "HTTP+JSON", "http": "HTTP+JSON"}


def time_of(text: str, option: str) -> float:
    """A span of time that was typed."""
    from ..config import seconds

    try:
        return seconds(text)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong), param_hint=f"'{option}'") from None


def shown(output: str, **more: bool) -> Shown:
    """How to tell, from the options."""
    if output not in ("text", "json"):
        raise typer.BadParameter(f"{output!r} is neither text nor json", param_hint="'--output'")
    return Shown(output == "json", **more)


def target_and_text(
    target: str | None, text: str | None, agent_card: str | None
) -> tuple[str | None, str | None]:
    """`[TARGET] [TEXT]`: a single word is whom to talk to if it can be an address, else what to say."""
    from .places import is_address

    if target is not None and text is None and (agent_card is not None or not is_address(target)):
        return None, target
    return target, text


def target_and_task(target: str | None, task_id: str | None) -> tuple[str | None, str]:
    """`[TARGET] TASK_ID`: a single word is the task."""
    if target is None:
        raise typer.BadParameter("which task?", param_hint="'TASK_ID'")
    return (None, target) if task_id is None else (target, task_id)


def state_of(word: str) -> State | None:
    """A state as people or the protocol write it."""
    from ...model.task import State

    if not word:
        return None
    for state in State:
        if word.lower().replace("_", "-") in (state.word, state.value.lower().replace("_", "-")):
            return state
    words = ", ".join(state.word for state in State)
    raise typer.BadParameter(f"{word!r} is none of {words}", param_hint="'--state'")
