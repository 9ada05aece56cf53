"""What can be typed: the commands and their options. What they do is in the files beside this one."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

__all__ = ["app", "run"]

app = typer.Typer(
    name="dragoman", add_completion=False, rich_markup_mode=None, no_args_is_help=True, pretty_exceptions_enable=False
)

Config = Annotated[str | None, Option("--config", metavar="FILE", help="Read dragoman.toml from elsewhere.")]
Host = Annotated[str | None, Option("--host", help="Listen on this address [127.0.0.1].")]
Port = Annotated[int | None, Option("--port", help="Listen on this port; 0 takes a free one [8420].")]
Store = Annotated[str | None, Option("--store", metavar="memory:|sqlite:PATH", help="Where tasks are kept.")]
LogFormat = Annotated[str | None, Option("--log-format", metavar="text|json", help="How to log on stderr [text].")]


@app.command()
def serve(
    target: Annotated[list[str], Argument(metavar="FILE[:NAME]...", help="A Python file with agents, or module:name.")],
    host: Host = None,
    port: Port = None,
    store: Store = None,
    input_deadline: Annotated[
        str | None, Option("--input-deadline", metavar="TIME", help="How long a question waits, as in 2s or 7d.")
    ] = None,
    url: Annotated[str | None, Option("--url", help="The address that cards say, behind a proxy.")] = None,
    config: Config = None,
    log_format: LogFormat = None,
) -> None:
    """Serve the agents of a Python file."""
    from .serving import serve

    flags = {
        "node.host": host,
        "node.port": port,
        "node.url": url,
        "store.url": store,
        "tasks.input_deadline_seconds": input_deadline,
        "log.format": log_format,
    }
    raise typer.Exit(serve(target, config, flags))


@app.command()
def up(
    host: Host = None,
    port: Port = None,
    store: Store = None,
    config: Config = None,
    log_format: LogFormat = None,
) -> None:
    """Start a node with a demo agent."""
    from .serving import up

    flags = {"node.host": host, "node.port": port, "store.url": store, "log.format": log_format}
    raise typer.Exit(up(config, flags))


def run() -> None:
    from .failures import failure_of, report

    try:
        app(standalone_mode=True)
    except Exception as wrong:
        failure = failure_of(wrong)
        if failure is None:
            raise
        report(failure)
        raise SystemExit(failure.exit) from None
