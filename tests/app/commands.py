"""How tests run the command line: as a real process, in an environment of its own, for a bounded time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
AGENTS = HERE / "agents.py"
SECONDS = 60.0
DRAGOMAN = [sys.executable, "-m", "dragoman"]


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error object on stdout."""
        return self.value["error"]

    def field(self, label: str) -> str:
        """The last value of a labelled field."""
        return [line for line in self.out.splitlines() if line.startswith(f"{label}: ")][-1].partition(": ")[
            2
        ]


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, without what an operator may have set."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("DRAGOMAN_", "A2ACLI_"))
    }
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), ours.get("PYTHONPATH", "")]))
    return {**ours, "PYTHONPATH": path, "DRAGOMAN_HOME": str(home), "COLUMNS": "80", **(more or {})}


def run(
    home: Path,
    *words: str,
    more: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
) -> Ran:
    """Run one command to its end."""
    ran = subprocess.run(
        [*DRAGOMAN, *words],
        env=environment(home, more),
        cwd=cwd or home,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


class Process:
    """A command that goes on: a node, or somebody who waits."""

    def __init__(
        self, home: Path, *words: str, more: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.popen = subprocess.Popen(
            [*DRAGOMAN, *words],
            env=environment(home, more),
            cwd=cwd or home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self) -> str:
        """The next line of its result."""
        out = self.popen.stdout
        assert out is not None
        line, until = b"", time.monotonic() + SECONDS
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([out], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"nothing came in {SECONDS} s"
            byte = os.read(out.fileno(), 1)
            if not byte:
                assert self.popen.stderr is not None
                raise AssertionError(f"it ended: {self.popen.stderr.read().decode()}")
            line += byte
        return line.decode().rstrip("\n")

    def until(self, beginning: str) -> str:
        """The first line that begins so."""
        while not (line := self.line()).startswith(beginning):
            pass
        return line

    def end(self, *signals: signal.Signals) -> Ran:
        """Signal it, and see how it ends."""
        for number in signals:
            self.popen.send_signal(number)
        try:
            out, err = self.popen.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise
        return Ran(self.popen.returncode, out.decode(), err.decode())


@contextmanager
def process(
    home: Path, *words: str, more: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[Process]:
    """A command that does not outlive its test."""
    started = Process(home, *words, more=more, cwd=cwd)
    try:
        yield started
    finally:
        if started.popen.poll() is None:
            started.popen.kill()
        for stream in (started.popen.stdout, started.popen.stderr):
            assert stream is not None
            stream.close()
        started.popen.wait(SECONDS)


@contextmanager
def node(home: Path, *words: str, more: Mapping[str, str] | None = None) -> Iterator[tuple[Process, str]]:
    """A node that listens, and where."""
    with process(home, *words, more=more) as started:
        yield started, started.until("listening ").removeprefix("listening ")
