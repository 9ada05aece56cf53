"""Other parties' programs as fixtures, and the table of what works with whom (.peers/compat.json)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.peers.environments import HOME, PEERS, Missing, Peer, environ

HERE = Path(__file__).parent
TABLE = HOME / "compat.json"
START_SECONDS_MAX = 60
# What does not work by a peer's fault: it must fail, and says why.
GAPS = {
    (gap["peer"], gap["direction"], gap["behaviour"]): gap
    for gap in tomllib.loads((HERE / "gaps.toml").read_text()).get("gap", ())
}
DIRECTIONS = {"test_they_call_us.py": "they call us", "test_we_call_them.py": "we call them"}

rows: dict[tuple[str, str, str], dict[str, str]] = {}
missing: dict[str, str] = {}


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """A server as a process of its own; gives the line it says when it is ready."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        late = Timer(START_SECONDS_MAX, process.kill)
        late.start()
        line = process.stdout.readline().strip()
        late.cancel()
        assert line, f"{command} ended, or was not ready in {START_SECONDS_MAX} s"
        yield line
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture(scope="session", params=PEERS)
def peer(request: pytest.FixtureRequest) -> Peer:
    """Another party, with its environment made."""
    found = PEERS[request.param]
    try:
        found.made()
    except Missing as why:
        missing[found.name] = str(why)
        if os.environ.get("CI") == "true":
            pytest.fail(f"could not be installed: {why}")
        pytest.skip(f"could not be installed: {why}")
    return found


@pytest.fixture(scope="session")
def ours() -> Iterator[dict[str, str]]:
    """The addresses of our agents, served by a process of their own."""
    with running([sys.executable, str(HERE / "agent.py")], dict(os.environ)) as line:
        yield json.loads(line)


@pytest.fixture(scope="session")
def theirs(peer: Peer) -> Iterator[str]:
    """The address of the agent that another party serves."""
    with running(peer.program("server"), environ()) as line:
        yield line


# The table.


def _row(item: pytest.Item) -> tuple[str, str, str] | None:
    direction = DIRECTIONS.get(item.path.name)
    call = getattr(item, "callspec", None)
    name = call.params.get("peer") if call else None
    if direction is None or name is None:
        return None
    case = call.params.get("case")
    behaviour = case.behaviour if case else item.originalname.removeprefix("test_").replace("_", " ")
    return name, direction, behaviour


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.peers)
            row = _row(item)
            if row in GAPS:
                gap = GAPS[row]
                item.add_marker(pytest.mark.xfail(reason=gap["reason"], strict=not gap.get("sometimes")))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report: Any = outcome.get_result()  # type: ignore[attr-defined]
    row = _row(item)
    if row is None or report.when != "call":
        return
    name, direction, behaviour = row
    case = item.callspec.params.get("case")
    rows[row] = {
        "peer": name,
        "version": PEERS[name].version,
        "binding": "JSONRPC 1.0",
        "direction": direction,
        "operation": case.operation if case else item.function.operation,
        "behaviour": behaviour,
        "result": "gap" if hasattr(report, "wasxfail") else "ok" if report.passed else "failed",
        "reason": GAPS[row]["reason"] if hasattr(report, "wasxfail") else "",
    }


def pytest_sessionfinish() -> None:
    if not rows:
        return
    before = json.loads(TABLE.read_text()) if TABLE.exists() else []
    kept = {(row["peer"], row["direction"], row["behaviour"]): row for row in before}
    HOME.mkdir(exist_ok=True)
    TABLE.write_text(json.dumps(list({**kept, **rows}.values()), indent=1, ensure_ascii=False) + "\n")


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
