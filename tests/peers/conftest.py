"""Other parties' programs as fixtures, and the table of what works with whom (.peers/compat.json)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers.cases import RECONNECT, THEY, WE, Case
from tests.peers.cells import CELLS, GAPS, Cell, Line, cases_of
from tests.peers.environments import HOME, Missing
from tests.peers.talking import Agents, Ours, Theirs, driving, environ, running

HERE = Path(__file__).parent
TABLE = HOME / "compat.json"
DIRECTIONS = {"test_they_call_us.py": THEY, "test_we_call_them.py": WE}

Key = tuple[str, ...]
rows: dict[Key, dict[str, str]] = {}
missing: dict[str, str] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each case in each cell of a direction; reconnecting is a test of its own."""
    direction = DIRECTIONS.get(metafunc.definition.path.name)
    if direction is None:
        return
    takes_case = "case" in metafunc.fixturenames
    found = []
    for cell in (one for one in CELLS if one.direction == direction):
        for case in cases_of(cell):
            if (case is RECONNECT) == takes_case:
                continue
            marks = [
                pytest.mark.xfail(reason=gap.reason, strict=not gap.sometimes)
                for gap in GAPS
                if gap.covers(cell, case)
            ]
            values = (cell, case) if takes_case else (cell,)
            found.append(pytest.param(*values, id=f"{cell}-{case.name}", marks=marks))
    metafunc.parametrize(("cell", "case") if takes_case else ("cell",), found)


class Stage:
    """One cell at a time: whatever it needs runs until the next one is asked for."""

    def __init__(self) -> None:
        self._cell: Cell | None = None
        self._line: Line | None = None
        self._running = ExitStack()
        self._always = ExitStack()
        self._ours: Agents = {}

    def line(self, cell: Cell) -> Line:
        if self._cell is not cell:
            self._running.close()
            self._cell = cell
            self._line = None
            self._line = self._they_call(cell) if cell.direction == THEY else self._we_call(cell)
        assert self._line is not None, "it could not be started, as the first test said"
        return self._line

    def close(self) -> None:
        self._running.close()
        self._always.close()

    def _they_call(self, cell: Cell) -> Line:
        if not self._ours:
            program = [sys.executable, str(HERE / "agent.py")]
            self._ours = self._always.enter_context(running(program, dict(os.environ), HOME / "ours.log"))
        peer, dialect = cell.peer, cell.dialect
        version = dialect.version.partition("/")[0]
        program = [*peer.program("client"), dialect.binding, version, json.dumps(self._ours)]
        driver = self._running.enter_context(driving(program, peer.home / "client.log"))

        @asynccontextmanager
        async def talk() -> AsyncIterator[Theirs]:
            yield Theirs(driver, dialect, peer.spelling)

        return talk

    def _we_call(self, cell: Cell) -> Line:
        peer = cell.peer
        server = running(peer.program("server"), environ(), peer.home / "server.log")
        agents = self._running.enter_context(server)
        return lambda: Ours.talk(agents, cell.dialect)


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    it = Stage()
    try:
        yield it
    finally:
        it.close()


@pytest.fixture
def line(stage: Stage, cell: Cell) -> Line:
    """A way to talk in a cell: with the other party's program running."""
    try:
        cell.peer.made()
    except Missing as why:
        missing[str(why)] = str(why)
        if os.environ.get("CI") == "true":
            pytest.fail(f"could not be installed: {why}")
        pytest.skip(f"could not be installed: {why}")
    return stage.line(cell)


# The table.


def _key(cell: Cell, case: Case) -> dict[str, str]:
    return {
        "peer": cell.peer.name,
        "release": cell.peer.version,
        "binding": cell.dialect.binding,
        "version": cell.dialect.version,
        "direction": cell.direction,
        "operation": case.operation,
        "behaviour": case.behaviour,
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.peers)
    # All that is done in a cell is done at once, while its program runs.
    order = {id(cell): n for n, cell in enumerate(CELLS)}

    def place(item: pytest.Item) -> int:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        return order[id(params["cell"])] if "cell" in params else -1

    items[:] = [*(item for item in items if item not in ours), *sorted(ours, key=place)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report: Any = outcome.get_result()  # type: ignore[attr-defined]
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if "cell" not in params or (report.when != "call" and report.outcome != "failed"):
        return
    cell, case = params["cell"], params.get("case", RECONNECT)
    is_gap = hasattr(report, "wasxfail")
    row = _key(cell, case)
    told = {"result": "gap" if is_gap else "ok" if report.passed else "failed"}
    rows[tuple(row.values())] = row | told | {"reason": report.wasxfail if is_gap else ""}


def pytest_sessionfinish() -> None:
    """What was run replaces what was known of it; rows that nothing asks for any more are gone."""
    if not rows:
        return
    before = json.loads(TABLE.read_text()) if TABLE.exists() else []
    known = {tuple(list(row.values())[:7]): row for row in before} | rows
    order = [tuple(_key(cell, case).values()) for cell in CELLS for case in cases_of(cell)]
    HOME.mkdir(exist_ok=True)
    found = [known[key] for key in order if key in known]
    TABLE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if missing:
        terminalreporter.section("COULD NOT BE INSTALLED", "=", red=True, bold=True)
        for why in missing.values():
            terminalreporter.line(why)
        terminalreporter.line("What needs it did not run.")
    elif rows:
        counts = {
            word: sum(row["result"] == word for row in rows.values()) for word in ("ok", "gap", "failed")
        }
        terminalreporter.line("peers: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
