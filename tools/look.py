"""Looking at the house: its floors and doors, the walk of a request, the cost of a word, what a change did.

    python tools/look.py plan | walk [NAME …] | cost | change | all

`all` is what LOOK.txt holds: plan, walks and cost. Budgets and doors stand in house.toml.
"""

from __future__ import annotations

import ast
import asyncio
import io
import re
import statistics
import subprocess
import sys
import tarfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/dragoman"
HOUSE: dict[str, Any] = tomllib.loads((ROOT / "house.toml").read_text())


# The plan: rooms and the doors between them.


@dataclass(frozen=True, slots=True, order=True)
class Door:
    """One room imports another: when it runs, for its types only, or lazily inside a function."""

    room: str
    to: str
    kind: str
    line: int

    @property
    def is_open(self) -> bool:
        here, there = floor_of(self.room), floor_of(self.to)
        allowed = HOUSE["doors"].get(here, [])
        return here == there or bool({"*", there, self.to} & set(allowed))

    def __str__(self) -> str:
        return f"{self.room}:{self.line} → {self.to} ({self.kind})"


@dataclass(frozen=True)
class Room:
    """One file, named by its dotted path below the package."""

    name: str
    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def lines(self) -> int:
        """Lines that are neither blank nor comment."""
        return sum(bool(line.strip()) and not line.strip().startswith("#") for line in self.text.splitlines())

    @property
    def is_table(self) -> bool:
        return any(f"{self.name}.".startswith(f"{table}.") for table in HOUSE["tables"])

    def functions(self) -> Iterator[tuple[str, int]]:
        """Each function with its length."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def floor_of(room: str) -> str:
    return room.partition(".")[0]


def is_exempt(rule: str, room: str, name: str = "") -> bool:
    return any(
        row["rule"] == rule and row["room"] in ("*", room) and row.get("name", "") == name
        for row in HOUSE.get("exempt", ())
    )


def rooms(revision: str = "") -> dict[str, Room]:
    """The rooms as they stand in the tree, or stood at a revision."""
    if revision:
        tar = subprocess.run(["git", "archive", revision, SOURCE], cwd=ROOT, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(tar.stdout)) as members:
            texts = {
                member.name: file.read().decode()
                for member in members
                if member.name.endswith(".py") and (file := members.extractfile(member))
            }
    else:
        texts = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / SOURCE).rglob("*.py")}
    found = {}
    for path, text in sorted(texts.items()):
        name = ".".join(Path(path).relative_to(SOURCE).with_suffix("").parts)
        name = name.removesuffix("__init__").removesuffix(".") or "dragoman"
        found[name] = Room(name, path, text)
    return found


def doors(house: dict[str, Room]) -> list[Door]:
    """Every import of one room by another, by what it names: `from .. import core` leads to core."""
    found = set()
    for room in house.values():
        for node, kind in _imports(room.tree, "run"):
            for module in _modules(node, room):
                while module not in house and "." in module:
                    module = module.rpartition(".")[0]
                to = module if module in house else "dragoman"
                if to != room.name:
                    found.add(Door(room.name, to, kind, node.lineno))
    return sorted(found)


def _imports(tree: ast.AST, kind: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, kind
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, "lazy")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node, "type")
        else:
            yield from _imports(node, kind)


def _modules(node: ast.Import | ast.ImportFrom, room: Room) -> Iterator[str]:
    """The names an import may mean, without the package's own."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        package = Path(room.path).relative_to("src").parent.parts
        above = package[: len(package) - node.level + 1] if node.level else ()
        names = [".".join((*above, *filter(None, [node.module]), alias.name)) for alias in node.names]
    for name in names:
        if name.partition(".")[0] == "dragoman":
            yield name.removeprefix("dragoman.")


def round_trips(found: list[Door]) -> list[list[str]]:
    """Groups of rooms that all reach each other."""
    edges: dict[str, set[str]] = {}
    for door in found:
        edges.setdefault(door.room, set()).add(door.to)
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen, todo = set[str](), [start]
        while todo:
            fresh = edges.get(todo.pop(), set()) - seen
            seen |= fresh
            todo += fresh
        reach[start] = seen
    groups = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def long_functions(house: dict[str, Room]) -> list[str]:
    return [
        f"{room.name}.{name} {size}"
        for room in house.values()
        for name, size in room.functions()
        if size > HOUSE["function_lines_max"] and not is_exempt("function", room.name, name)
    ]


