"""`dragoman task …`: what can be done with tasks that are there."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from . import options as o

__all__ = ["tasks"]

tasks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at tasks, follow them, stop them."
)

TaskId = Annotated[str | None, Argument(metavar="TASK_ID", help="The task.")]


@tasks.command("get", epilog="Example: dragoman task get http://127.0.0.1:8420 01a1… --wait")
@o.reaching
def get(
    target: o.Target = None,
    task_id: TaskId = None,
    wait: Annotated[bool, Option("--wait", "--watch", help="Until it is over or needs you.")] = False,
    poll_interval: o.PollInterval = "2s",
    history: o.History = None,
    output: o.Output = "text",
    quiet: o.Quiet = False,
    raw: o.Raw = False,
    exit_status: o.ExitStatus = False,
    way: o.Way = o.NEAR,
) -> None:
    """Show a task: its state and what it brought."""
    from . import asking
    from .reaching import run
    from .seen import Seen

    how = o.shown(output, quiet=quiet, raw=raw, exits_by_state=exit_status)
    target, id = o.target_and_task(target, task_id)
    seen = Seen(way.to(target), id)
    poll_seconds = max(0.05, o.time_of(poll_interval, "--poll-interval")) if wait else None
    raise typer.Exit(run(asking.get(seen, how, history, poll_seconds), seen))


@tasks.command("list", epilog="Example: dragoman task list http://127.0.0.1:8420 --state input-required")
@o.reaching
def list_tasks(
    target: o.Target = None,
    state: Annotated[str, Option("--state", metavar="STATE", help="Only those in this state.")] = "",
    context_id: Annotated[str, Option("--context-id", metavar="ID", help="Only those of this context.")] = "",
    since: Annotated[
        str, Option("--since", metavar="TIMESTAMP", help="Only those that moved after this.")
    ] = "",
    page_size: Annotated[int | None, Option("--page-size", metavar="N", help="At most so many [50].")] = None,
    page_token: Annotated[str, Option("--page-token", metavar="TOKEN", help="Go on after a page.")] = "",
    history: o.History = None,
    artifacts: Annotated[bool, Option("--artifacts", help="With what they brought; for -o json.")] = False,
    stream: Annotated[bool, Option("--stream", help="With -o json: one task per line.")] = False,
    output: o.Output = "text",
    way: o.Way = o.NEAR,
) -> None:
    """List tasks, the newest first."""
    from ...model.operations.a2a import List
    from . import asking
    from .reaching import run
    from .seen import Seen

    seen = Seen(way.to(target))
    asked = List(context_id, o.state_of(state), since, page_size, page_token, history, artifacts)
    raise typer.Exit(run(asking.page(seen, o.shown(output, streams=stream), asked), seen))


@tasks.command("cancel", epilog="Example: dragoman task cancel http://127.0.0.1:8420 01a1…")
@o.reaching
def cancel(
    target: o.Target = None,
    task_id: TaskId = None,
    output: o.Output = "text",
    way: o.Way = o.NEAR,
) -> None:
    """Stop a task."""
    from . import asking
    from .reaching import run
    from .seen import Seen

    target, id = o.target_and_task(target, task_id)
    seen = Seen(way.to(target), id)
    raise typer.Exit(run(asking.cancel(seen, o.shown(output)), seen))


@tasks.command("subscribe", epilog="Example: dragoman task subscribe http://127.0.0.1:8420 01a1… --stream")
@o.reaching
def subscribe(
    target: o.Target = None,
    task_id: TaskId = None,
    after: Annotated[
        int | None, Option("--after", metavar="SEQ", min=0, help="What came after this event.")
    ] = None,
    stream: o.Stream = False,
    output: o.Output = "text",
    quiet: o.Quiet = False,
    raw: o.Raw = False,
    exit_status: o.ExitStatus = False,
    way: o.Way = o.NEAR,
) -> None:
    """Follow a task until it is over or needs you."""
    from . import asking
    from .reaching import run
    from .seen import Seen

    how = o.shown(
        output, streams=stream or output == "text", quiet=quiet, raw=raw, exits_by_state=exit_status
    )
    target, id = o.target_and_task(target, task_id)
    seen = Seen(way.to(target), id)
    raise typer.Exit(run(asking.subscribe(seen, how, after), seen))
