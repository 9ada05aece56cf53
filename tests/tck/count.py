"""Counts what the conformance kit found: `count.py JUNIT PROFILE`. Failures that known.txt lacks fail it."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

KNOWN = Path(__file__).with_name("known.txt")


def main() -> int:
    report, profile = sys.argv[1:]
    known = dict(
        [part.strip() for part in line.split("|", 1)]
        for line in KNOWN.read_text().splitlines()
        if line and not line.startswith("#")
    )
    counts = dict.fromkeys(("passed", "failed", "xfail", "skip"), 0)
    is_new = False
    lines = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if wrong is not None:
            counts["failed"] += 1
            why = known.get(name)
            is_new = is_new or why is None
            lines.append(f"  FAILED {name}: {why or 'NOT KNOWN: ' + (wrong.get('message') or '')[:300]}")
        elif skipped is None:
            counts["passed"] += 1
        elif skipped.get("type") == "pytest.xfail":
            counts["xfail"] += 1
            lines.append(f"  XFAIL {name}: {(skipped.get('message') or '')[:300]}")
        else:
            counts["skip"] += 1
    print(f"{profile}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    print("\n".join(lines))
    return is_new or not sum(counts.values())


if __name__ == "__main__":
    sys.exit(main())