def is_long(room: Room) -> bool:
    return not room.is_table and room.lines > HOUSE["file_lines_max"] and not is_exempt("file", room.name)


def plan() -> Iterator[str]:
    house = rooms()
    found = doors(house)
    entered = Counter(to for _, to in {(door.room, door.to) for door in found})
    yield "PLAN: room, lines (! over budget), < rooms that enter it"
    for row in [["dragoman"], *reversed(HOUSE["floors"])]:
        yield ""
        for floor in row:
            names = [
                f"{name.removeprefix(floor + '.')} {room.lines}{'!' * is_long(room)} <{entered[name]}"
                for name, room in house.items()
                if floor_of(name) == floor
            ]
            yield _row(floor, names or ["-"])
    sizes = [room.lines for room in house.values()]
    yield ""
    yield from _named("doors that lead up", [str(door) for door in found if not door.is_open])
    yield from _named("round trips", [" ⇄ ".join(group) for group in round_trips(found)])
    yield from _named("long functions", long_functions(house))
    yield f"{len(sizes)} rooms, {sum(sizes)} lines, median {statistics.median(sizes):.0f}, {len(found)} doors"


def _row(title: str, items: Iterable[str], separator: str = " · ") -> str:
    """A title and what belongs to it, folded without breaking an item."""
    text = separator.join(item.replace(" ", "\0") for item in items)
    return textwrap.fill(text, 100, initial_indent=f"{title:11} ", subsequent_indent=" " * 12).replace(
        "\0", " "
    )


def _named(title: str, rows: list[str]) -> list[str]:
    """A title with its count, and the rows below it."""
    return [f"{title}: {len(rows) or 'none'}", *(f"  {row}" for row in rows)]


# The walk: one request through a node in this process.


@dataclass
class Walk:
    """What was entered while one request was answered."""

    name: str
    rooms: Counter[str] = field(default_factory=Counter)
    functions: set[Any] = field(default_factory=set)
    tasks: int = 0
    commits: int = 0
    # Kept until the end: a coroutine that goes on is entered again with the frame it had.
    frames: set[FrameType] = field(default_factory=set)

    def enter(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        _, inside, path = code.co_filename.partition(f"{SOURCE}/")
        if event != "call" or not inside or frame in self.frames or code.co_name in _INLINED:
            return
        if path.startswith("testing/"):
            # The agent's own code.
            return
        self.frames.add(frame)
        room = path.removesuffix(".py").replace("/", ".")
        self.rooms[room] += 1
        self.functions.add(code)
        self.commits += floor_of(room) == "store" and code.co_name in HOUSE["walks"]["commits"]

    def __str__(self) -> str:
        counts = f"{len(self.rooms)} files, {len(self.functions)} functions, {self.rooms.total()} calls"
        path = _row("", (f"{room} {calls}" for room, calls in self.rooms.items()), " ─ ")
        return f"{self.name}: {counts}, {self.tasks} tasks, {self.commits} commits\n{path}"


# Comprehensions are functions of their own until Python 3.12; a room is a room under any Python.
_INLINED = {"<dictcomp>", "<listcomp>", "<setcomp>"}

_HELLO = '{"messageId":"%s","role":"ROLE_USER","parts":[{"text":"hello"}]}'
_CALL = '{"jsonrpc":"2.0","id":1,"method":"%s","params":{"message":%s%s}}'
WALKS = {
    "accept": ("SendMessage", ',"configuration":{"returnImmediately":true}'),
    "send": ("SendMessage", ""),
    "stream": ("SendStreamingMessage", ""),
}


async def walk(name: str) -> Walk:
    """Send one request to an app on the memory store; what comes first is not measured."""
    from dragoman.testing import local_app

    method, configuration = WALKS[name]
    result = Walk(name)
    loop = asyncio.get_running_loop()

    def task(loop: asyncio.AbstractEventLoop, coroutine: Any, **rest: Any) -> asyncio.Task[Any]:
        # Chores of the node that happen to run meanwhile are not the request's.
        result.tasks += SOURCE in coroutine.cr_code.co_filename
        return asyncio.Task(coroutine, loop=loop, **rest)

    async with asyncio.timeout(30), local_app() as app:
        await _ask(app, _CALL % (method, _HELLO % "first", configuration))
        loop.set_task_factory(task)
        sys.setprofile(result.enter)
        try:
            await _ask(app, _CALL % (method, _HELLO % "second", configuration))
        finally:
            sys.setprofile(None)
            loop.set_task_factory(None)
    result.frames.clear()
    return result


async def _ask(app: Any, body: str) -> None:
    """One request as a server would hand it over: the caller stays until the answer has ended."""
    headers = [(b"host", b"local"), (b"content-type", b"application/json"), (b"a2a-version", b"1.0")]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
    }
    scope |= {"scheme": "http", "path": "/", "raw_path": b"/", "query_string": b"", "headers": headers}
    scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8420)}
    parts = [{"type": "http.request", "body": body.encode(), "more_body": False}]
    started = []

    async def receive() -> dict[str, Any]:
        return parts.pop() if parts else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        started.append(message.get("status", 200))

    await app(scope, receive, send)
    assert started and started[0] == 200, f"the walk was answered with {started[:1]}"


