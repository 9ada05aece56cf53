"""A node as a real process on loopback: how it is started, when it is ready, how it is asked, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
AGENTS = HERE / "agents.py"
READY_SECONDS = 60.0
END_SECONDS = 60.0

BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)


class Died(Exception):
    """The node ended before it was ready."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Node:
    """One store and the processes that serve it, one after the other."""

    def __init__(
        self, folder: Path, agents: Path = AGENTS, disk: Path | None = None, **environment: str
    ) -> None:
        self.folder = folder
        self.path = (disk or folder) / "store.db"
        self.effects = folder / "effects"
        self.effects.mkdir(exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.agents = agents
        self.environment = environment
        self.process: asyncio.subprocess.Process | None = None
        self.pid = 0
        self.is_running = False
        self.is_ready = asyncio.Event()
        # Why it could not be started again, if it could not.
        self.broken: Died | None = None
        self.ready_seconds: list[float] = []
        self._spawner: asyncio.subprocess.Process | None = None
        self._output: asyncio.subprocess.Process | None = None

    async def start(self, *tracer: str, fresh: bool = True) -> None:
        """Start the process and wait until it listens.

        `tracer` is a command that runs it. Not `fresh` is a fork of a process that has imported everything.
        """
        began = time.monotonic()
        serve = ["serve", str(self.agents), "--port", str(self.port), "--store", f"sqlite:{self.path}"]
        if fresh:
            self._output = self.process = await self._spawned(
                *tracer, sys.executable, "-m", "dragoman", *serve
            )
            self.pid = self.process.pid
        else:
            if self._spawner is None:
                self._spawner = await self._spawned(sys.executable, "-m", "tests.acceptance.spawner")
            self._output, self.process = self._spawner, None
            assert self._spawner.stdin is not None
            asked = {"command": serve, "environment": self._environment()}
            asked |= {"folder": str(self.folder), "log": str(self.folder / "node.log")}
            self._spawner.stdin.write(json.dumps(asked).encode() + b"\n")
            self.pid = int((await self._line(b"pid ")).split()[1])
        self.is_running = True
        line = await self._line(b"listening ", b"ended ", b"")
        if not line.startswith(b"listening"):
            await self.ended()
            raise Died(f"{line!r} {self.words()}")
        if tracer:
            assert self.process is not None
            self.pid = _child(self.process.pid)
        self.ready_seconds.append(time.monotonic() - began)
        self.is_ready.set()

    async def _spawned(self, *command: str) -> asyncio.subprocess.Process:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])
        environment = {**os.environ, "PYTHONPATH": paths, **self._environment()}
        pipe = asyncio.subprocess.PIPE
        with (self.folder / "node.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=log, env=environment, cwd=self.folder
            )

    def _environment(self) -> dict[str, str]:
        return {"EFFECTS": str(self.effects), **self.environment}

    async def _line(self, *beginnings: bytes) -> bytes:
        """The next line of the process that begins with one of these; an empty one is the end of all lines."""
        assert self._output is not None and self._output.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            while True:
                line = await self._output.stdout.readline()
                if not line or any(line.startswith(beginning) for beginning in beginnings if beginning):
                    return line

    def words(self) -> str:
        """The end of what the node said on stderr."""
        return (self.folder / "node.log").read_text(errors="replace")[-2000:]

    def kill(self, how: int = signal.SIGKILL) -> None:
        self.is_ready.clear()
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, how)

    async def ended(self) -> int:
        """Wait until the process is gone; its exit code, or minus the signal."""
        if self.process is not None:
            async with asyncio.timeout(END_SECONDS):
                code = await self.process.wait()
            _close(self.process)
        else:
            code = int((await self._line(b"ended ")).split()[1])
        self.is_running = False
        self.is_ready.clear()
        return code

    async def close(self) -> None:
        """End whatever still runs."""
        if self.is_running:
            # A tracer first would leave the node running.
            self.kill()
            await self.ended()
        if self._spawner is not None:
            spawner, self._spawner = self._spawner, None
            spawner.kill()
            await spawner.wait()
            _close(spawner)

    async def stop(self) -> int:
        self.kill(signal.SIGTERM)
        return await self.ended()


