"""The options that commands share, each with its name and its help; and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from typer import Argument, Option

if TYPE_CHECKING:
    from ...model.task import State

__all__ = ["Shown", "Way", "settings", "shown", "state_of", "target_and_task", "target_and_text", "time_of"]

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


class Shown(Struct, frozen=True):
    """How to tell what came of it."""

    as_json: bool = False
    streams: bool = False
    quiet: bool = False
    raw: bool = False
    exits_by_state: bool = False


def settings(
    target: str | None,
    agent_card: str | None = None,
    header: list[str] | None = None,
    bearer: str | None = None,
    trust: list[str] | None = None,
    timeout: str | None = None,
    store: str | None = None,
    debug: bool = False,
) -> Way:
    """The way that the options describe."""
    headers = {}
    for line in header or ():
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            raise typer.BadParameter(f"{name!r} is not NAME:VALUE", param_hint="'--header'")
        headers[name.strip()] = value.strip()
    if bearer:
        headers.setdefault("Authorization", f"Bearer {bearer}")
    return Way(
        target or agent_card or "",
        headers,
        tuple(trust or ()),
        None if timeout is None else time_of(timeout, "--timeout"),
        store,
        debug,
    )


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