def walks(names: list[str]) -> Iterator[str]:
    yield "WALKS: files in the order entered, with calls"
    if not HOUSE["walks"]["ready"]:
        yield "  none yet: walks.ready is false in house.toml"
        return
    for name in names or WALKS:
        yield str(asyncio.run(walk(name)))


# The cost: in how many files an operation or a word is spelled.


def cost() -> Iterator[str]:
    house = rooms()
    operations = {
        arg.value
        for room in house.values()
        if room.name.startswith("model.operations")
        for node in ast.walk(room.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Operation"
        for arg in node.args
        if isinstance(arg, ast.Constant) and str(arg.value)[:1].isupper()
    }
    glossary = (ROOT / "docs/glossary.md").read_text()
    words = {
        word for term in re.findall(r"^- \*\*(.+?)\*\*", glossary, re.MULTILINE) for word in term.split(" / ")
    }
    yield "COST: in how many files a word is spelled"
    for title, terms, flags in (("operations", operations, re.NOFLAG), ("words", words, re.IGNORECASE)):
        files = Counter[str]()
        for term in sorted(terms):
            spelled = re.compile(rf"\b{re.escape(term)}s?\b", flags)
            files[term] = sum(bool(spelled.search(room.text)) for room in house.values())
        yield _row(title, (f"{term} {count}" for term, count in files.most_common()))


# The change: what happened to the house since the last tag.


def change() -> Iterator[str]:
    base = _git("describe", "--tags", "--abbrev=0")
    before, now = rooms(base) if base else {}, rooms()
    grown = {name: room.lines - (before[name].lines if name in before else 0) for name, room in now.items()}
    lost = {name: -room.lines for name, room in before.items() if name not in now}
    floors = Counter[str]()
    for name, lines in (grown | lost).items():
        floors[floor_of(name)] += lines
    doors_before, doors_now = (
        {f"{door.room} → {door.to}" for door in doors(house)} for house in (before, now)
    )
    commits = _git("log", "--name-only", "--format=%x00", *([f"{base}..HEAD"] if base else []), "--", SOURCE)
    pairs = Counter(pair for names in commits.split("\0") for pair in combinations(sorted(names.split()), 2))

    yield f"CHANGE since {base or 'the beginning'}"
    yield "lines: " + ", ".join(f"{floor} {lines:+}" for floor, lines in floors.most_common() if lines)
    yield "growing: " + ", ".join(
        f"{name} {lines:+}" for name, lines in Counter(grown).most_common(5) if lines > 0
    )
    yield from _named("new doors", sorted(doors_now - doors_before) if base else [])
    yield from _named("doors gone", sorted(doors_before - doors_now))
    often = [f"{count}x {a} {b}" for (a, b), count in pairs.most_common(5) if count > 1]
    yield from _named("changed together", often)
    yield from (line.splitlines()[0] for line in walks([]))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def everything() -> Iterator[str]:
    yield from plan()
    yield ""
    yield from walks([])
    yield ""
    yield from cost()


VIEWS = {"plan": plan, "cost": cost, "change": change, "all": everything}


def main(arguments: list[str]) -> int:
    match arguments:
        case ["walk", *names] if set(names) <= set(WALKS):
            lines = walks(names)
        case [view] if view in VIEWS:
            lines = VIEWS[view]()
        case _:
            print(__doc__, f"Walks: {', '.join(WALKS)}", file=sys.stderr)
            return 2
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
