"""A peer that does exactly what a test says, byte for byte, on a real loopback socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.tasks import Fold
from dragoman.model.events import ArtifactChanged, Event, StatusChanged, TaskCreated, encode
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task

TASK, ROOM = "t-1", "c-1"


class Stop(Exception):
    """The script cuts the connection."""


@dataclass
class Exchange:
    """One request and the way to answer it. `budget` bytes after which the connection is cut."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    budget: int | None = None
    written: int = 0

    @property
    def asked(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def method(self) -> str:
        return self.asked["method"] if self.body else ""

    @property
    def number(self) -> int:
        return self.asked["id"]

    async def write(self, data: bytes) -> None:
        if self.budget is not None and self.written + len(data) > self.budget:
            self.writer.write(data[: self.budget - self.written])
            await self.writer.drain()
            raise Stop
        self.written += len(data)
        self.writer.write(data)
        await self.writer.drain()

    async def answer(
        self, body: bytes, kind: str = "application/json", status: int = 200, more: str = ""
    ) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        await self.write(head.encode() + body)

    async def result(self, value: Any) -> None:
        await self.answer(reply(self.number, value))

    async def error(self, code: int, message: str = "no") -> None:
        said = {"jsonrpc": "2.0", "id": self.number, "error": {"code": code, "message": message}}
        await self.answer(json.dumps(said).encode())

    async def stream(self) -> None:
        await self.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )

    async def frame(self, event: Event | bytes, seq: int | None = None) -> None:
        said = event if isinstance(event, bytes) else reply(self.number, event)
        place = b"" if seq is None else b"id: %d\n" % seq
        await self.piece(place + b"data: " + said + b"\n\n")

    async def piece(self, data: bytes) -> None:
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.write(b"0\r\n\r\n")


def reply(number: Any, value: Any) -> bytes:
    raw = value if isinstance(value, bytes) else encode(value)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (json.dumps(number).encode(), raw)


Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class Peer:
    """A server that runs a script for each request and keeps what it was asked."""

    script: Script
    card: dict[str, Any] | None = field(default_factory=lambda: card())
    asked: list[Exchange] = field(default_factory=list)
    url: str = ""

    def count(self, method: str) -> int:
        return sum(1 for exchange in self.asked if exchange.method == method)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (exchange := await _request(reader, writer)) is not None:
                self.asked.append(exchange)
                if exchange.verb == "GET" and self.card is not None:
                    await self._give_card(exchange)
                else:
                    await self.script(exchange)
        except (Stop, ConnectionError):
            writer.transport.close()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()

    async def _give_card(self, exchange: Exchange) -> None:
        if exchange.path != "/.well-known/agent-card.json":
            await exchange.answer(b"", status=404)
            return
        assert self.card is not None
        said = json.dumps(self.card).replace("$URL", self.url)
        await exchange.answer(said.encode())


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    verb, path, _ = first.split(" ")
    return Exchange(verb, path, headers, body, writer)


@asynccontextmanager
async def serving(script: Script, **named: Any):  # type: ignore[no-untyped-def]
    """The peer at work on a port of its own."""
    peer = Peer(script, **named)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, limit=2**20)
    host, port = server.sockets[0].getsockname()
    peer.url = f"http://{host}:{port}"
    try:
        yield peer
    finally:
        server.close()


def card(
    *, durable: bool = False, streaming: bool = True, interfaces: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": "Scripted",
        "description": "does what the test says",
        "version": "1",
        "supportedInterfaces": interfaces
        or [{"url": "$URL/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {
            "streaming": streaming,
            "extensions": [{"uri": "urn:dragoman:idempotency"}] if durable else [],
        },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


def opened(state: State = State.SUBMITTED) -> TaskCreated:
    said = Message("m-1", Role.USER, (Part(text="go"),), ROOM, TASK)
    return TaskCreated(Task(TASK, Status(state), ROOM, history=(said,)))


def moved(state: State, words: str = "") -> StatusChanged:
    message = Message(f"a-{words}", Role.AGENT, (Part(text=words),), ROOM, TASK) if words else None
    return StatusChanged.of(TASK, ROOM, Status(state, message, "2026-11-18T00:00:00.000Z"))


def chunk(text: str, append: bool = True, name: str = "out") -> ArtifactChanged:
    return ArtifactChanged.of(TASK, ROOM, Artifact(name, (Part(text=text),)), append)


def folded(events: Any) -> Task:
    fold = Fold()
    for event in events:
        fold.apply(event)
    return fold.task()


def task_bytes(task: Task) -> bytes:
    """A bare task, as GetTask answers."""
    return encode(TaskCreated(task))[len(b'{"task":') : -1]
