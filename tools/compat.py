"""Writes docs/reference/peers.md from what `make peers` found: .peers/compat.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / ".peers" / "compat.json"
PAGE = ROOT / "docs" / "reference" / "peers.md"
HEAD = """# Other parties

What works with other parties' SDKs, as client and as server. This page is written by `tools/compat.py` from
what `make peers` found; each row is a test in `tests/peers/`. A gap is the other party's, and says why.
"""
DIRECTIONS = {
    "they call us": "Their client, our agent",
    "we call them": "Our client, their agent",
}

Row = dict[str, Any]


def page(rows: list[Row]) -> str:
    """The whole page."""
    peers = sorted({(row["peer"], row["version"]) for row in rows})
    bindings = ", ".join(sorted({row["binding"] for row in rows}))
    lines = [HEAD, f"Binding: {bindings}.", ""]
    for direction, title in DIRECTIONS.items():
        lines += [
            f"## {title}",
            "",
            *table([row for row in rows if row["direction"] == direction], peers),
            "",
        ]
    if gaps := [row for row in rows if row["result"] != "ok"]:
        lines += ["## Gaps", ""]
        lines += [
            f"- {row['peer']} {row['version']}, {row['direction']}: {row['behaviour']}. "
            + (f"{row['reason'][:1].upper()}{row['reason'][1:]}." if row["reason"] else "FAILED.")
            for row in gaps
        ]
    return "\n".join(lines).rstrip() + "\n"


def table(rows: list[Row], peers: list[tuple[str, str]]) -> list[str]:
    """A line for each behaviour, a column for each peer."""
    found = {(row["operation"], row["behaviour"], row["peer"]): row["result"] for row in rows}
    lines = [
        "| operation | behaviour | " + " | ".join(f"{name} {version}" for name, version in peers) + " |",
        "| --- | --- |" + " --- |" * len(peers),
    ]
    for operation, behaviour in dict.fromkeys((row["operation"], row["behaviour"]) for row in rows):
        results = (found.get((operation, behaviour, name), "") for name, _ in peers)
        lines.append(f"| {operation} | {behaviour} | {' | '.join(results)} |")
    return lines


def main() -> int:
    if not TABLE.exists():
        print("there is nothing to write from yet: make peers", file=sys.stderr)
        return 1
    rows = json.loads(TABLE.read_text())
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(rows))
    counts = {word: sum(row["result"] == word for row in rows) for word in ("ok", "gap", "failed")}
    print(f"{PAGE.relative_to(ROOT)}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
