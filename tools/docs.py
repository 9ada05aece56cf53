"""Writes the pages of docs/reference that are drawn from tables: states, errors, versions, the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

HOUSE = Path(__file__).parent.parent
sys.path[:0] = [str(HOUSE / "src"), str(HOUSE / "tools")]

import versions_pages  # noqa: E402

from dragoman.app.cli import reference  # noqa: E402
from dragoman.core.tasks import (  # noqa: E402
    ACTIVE,
    INFERRED,
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    is_reachable,
)
from dragoman.model.errors import ERRORS  # noqa: E402
from dragoman.model.task import State  # noqa: E402

DRAWN = "<!-- Drawn by tools/docs.py; `make docs` draws it again. -->\n"

# The order in which a task usually comes by.
ORDER = (
    State.SUBMITTED,
    State.WORKING,
    State.INPUT_REQUIRED,
    State.AUTH_REQUIRED,
    State.COMPLETED,
    State.FAILED,
    State.CANCELED,
    State.REJECTED,
    State.UNKNOWN,
)


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def named(states: frozenset[State]) -> str:
    return ", ".join(state.word for state in ORDER if state in states)


def grid() -> str:
    """The 9 x 9 table: what one event may do, what only a later look may find; the rest is illegal."""
    rows = [["from \\ to", *(state.word for state in ORDER)]]
    for start in ORDER:
        cells = []
        for end in ORDER:
            if end in TRANSITIONS[start]:
                cells.append("●")
            elif (start, end) in INFERRED:
                cells.append("◐")
            else:
                cells.append("○" if is_reachable(start, end) else " ")
        rows.append([f"**{start.word}**", *cells])
    return table(rows)


def diagram() -> str:
    """The edges as a picture. Those to and from unknown would hide the others: the table has them."""
    lines = ["stateDiagram-v2", "    [*] --> submitted"]
    names = {state: state.word.replace("-", "_") for state in State}
    lines += [
        f"    {names[start]} --> {names[end]}"
        for start in ORDER
        for end in ORDER
        if end in TRANSITIONS[start] and State.UNKNOWN not in (start, end)
    ]
    lines += [f"    {names[state]} --> [*]" for state in ORDER if state in TERMINAL]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def states() -> str:
    inferred = "; ".join(f"{a.word} → {b.word} (by {via.word})" for (a, b), via in INFERRED.items())
    return f"""{DRAWN}
# The states of a task

A task is always in one of nine states, and every event moves it along one edge of one table,
`core/tasks.py`. Servers decide by it and clients judge by it what their peers say.

{diagram()}
## The whole table

● one event may lead there. ◐ a peer may skip the state between. ○ one event may not, but whoever looks
only now and then may find it so. Empty: never.

{grid()}
- **Terminal** (no more events, ever): {named(TERMINAL)}.
- **Interrupted** (the agent waits for somebody): {named(INTERRUPTED)}.
- **Active** (may still change by itself or by a message): {named(ACTIVE)}.
- **Skipped by some peers**: {inferred}. The state between is inferred.
- **unknown** says that we lost sight of the task: whatever is seen next is news.

A cancel that comes when a task is canceled changes nothing. One that comes when it is over in another
way is answered by `TaskNotCancelable`, and changes nothing either.
"""


def errors() -> str:
    rows = [["name", "JSON-RPC", "reason", "HTTP", "gRPC", "again?", "says"]]
    for row in ERRORS.values():
        http = str(row.http) if row.http_1_0 is None else f"{row.http} (1.0.0: {row.http_1_0})"
        grpc = row.grpc if row.grpc_1_0 is None else f"{row.grpc} (1.0.0: {row.grpc_1_0})"
        again = "yes" if row.retryable else "no"
        rows.append([f"`{row.name}`", str(row.code), row.reason, http, grpc, again, row.wording])
    return f"""{DRAWN}
# Errors

Every error that a node answers with is a row of this table, `model/errors.py`. `again?` says whether the
same request may do better later.

{table(rows)}
Over JSON-RPC the code is in `error.code` and the reason in `error.data`; the HTTP column holds for
bindings that answer by status.
"""


def version(name: str) -> str:
    return f"{DRAWN}\n{versions_pages.page(versions_pages.PAGES[name])}"


PAGES: dict[str, Callable[[], str]] = {
    "states.md": states,
    "errors.md": errors,
    "cli.md": reference.page,
    **{name: partial(version, name) for name in versions_pages.PAGES},
}


if __name__ == "__main__":
    place = HOUSE / "docs" / "reference"
    place.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (place / name).write_text(page())
