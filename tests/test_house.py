"""What must stay true of the house: its doors, sizes, words, public names, and the walk of a request.

The numbers and names stand in house.toml; `tools/look.py` shows what is measured here. All of it is ours.
"""

from __future__ import annotations

import ast
import asyncio
import datetime
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tools import look
from tools.look import HOUSE

ROOMS = look.rooms()
DOORS = look.doors(ROOMS)
ROWS = {floor: number for number, row in enumerate(HOUSE["floors"]) for floor in row}


def test_every_room_stands_on_a_floor_with_doors():
    floors = {look.floor_of(room) for room in ROOMS}
    assert floors <= set(HOUSE["doors"])
    assert set(HOUSE["doors"]) == {*ROWS, "dragoman"}


def test_no_door_is_planned_upwards():
    for floor, row in ROWS.items():
        for to in HOUSE["doors"][floor]:
            assert to == "*" or ROWS[look.floor_of(to)] <= row, f"{floor} may not be planned to enter {to}"


def test_rooms_enter_only_what_their_floor_may_enter():
    assert [str(door) for door in DOORS if not door.is_open] == []


@pytest.mark.parametrize(
    ("statement", "to", "kind"),
    [
        ("from ..store import memory", "store.memory", "run"),
        ("from ..store.memory import MemoryStore", "store.memory", "run"),
        ("import dragoman.store.memory as memory", "store.memory", "run"),
        ("from .. import Agent", "dragoman", "run"),
        ("def open_one():\n    from dragoman.store import memory", "store.memory", "lazy"),
        ("if TYPE_CHECKING:\n    from ..store.memory import MemoryStore", "store.memory", "type"),
    ],
)
def test_a_forbidden_door_is_seen_however_it_is_written(statement: str, to: str, kind: str):
    paths = {"core.tasks": "core/tasks.py", "store": "store/__init__.py", "store.memory": "store/memory.py"}
    house = {name: look.Room(name, f"src/dragoman/{path}", "") for name, path in paths.items()}
    house["core.tasks"] = look.Room("core.tasks", "src/dragoman/core/tasks.py", statement)
    [door] = look.doors(house)
    assert (door.to, door.kind, door.is_open) == (to, kind, False)


def test_no_rooms_enter_each_other_in_a_circle():
    assert look.round_trips(DOORS) == []


def test_files_are_short():
    assert [f"{room.name} {room.lines}" for room in ROOMS.values() if look.is_long(room)] == []
    assert statistics.median(room.lines for room in ROOMS.values()) <= HOUSE["file_lines_median"]


def test_functions_are_short():
    assert look.long_functions(ROOMS) == []


def test_files_open_by_saying_what_they_know():
    long = (room for room in ROOMS.values() if room.lines > HOUSE["silent_lines_max"])
    assert [room.name for room in long if not ast.get_docstring(room.tree)] == []


def test_pure_floors_neither_wait_nor_look_outside():
    impure = []
    for room in ROOMS.values():
        if look.floor_of(room.name) not in HOUSE["pure"]:
            continue
        for node in ast.walk(room.tree):
            match node:
                case ast.Import(names=aliases):
                    modules = {alias.name.partition(".")[0] for alias in aliases}
                case ast.ImportFrom(module=str(module), level=0):
                    modules = {module.partition(".")[0]}
                case ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.AsyncFunctionDef():
                    modules = {"await"}
                case _:
                    continue
            impure += [
                f"{room.name}:{node.lineno} {module}"
                for module in modules & {"await", *HOUSE["impure_modules"]}
            ]
    assert impure == []


def test_only_wire_asks_which_version_it_is():
    asked = []
    for room in ROOMS.values():
        if look.floor_of(room.name) == "wire" or look.is_exempt("version", room.name):
            continue
        for node in ast.walk(room.tree):
            match node:
                case ast.Compare(left=left, ops=ops, comparators=right):
                    terms = [left, *right]
                    if not all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops):
                        continue
                case ast.Match(subject=subject):
                    terms = [subject]
                case _:
                    continue
            names = {ast.unparse(term).rpartition(".")[2] for term in terms}
            if names & {"version", "protocol_version"}:
                asked.append(f"{room.name}:{node.lineno}")
    assert asked == []


def identifiers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The names a file gives, with where."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name, node.lineno
            case (
                ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name))
            ):
                yield name, node.lineno


def banned(identifier: str) -> set[str]:
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", identifier)}
    starts = {word for word in HOUSE["banned_words"] if word.endswith("_")}
    return words & set(HOUSE["banned_words"]) | {start for start in starts if identifier.startswith(start)}


@pytest.mark.parametrize(
    ("identifier", "word"),
    [
        ("TaskManager", "manager"),
        ("_old_rows", "old"),
        ("default_port", "default_"),
        ("HTTPHandler", "handler"),
    ],
)
def test_a_banned_word_is_seen_in_any_spelling(identifier: str, word: str):
    assert banned(identifier) == {word}
    assert banned("renewed_base64_metadata") == set()


def test_identifiers_use_the_words_of_the_glossary():
    said = [
        f"{room.name}:{line} {name}"
        for room in ROOMS.values()
        for name, line in [*identifiers(room.tree), *((part, 1) for part in room.name.split("."))]
        if banned(name) and not look.is_exempt("word", room.name, name.lstrip("_"))
    ]
    assert said == []


def test_exemptions_say_why_and_since_when():
    for row in HOUSE["exempt"]:
        assert row["rule"] in ("file", "function", "word", "version")
        assert row["room"] == "*" or row["room"] in ROOMS
        assert len(row["reason"].split()) > 3
        assert isinstance(row["since"], datetime.date)


def test_what_the_package_exports_is_there():
    import dragoman

    exported = dragoman.__all__
    assert len(exported) == len(set(exported))
    assert [name for name in exported if not hasattr(dragoman, name)] == []
    public = {
        name for name, value in vars(dragoman).items() if name[0] != "_" and not hasattr(value, "__path__")
    }
    modules = {room.rpartition(".")[2] for room in ROOMS}
    assert public - modules - {"annotations"} <= set(exported)


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}; import sys; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    return set(ran.stdout.split())


def test_importing_the_package_loads_little():
    loaded = loaded_by("import dragoman") - loaded_by("import asyncio, msgspec")
    assert sorted(loaded & set(HOUSE["import_never_loads"])) == []


@pytest.mark.parametrize("name", look.WALKS)
def test_the_walk_of_a_request_stays_within_its_budget(name: str):
    if not HOUSE["walks"]["ready"]:
        pytest.skip("NO WALK YET: set walks.ready in house.toml when dragoman.testing.local_app exists")
    walk, budget = asyncio.run(look.walk(name)), HOUSE["walks"][name]
    assert len(walk.rooms) <= budget["files_max"], walk
    assert walk.rooms.total() <= budget["calls_max"], walk
    assert walk.tasks <= budget["tasks_max"], walk
