"""The reference page of the command line, drawn from the commands themselves.

`make docs` writes it; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from .failures import EXITS
from .plain import load_no_pydantic
from .program import app

__all__ = ["page"]

COLUMNS = 100
OPENING = """# The command line

Drawn from the commands by `make docs`; do not edit.

Results are on stdout, everything else on stderr. `-o json` answers with the protocol's own objects: one
document, or with `--stream` one per line. A command exits with 0 when it did its job, whatever became of the
task (`--exit-status` asks for more), 1 when it could not, 2 when it was typed wrongly, 3 when nobody was
reached, 4 when credentials were missing or refused, 5 when time was up, 130 when it was interrupted.

Errors are `{"error": {"code", "message", "hint", "a2aCode"}}` with `-o json`. Those of the protocol have the
protocol's names; those of the command line are:
"""


def page() -> str:
    """The whole page."""
    load_no_pydantic()
    codes = "\n".join(f"- `{code}`: exits with {number}" for code, number in sorted(EXITS.items()))
    return "\n".join([OPENING, codes, "", *_pages(typer.main.get_command(app), None, "dragoman")])


def _pages(command: Any, parent: Any, name: str) -> Iterator[str]:
    # Its width is fixed, so that the page is the same in every terminal.
    words = {"terminal_width": COLUMNS, "max_content_width": COLUMNS, "resilient_parsing": True}
    typed = command.make_context(name, [], parent=parent, **words)
    lines = [line.rstrip() for line in command.get_help(typed).splitlines()]
    yield f"## {typed.command_path}\n\n```text\n" + "\n".join(lines) + "\n```\n"
    for below in getattr(command, "commands", {}).values():
        yield from _pages(below, typed, below.name)
