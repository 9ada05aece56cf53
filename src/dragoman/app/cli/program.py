"""What can be typed: each command with its options. What it does is in the files beside this one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Argument, Option

from . import options as o
from .nodes import add_node_commands
from .parts import InOrder
from .tasks import tasks

__all__ = ["app", "run"]

app = typer.Typer(
    name="dragoman",
    help="Serve agents over A2A, and talk to anybody's.",
    epilog="Begin with: dragoman up",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cards = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What agents say of themselves.")
add_node_commands(app)
app.add_typer(cards, name="card")
app.add_typer(tasks, name="task")


@app.command(
    cls=InOrder,
    epilog="""\b
Examples:
  dragoman send http://127.0.0.1:8420 "plan a picnic" --stream
  dragoman send https://their.agent --file scan.bin --media-type image/png
  dragoman send http://127.0.0.1:8420 "six of us" --task-id 01a1… -o json""",
)
@o.reaching
def send(
    ctx: typer.Context,
    target: o.Target = None,
    words: Annotated[str | None, Argument(metavar="TEXT", help="What to say; - reads it from stdin.")] = None,
    text: o.Text = None,
    file: o.File = None,
    data: o.Value = None,
    media_type: o.MediaType = None,
    task_id: o.TaskId = "",
    context_id: o.ContextId = "",
    message_id: o.MessageId = "",
    key: o.Key = None,
    metadata: o.Metadata = "",
    history: o.History = None,
    returns_at_once: o.Async = False,
    stream: o.Stream = False,
    output: o.Output = "text",
    quiet: o.Quiet = False,
    raw: o.Raw = False,
    exit_status: o.ExitStatus = False,
    way: o.Way = o.NEAR,
) -> None:
    """Say something to an agent, and wait until it has answered or asks back."""
    from . import asking
    from .parts import as_object, parts_of
    from .reaching import run
    from .seen import Seen

    how = o.shown(output, streams=stream, quiet=quiet, raw=raw, exits_by_state=exit_status)
    target, words = o.target_and_text(target, words, way.target or None)
    way = way.to(target)
    given = {"text": text, "file": file, "data": data, "media_type": media_type}
    parts = parts_of(words, ctx.meta["order"], given)
    seen = Seen(way, task_id)
    work = asking.send(
        seen,
        how,
        parts,
        task_id=task_id,
        context_id=context_id,
        message_id=message_id,
        key=key,
        metadata=as_object(metadata, "--metadata") if metadata else None,
        history=history,
        waits=not returns_at_once,
    )
    raise typer.Exit(run(work, seen))


@cards.callback()
def _cards() -> None:
    """What agents say of themselves."""


@cards.command("get", epilog="Example: dragoman card get http://127.0.0.1:8420 -o json")
@o.reaching
def card_get(
    target: o.Target = None,
    output: o.Output = "text",
    raw: o.Raw = False,
    way: o.Way = o.NEAR,
) -> None:
    """Show an agent's card."""
    from . import asking
    from .reaching import run
    from .seen import Seen

    seen = Seen(way.to(target))
    raise typer.Exit(run(asking.card(seen, o.shown(output, raw=raw)), seen))


@cards.command(
    "check",
    epilog="""\b
Examples:
  dragoman card check http://127.0.0.1:8420
  dragoman card check https://their.agent -o json --no-calls""",
)
@o.reaching
def card_check(
    target: o.Target = None,
    no_calls: Annotated[
        bool, Option("--no-calls", help="Look at the card only; ask none of its interfaces.")
    ] = False,
    output: o.Output = "text",
    way: o.Way = o.NEAR,
) -> None:
    """Say what is wrong with an agent's card, in the version it claims, and whether its interfaces answer."""
    from .checking import check
    from .reaching import run
    from .seen import Seen

    way = way.to(target)
    raise typer.Exit(run(check(way, o.shown(output), calls=not no_calls), Seen(way)))


@app.command()
def version(output: o.Output = "text") -> None:
    """Say which version this is."""
    from ... import __version__
    from .speech import say, say_json

    if o.shown(output).as_json:
        say_json({"version": __version__})
    else:
        say(f"dragoman {__version__}")


@app.command("help", epilog="Example: dragoman help task get")
def help_(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, Argument(metavar="[COMMAND]...", help="The command to explain.")
    ] = None,
) -> None:
    """Explain a command."""
    assert ctx.parent is not None, "a command stands in the program"
    ctx.parent.command.main([*(words or ()), "--help"], prog_name="dragoman", standalone_mode=True)


@app.command(epilog='Example: eval "$(dragoman completion bash)"')
def completion(
    shell: Annotated[str, Argument(metavar="bash|zsh|fish|powershell", help="The shell to complete in.")],
) -> None:
    """Print what a shell needs to complete our commands."""
    from typer._completion_shared import get_completion_script

    from .speech import say

    if shell not in ("bash", "zsh", "fish", "powershell", "pwsh"):
        raise typer.BadParameter(f"{shell!r} is none of bash, zsh, fish, powershell", param_hint="'SHELL'")
    say(get_completion_script(prog_name="dragoman", complete_var="_DRAGOMAN_COMPLETE", shell=shell))


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit()


@app.callback()
def _program(
    version: Annotated[
        bool,
        Option("-v", "--version", callback=_print_version, is_eager=True, help="Say which version this is."),
    ] = False,
) -> None:
    """Serve agents over A2A, and talk to anybody's."""


def run() -> None:
    """The whole process: run a command, tell how it failed, exit with what the standard says."""
    from .ending import end
    from .plain import load_no_pydantic

    load_no_pydantic()
    end(lambda: app(prog_name="dragoman", standalone_mode=False), sys.argv[1:])
