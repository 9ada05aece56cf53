"""Writes what works with other parties: docs/reference/peers.md, and the table in README.md.

Both are drawn from what the last `make peers` found (.peers/compat.json):

    make peers && .venv/bin/python tools/compat.py

`tools/compat.py --check` writes nothing, and fails when they say something else than that. Either way something
that failed, and is no known gap, is a failure.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / ".peers" / "compat.json"
PAGE = ROOT / "docs" / "reference" / "peers.md"
README = ROOT / "README.md"
HEAD = """# Other parties

What works with other parties' SDKs, as client and as server. This page is written by `tools/compat.py` from
what `make peers` found; each row is a test in `tests/peers/`. What a version of the protocol has no words for is not
asked of it. A gap is the other party's, unless it says otherwise, and says why.
"""
THEY, WE = "they call us", "we call them"
TITLES = {THEY: "their client", WE: "their server"}
# More behaviours than these are counted, not named: the table shows them.
NAMED_MAX = 10
BETWEEN = re.compile(r"(<!-- peers -->\n).*?(<!-- /peers -->)", re.DOTALL)

Row = dict[str, Any]


def peer_of(row: Row) -> str:
    return f"{row['peer']} {row['release']}"


def dialect_of(row: Row) -> str:
    return f"{row['binding']} {row['version']}"


def listed(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def summary(rows: list[Row]) -> list[str]:
    """A line for each party and dialect: how much works in each direction."""
    lines = ["| with | over | their client | their server |", "| --- | --- | --- | --- |"]
    for peer in listed([peer_of(row) for row in rows]):
        ours = [row for row in rows if peer_of(row) == peer]
        for dialect in listed([dialect_of(row) for row in ours]):
            cells = [
                count([row for row in ours if dialect_of(row) == dialect and row["direction"] == direction])
                for direction in (THEY, WE)
            ]
            lines.append(f"| {peer} | {dialect} | {' | '.join(cells)} |")
    return lines


def count(rows: list[Row]) -> str:
    """How many of these work, as people read it."""
    if not rows:
        return ""
    words = [f"{sum(row['result'] == 'ok' for row in rows)} of {len(rows)}"]
    if failed := sum(row["result"] == "failed" for row in rows):
        words.append(f"{failed} FAILED")
    return ", ".join(words)


def page(rows: list[Row]) -> str:
    """The whole page: first how much, then what, for each party."""
    lines = [HEAD, *summary(rows), ""]
    for peer, of_peer in groupby(sorted(rows, key=_order(rows)), key=peer_of):
        found = list(of_peer)
        lines += [f"## {peer}", "", *table(found), "", *gaps(found)]
    return "\n".join(lines).rstrip() + "\n"


def _order(rows: list[Row]) -> Any:
    peers = listed([peer_of(row) for row in rows])
    return lambda row: peers.index(peer_of(row))


def table(rows: list[Row]) -> list[str]:
    """A line for each behaviour, a column for each direction and dialect."""
    columns = list(dict.fromkeys((row["direction"], dialect_of(row)) for row in rows))
    found = {(row["direction"], dialect_of(row), row["behaviour"]): row["result"] for row in rows}
    titles = [f"{TITLES[direction]}, {dialect}" for direction, dialect in columns]
    lines = [
        f"| operation | behaviour | {' | '.join(titles)} |",
        "| --- | --- |" + " --- |" * len(columns),
    ]
    # In the order of the cases, though some are asked in one direction only.
    for operation, behaviour in dict.fromkeys((row["operation"], row["behaviour"]) for row in rows):
        results = (found.get((*column, behaviour), "") for column in columns)
        lines.append(f"| {operation} | {behaviour} | {' | '.join(results)} |")
    return lines


def gaps(rows: list[Row]) -> list[str]:
    """What does not work, by the reason why."""
    lines = []
    missing = [row for row in rows if row["result"] != "ok"]
    for reason in listed([row["reason"] for row in missing]):
        those = [row for row in missing if row["reason"] == reason]
        where = "; ".join(
            f"{TITLES[direction]}, "
            + ", ".join(listed([dialect_of(row) for row in those if row["direction"] == direction]))
            for direction in listed([row["direction"] for row in those])
        )
        named = listed([row["behaviour"] for row in those])
        behaviours = "; ".join(named) if len(named) <= NAMED_MAX else f"{len(named)} of the behaviours"
        why = f"{reason[:1].upper()}{reason[1:]}." if reason else "FAILED."
        lines.append(f"- {why} ({where}: {behaviours})")
    return [*lines, ""] if lines else []


def main() -> int:
    if not TABLE.exists():
        print("there is nothing to write from yet: make peers", file=sys.stderr)
        return 1
    rows = json.loads(TABLE.read_text())
    readme = README.read_text()
    assert BETWEEN.search(readme), "README.md has a place for the table"
    short = BETWEEN.sub(lambda found: f"{found[1]}{chr(10).join(summary(rows))}\n{found[2]}", readme)
    failed = sum(row["result"] == "failed" for row in rows)
    for path, text in ((PAGE, page(rows)), (README, short)):
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(ROOT)} says something else than the last `make peers` found")
            failed += 1
    print(
        ", ".join(f"{sum(row['result'] == word for row in rows)} {word}" for word in ("ok", "gap", "failed"))
    )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
