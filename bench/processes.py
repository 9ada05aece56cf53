"""Child processes: how one is started, what it has cost so far, and that every one of them is ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_running: list[subprocess.Popen] = []


class Failed(Exception):
    """A process or an answer was not what a measurement needs."""


@dataclass
class Served:
    """A node under measurement: its process, its port and the path that takes JSON-RPC."""

    name: str
    process: subprocess.Popen
    port: int
    path: str = "/"

    @property
    def pid(self) -> int:
        return self.process.pid

    def cpu_seconds(self) -> float:
        return sum(_cpu_ticks(pid) for pid in _tree(self.pid)) / TICKS

    def rss_bytes(self) -> int:
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _tree(self.pid)) * PAGE

    def writes(self) -> int:
        """write(2) calls so far. What goes out by send(2) is not among them; uvloop uses write."""
        try:
            lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        except OSError:
            return 0
        return next(int(line.split()[1]) for line in lines if line.startswith("syscw"))


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(ticks) for ticks in fields[11:15])


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(int(child) for child in children.read_text().split())
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _environment(more: dict[str, str] | None) -> dict[str, str]:
    """A user's Python keeps its byte code; without it every start would be a compilation."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **(more or {})}


def spawn(command: list[str], log: Path, env: dict[str, str] | None = None) -> subprocess.Popen:
    """Its own session, so that Ctrl-C reaches only us and we end it in order."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=_environment(env),
            start_new_session=True,
        )
    _running.append(process)
    return process


def stop(process: subprocess.Popen, how: int = signal.SIGTERM) -> None:
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(8)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(8)
    if process in _running:
        _running.remove(process)


def stop_all() -> None:
    while _running:
        stop(_running[-1])


@contextmanager
def all_stopped_at_the_end():
    def leave(number, frame):
        raise SystemExit(128 + number)

    # SIGINT too, for where the shell had it ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    try:
        yield
    finally:
        stop_all()


def run(command: list[str], timeout_seconds: float, env: dict[str, str] | None = None) -> str:
    """A process that ends by itself; its output."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(env),
        start_new_session=True,
    )
    _running.append(process)
    try:
        out, err = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(command[1]).name} took more than {timeout_seconds:.0f} s") from None
    finally:
        stop(process)
    if process.returncode:
        lines = err.strip().splitlines() or ["no message"]
        raise Failed(f"{' '.join(Path(word).name for word in command[:3])}: {lines[-1][:200]}")
    return out


def load(served: Served, timeout_seconds: float = 150, **flags) -> dict:
    """One run of the load generator against a node, with what it cost the node per answer and per event."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("load.py")),
        "--port",
        str(served.port),
        "--path",
        served.path,
    ]
    for name, value in flags.items():
        command += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    cpu, writes = served.cpu_seconds(), served.writes()
    figures = json.loads(run(command, timeout_seconds))
    if "error" in figures:
        raise Failed(figures["error"])
    if figures["wrong"]:
        raise Failed(
            f"{figures['wrong']} of {figures['answers']} answers were wrong, as {figures['sample']!r}"
        )
    del figures["wrong"], figures["sample"]
    spent = served.cpu_seconds() - cpu
    figures["cpu_us"] = 1e6 * spent / figures["answers"]
    figures["cpu_us_per_event"] = 1e6 * spent / figures["events"]
    figures["writes_per_event"] = (served.writes() - writes) / figures["events"]
    return figures


def settle() -> None:
    """A moment between cells, so that one row's last work is not on the next one's bill."""
    time.sleep(0.05)