def _close(process: asyncio.subprocess.Process) -> None:
    # Its pipes belong to a loop that ends with the test.
    process._transport.close()  # type: ignore[attr-defined]


def _child(pid: int) -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        children = (task / "children").read_text().split()
        if children:
            return int(children[0])
    return pid


@asynccontextmanager
async def serving(
    folder: Path, agents: Path = AGENTS, disk: Path | None = None, **environment: str
) -> AsyncIterator[Node]:
    """A node that is ended whatever happens."""
    node = Node(folder, agents, disk, **environment)
    try:
        yield node
    finally:
        await node.close()


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, headers: Any, error: dict[str, Any]) -> None:
        super().__init__(f"HTTP {status}: {error}")
        self.status = status
        self.headers = headers
        self.code = error["code"]


def message(text: str, id: str, task: str = "") -> dict[str, Any]:
    said = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": {**said, "taskId": task} if task else said}


class Caller:
    """Speaks JSON-RPC over HTTP and reads streams byte by byte; knows nothing of the product's client."""

    def __init__(self, url: str, seconds: float = 60.0) -> None:
        self.url = url
        # Streams that were ended with the place to go on from, and how many of those said another place.
        self.hints = self.wrong_hints = 0
        self.session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=5),
            connector=aiohttp.TCPConnector(limit=0),
        )

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    def _headers(self, **more: str) -> dict[str, str]:
        return {"Content-Type": "application/json", "A2A-Version": "1.0", **more}

    async def ask(self, method: str, params: dict[str, Any], key: str = "", agent: str = "") -> Any:
        headers = self._headers(**({"Idempotency-Key": key} if key else {}))
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.session.post(self.url + _path(agent), json=body, headers=headers) as answer:
            value = await answer.json(content_type=None)
            if "error" in value:
                raise Refused(answer.status, answer.headers, value["error"])
            return value["result"]

    async def watch(
        self, method: str, params: dict[str, Any], key: str = "", after: int | None = None, agent: str = ""
    ) -> AsyncGenerator[tuple[int, dict[str, Any]], None]:
        """Events with their ids, until the stream ends; a broken one raises."""
        headers = self._headers()
        if key:
            headers["Idempotency-Key"] = key
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.session.post(self.url + _path(agent), json=body, headers=headers) as answer:
            if answer.content_type != "text/event-stream":
                raise Refused(answer.status, answer.headers, (await answer.json(content_type=None))["error"])
            rest, at = b"", 0
            async for piece in answer.content.iter_any():
                *blocks, rest = (rest + piece).split(b"\n\n")
                for block in blocks:
                    fields = dict(
                        line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":")
                    )
                    if b"data" not in fields:
                        continue
                    value = json.loads(fields[b"data"])
                    if "error" in value:
                        raise Refused(200, answer.headers, value["error"])
                    at = int(fields[b"id"])
                    yield at, value["result"]
            # A node that closes says so in a comment at the very end.
            if rest.startswith(b":") and b"Last-Event-ID: " in rest:
                self.hints += 1
                self.wrong_hints += int(rest.rpartition(b" ")[2]) != at

    async def get(self, task: str, agent: str = "") -> Any:
        return await self.ask("GetTask", {"id": task}, agent=agent)


def _path(agent: str) -> str:
    return f"/agents/{agent}" if agent else "/"


async def until_quiet(
    caller: Caller, seconds: float = 30.0, agents: Sequence[str] = ("player", "brittle")
) -> None:
    """Until no task is worked on any more. The interval only bounds how often we ask."""
    async with asyncio.timeout(seconds):
        for agent in agents:
            for state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"):
                while (await caller.ask("ListTasks", {"status": state, "pageSize": 1}, agent=agent))[
                    "totalSize"
                ]:
                    await asyncio.sleep(0.01)


__all__ = [
    "AGENTS",
    "BROKEN",
    "Caller",
    "Died",
    "Node",
    "Refused",
    "aclosing",
    "free_port",
    "message",
    "serving",
    "until_quiet",
]
