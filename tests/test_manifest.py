"""The manifest and the tests speak of each other: nothing that is required is shown by nothing, in silence.

A row of requirements.toml has an id, a source, a behaviour, and either `tests` or a `gap` with its reason.
A test may say in its docstring, on a line of its own, `Shows: S4-010, S4-011`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
ROWS: list[dict[str, Any]] = tomllib.loads((TESTS / "requirements.toml").read_text())["requirement"]
SOURCE = re.compile(r"ours|issue|spec \S.*")


def functions() -> dict[str, str]:
    """Every test function as pytest names it, with its docstring."""
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        place = path.relative_to(TESTS.parent).as_posix()
        todo: list[tuple[str, ast.AST]] = [(place, ast.parse(path.read_text(), path.name))]
        while todo:
            name, node = todo.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.ClassDef):
                    todo.append((f"{name}::{child.name}", child))
                elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.startswith(
                    "test_"
                ):
                    found[f"{name}::{child.name}"] = ast.get_docstring(child) or ""
    return found


FUNCTIONS = functions()


def test_each_requirement_has_one_row():
    assert [name for name, count in Counter(row["id"] for row in ROWS).items() if count > 1] == []


def test_each_row_says_what_is_required_and_by_whom():
    for row in ROWS:
        assert row.keys() <= {"id", "source", "behaviour", "tests", "gap"}, row
        assert SOURCE.fullmatch(row["source"]), row
        assert row["behaviour"], row
        assert bool(row.get("tests")) != bool(row.get("gap")), f"{row['id']} has either tests or a gap"


def test_each_test_a_row_names_exists():
    named = [(row["id"], test) for row in ROWS for test in row.get("tests", ())]
    assert [f"{name} {test}" for name, test in named if test.partition("[")[0] not in FUNCTIONS] == []


def test_each_requirement_a_test_shows_has_a_row():
    known = {row["id"] for row in ROWS}
    unknown = []
    for test, text in FUNCTIONS.items():
        for line in re.findall(r"^\s*Shows: (.+)$", text, re.MULTILINE):
            unknown += [
                f"{test} {name}" for name in re.split(r"[,\s]+", line.rstrip(". ")) if name not in known
            ]
    assert unknown == []
