"""The cells: which load is put on which row, in which order, and what is checked before a figure counts."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass

from book import Book
from environments import HERE, ours, python_of
from load import DIALECTS
from nodes import (
    FLOOR,
    OURS_MEMORY,
    OURS_SQLITE,
    ROWS,
    SDK_MEMORY,
    Row,
    gateways,
    running,
    through,
    verify_echo,
    verify_stream,
)
from processes import Failed, Served, load, run, settle

ALWAYS = 1000
CLIENTS = ("ours", "a2a-sdk")


@dataclass(frozen=True)
class Cell:
    """One load, and in how many rounds a row of each slowness is asked to bear it."""

    name: str
    connections: int
    chunks: int = 0
    seconds_max: float = 60.0
    rounds: tuple[int, int, int] = (ALWAYS, ALWAYS, ALWAYS)


UNARY = (Cell("1", 1), Cell("16", 16), Cell("64", 64))
STREAM = (
    Cell("1 stream", 1, 100),
    Cell("16 streams", 16, 100, rounds=(ALWAYS, ALWAYS, 1)),
    Cell("1000 events", 1, 1000, 1.0, (ALWAYS, ALWAYS, 1)),
    Cell("10000 events", 1, 10000, 1.0, (ALWAYS, 1, 0)),
)


def unary(book: Book, turn: int, seconds: float) -> None:
    with ExitStack() as stack:
        nodes = _started(stack, book, "unary", "echo", ROWS)
        for served in nodes.values():
            _warmed(book, "unary", served, 0)
        for cell in UNARY:
            for row in _turned(nodes, turn):
                _measure(book, "unary", row, nodes[row], cell, turn, seconds)


def stream(book: Book, turn: int, seconds: float, is_quick: bool = False) -> None:
    with ExitStack() as stack:
        nodes = _started(stack, book, "stream", "chunks", ROWS)
        for served in nodes.values():
            _warmed(book, "stream", served, 10)
        for cell in STREAM:
            for row in _turned(nodes, turn):
                rounds = cell.rounds[row.slowness]
                if turn < rounds and not (is_quick and rounds < ALWAYS):
                    _measure(book, "stream", row, nodes[row], cell, turn, seconds)


def versions(book: Book, turn: int, seconds: float) -> None:
    """One node of ours, asked in each version; and our client, which asks it in each."""
    with running(OURS_MEMORY, "echo") as served:
        for dialect in _turned_round(list(DIALECTS), turn):
            settle()
            try:
                load(served, connections=8, seconds=0.3, dialect=dialect)
                figures = load(served, connections=16, seconds=seconds, dialect=dialect)
            except Failed as problem:
                book.fault("versions", dialect, "served", problem)
                continue
            book.add("versions", dialect, "served", turn, figures)
        for dialect in _turned_round(list(DIALECTS), turn):
            settle()
            version, binding = dialect.split(" ")
            name = {"JSON-RPC": "JSONRPC", "REST": "HTTP+JSON"}[binding]
            _client(book, "ours", served, 16, turn, seconds, ("versions", dialect, "called"), version, name)


def gateway(book: Book, turn: int, seconds: float) -> None:
    """What a call costs more on its way through: a proxy that reads nothing, and our gateway, before the floor."""
    with running(FLOOR, "echo") as behind:
        for name, command in _turned_round(gateways(behind), turn):
            settle()
            try:
                with through(name, command) as served:
                    load(served, connections=8, seconds=0.3)
                    figures = load(served, connections=16, seconds=seconds)
            except (Failed, OSError) as problem:
                book.fault("gateway", name, "16", problem)
                continue
            book.add("gateway", name, "16", turn, figures)


def _turned_round(several: list, turn: int) -> list:
    at = turn % len(several)
    return several[at:] + several[:at]


def _started(
    stack: ExitStack, book: Book, section: str, agent: str, rows: tuple[Row, ...]
) -> dict[Row, Served]:
    nodes = {}
    for row in rows:
        try:
            nodes[row] = stack.enter_context(running(row, agent))
        except Failed as problem:
            book.fault(section, row.name, "all", problem)
    return nodes


def _warmed(book: Book, section: str, served: Served, chunks: int) -> None:
    try:
        load(served, connections=8, seconds=0.4, chunks=chunks)
    except Failed as problem:
        book.fault(section, served.name, "all", problem)


def _turned(nodes: dict[Row, Served], turn: int) -> list[Row]:
    """Another row begins in each round, so that none is always measured after the same neighbour."""
    rows = list(nodes)
    at = turn % len(rows) if rows else 0
    return rows[at:] + rows[:at]


def _measure(
    book: Book, section: str, row: Row, served: Served, cell: Cell, turn: int, seconds: float
) -> None:
    if book.has_failed(section, row.name, cell.name):
        return
    settle()
    time_seconds = min(seconds, cell.seconds_max)
    try:
        figures = load(served, connections=cell.connections, seconds=time_seconds, chunks=cell.chunks)
        if cell.chunks:
            verify_stream(served, min(cell.chunks, 100))
        else:
            verify_echo(served)
    except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
        book.fault(section, row.name, cell.name, problem)
        return
    book.add(section, row.name, cell.name, turn, figures)


def client(book: Book, turn: int, seconds: float) -> None:
    """Each client in a process of its own against the floor, which costs the same under either."""
    with running(FLOOR, "echo") as served:
        for in_flight in (1, 16):
            for name in CLIENTS if turn % 2 == 0 else CLIENTS[::-1]:
                settle()
                _client(book, name, served, in_flight, turn, seconds)


def _client(
    book: Book,
    name: str,
    served: Served,
    in_flight: int,
    turn: int,
    seconds: float,
    place: tuple[str, str, str] | None = None,
    *how: str,
) -> None:
    place = place or ("client", name, str(in_flight))
    if book.has_failed(*place):
        return
    python = sys.executable if name == "ours" else python_of(name)
    script = str(HERE / "clients" / f"{name.replace('-', '_')}.py")
    flags = [f"http://127.0.0.1:{served.port}", str(in_flight), str(seconds), *how]
    try:
        figures = json.loads(run([python, script, *flags], seconds + 60, ours() if name == "ours" else None))
        if figures["wrong"] or not figures["answers"]:
            raise Failed(f"{figures['wrong']} of {figures['answers']} answers were wrong")
    except (Failed, ValueError) as problem:
        book.fault(*place, problem)
        return
    book.add(*place, turn, figures)


def memory(book: Book, turn: int, tasks: int) -> None:
    """Resident memory per 10,000 finished tasks, each sent with a key, after a warm-up of as many."""
    for row in (FLOOR, OURS_MEMORY, OURS_SQLITE, SDK_MEMORY):
        if book.has_failed("memory", row.name, "growth"):
            continue
        if row is SDK_MEMORY and turn:
            continue
        # The SDK needs minutes for as many, and its slope is plain after fewer.
        count = tasks // 4 if row is SDK_MEMORY else tasks
        try:
            with running(row, "echo") as served:
                load(served, connections=16, count=count, key=True)
                before = served.rss_bytes()
                load(served, connections=16, count=count, key=True, first=count + 1)
                grown = served.rss_bytes() - before
                verify_echo(served)
        except (Failed, OSError, KeyError) as problem:
            book.fault("memory", row.name, "growth", problem)
            continue
        figures = {"mb_per_10k": grown / count * 10_000 / 1e6, "rss_mb": (before + grown) / 1e6}
        book.add("memory", row.name, "growth", turn, figures)


def imports(book: Book, turn: int, times: int) -> None:
    """The interpreter's start is included; the floor is what every asyncio program with msgspec pays."""
    wanted = {
        "floor": "import asyncio, msgspec",
        "ours": "import dragoman",
        "ours, names used": "from dragoman import Agent, Client, Turn",
        "nothing": "pass",
    }
    taken: dict[str, list[float]] = {name: [] for name in wanted}
    for attempt in range(times + 1):
        for name, code in wanted.items():
            begin = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", code], env=_quiet(), capture_output=True, timeout=60)
            if done.returncode:
                problem = done.stderr.decode().strip().splitlines()[-1:]
                book.fault("import", name, "start", problem)
            elif attempt:  # the first writes the byte code
                taken[name].append(1000 * (time.perf_counter() - begin))
    for name, values in taken.items():
        if values:
            best, middle = min(values), sorted(values)[len(values) // 2]
            book.add("import", name, "start", turn, {"min_ms": best, "median_ms": middle})


def _quiet() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", **ours()}
