"""HTTP: which address is which agent, what headers mean, and how an answer or a stream is sent.

Raw ASGI, because the path of a request should fit on a screen and cost next to nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ..model.errors import AgentError, error
from ..model.peer import Caller
from ..wire import jsonrpc
from ..wire.guard import BODY_BYTES_MAX
from ..wire.versions import spoken
from .mount import Mount
from .streams import Streams

__all__ = ["Scope", "Site"]

log = logging.getLogger("dragoman.serve")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
KEY_BYTES_MAX = 256
_WANTED = frozenset(
    {
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"a2a-version",
        b"a2a-extensions",
        b"idempotency-key",
        b"last-event-id",
        b"if-none-match",
    }
)
_JSON = (b"content-type", b"application/json")


class Site:
    """The addresses of a node. `first` also answers at the root."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        body_bytes_max: int = BODY_BYTES_MAX,
        health: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.streams = Streams()
        self.is_closing = False
        self._body_bytes_max = body_bytes_max
        self._health = health
        self._peers: dict[str, Mount] = {}
        self._cards: dict[str, Mount] = {}
        for mount in mounts:
            self._put(f"/agents/{mount.name}", mount)
        self._put("", mounts[0])
        self._index = msgspec.json.encode(
            {"agents": [{"name": m.name, "card": f"/agents/{quote(m.name)}{CARD_PATHS[0]}"} for m in mounts]}
        )

    def _put(self, prefix: str, mount: Mount) -> None:
        self._peers[prefix or "/"] = self._peers[f"{prefix}/"] = mount
        for path in CARD_PATHS:
            self._cards[prefix + path] = mount

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        mount = self._peers.get(scope["path"])
        if mount is None or scope["method"] != "POST":
            await self._plain(scope, send)
            return
        headers = _wanted(scope["headers"])
        id = b"null"
        try:
            if headers.get(b"content-type") != b"application/json" or b"content-encoding" in headers:
                _check_type(headers)
            body = await self._body(headers, receive)
            asked = jsonrpc.parse(body, self._body_bytes_max)
            id = asked.id
            if scope["query_string"] or headers.get(b"a2a-version") != b"1.0":
                spoken(headers.get(b"a2a-version", b""), scope["query_string"])
            if asked.operation.kind == "watch":
                await self._stream(mount, headers, asked, receive, send)
                return
            caller = _caller(headers)
            call = self.streams.called(receive)
            try:
                answer = await mount.peer.call(caller, asked.request)
            finally:
                self.streams.answered(call)
            await _send(send, 200, jsonrpc.replied(asked, answer.kind, answer.data), _echo(mount, headers))
        except jsonrpc.Unanswerable as wrong:
            await _fail(send, wrong.id, _cause(wrong.cause, headers, scope))
        except AgentError as wrong:
            await _fail(send, id, wrong)
        except asyncio.CancelledError:
            if self.streams.is_closing:
                await _fail(
                    send, id, error("Unavailable", "the node is going down; ask again, perhaps another")
                )
            elif not self.streams.is_gone(asyncio.current_task()):
                raise
        except Exception:
            log.exception("a request failed on our side")
            await _fail(send, id, error("Internal"))

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        most = self._body_bytes_max
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise error("TooLarge", f"The body has {int(length)} bytes; this node takes {most}.")
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body"):
            return body
        chunks, size = [body], len(body)
        while message.get("more_body") and size <= most:
            message = await receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        if size > most:
            raise error("TooLarge", f"The body has more than {most} bytes, which is what this node takes.")
        return b"".join(chunks)

    async def _stream(
        self, mount: Mount, headers: Headers, asked: jsonrpc.Asked, receive: Receive, send: Send
    ) -> None:
        runs = mount.peer.watch(_caller(headers), asked.request, _cursor(headers))
        try:
            # Until its first event a stream is a call: its caller may leave, and the node may close.
            call = self.streams.called(receive)
            try:
                first = await anext(runs, None)
            finally:
                self.streams.answered(call)
            await self.streams.run(runs, first, asked.id, receive, send, _echo(mount, headers))
        finally:
            await runs.aclose()

    # Everything that is not a question to an agent.

    async def _plain(self, scope: Scope, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path in self._peers and (path != "/" or method not in ("GET", "HEAD")):
            allowed = b"GET, HEAD, POST" if path == "/" else b"POST"
            await _send(send, 405, _problem("ask an agent with POST"), [(b"allow", allowed)])
        elif method not in ("GET", "HEAD"):
            problem = _problem(f"nothing answers {method} {path}")
            if path in self._cards:
                await _send(send, 405, problem, [(b"allow", b"GET, HEAD")])
            else:
                await _send(send, 404, problem)
        elif (mount := self._cards.get(path)) is not None:
            await self._card(scope, send, mount)
        elif path == "/healthz":
            await _send(send, 200, b'{"status":"ok"}')
        elif path == "/readyz":
            health = {"status": "closing" if self.is_closing else "ready", **self._health()}
            await _send(send, 503 if self.is_closing else 200, msgspec.json.encode(health))
        elif path == "/":
            await _send(send, 200, self._index)
        else:
            await _send(send, 404, _problem(f"there is nothing at {path}; the agents are listed at /"))

    async def _card(self, scope: Scope, send: Send, mount: Mount) -> None:
        seen = _wanted(scope["headers"]).get(b"if-none-match", b"")
        if seen and (
            seen == b"*" or mount.etag in [tag.strip().removeprefix(b"W/") for tag in seen.split(b",")]
        ):
            await send({"type": "http.response.start", "status": 304, "headers": mount.headers[1:]})
            await send({"type": "http.response.body", "body": b""})
            return
        length = (b"content-length", b"%d" % len(mount.body))
        await send({"type": "http.response.start", "status": 200, "headers": [*mount.headers, length]})
        await send({"type": "http.response.body", "body": mount.body if scope["method"] == "GET" else b""})


def _wanted(sent: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The headers we look at. One that came on several lines is one list (RFC 9110, 5.3)."""
    headers: Headers = {}
    for name, value in sent:
        if name in _WANTED:
            headers[name] = b"%b, %b" % (headers[name], value) if name in headers else value
    return headers


def _cause(cause: AgentError, headers: Headers, scope: Scope) -> AgentError:
    """What is wrong with a request that was not understood: perhaps it is in a version we do not speak."""
    if cause.name not in ("ParseError", "InvalidRequest", "TooLarge"):
        try:
            spoken(headers.get(b"a2a-version", b""), scope["query_string"])
        except AgentError as unspoken:
            return unspoken
    return cause


def _check_type(headers: Headers) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if kind not in jsonrpc.MEDIA_TYPES:
        raise error("ContentTypeNotSupported", f"a request is application/json, not {kind or 'untyped'}")
    if headers.get(b"content-encoding", b"identity") not in (b"", b"identity"):
        raise error("ContentTypeNotSupported", "requests are taken as they are, without a Content-Encoding")


def _caller(headers: Headers) -> Caller:
    key = headers.get(b"idempotency-key", b"")
    extensions = headers.get(b"a2a-extensions", b"")
    if not key and not extensions:
        return _ANYONE
    if len(key) > KEY_BYTES_MAX or not key.isascii():
        raise error(
            "InvalidParams",
            f"an idempotency key is up to {KEY_BYTES_MAX} ASCII characters",
            at="Idempotency-Key",
        )
    named = tuple(uri.strip() for uri in extensions.decode("latin-1").split(",") if uri.strip())
    return Caller(key=key.decode(), extensions=named)


_ANYONE = Caller()


def _cursor(headers: Headers) -> int | None:
    text = headers.get(b"last-event-id")
    if text is None or text == b"":
        return None
    if not text.isdigit() or len(text) > 18:
        raise error(
            "InvalidParams", "the last event's id is a whole number, as it was sent", at="Last-Event-ID"
        )
    return int(text)


def _echo(mount: Mount, headers: Headers) -> list[tuple[bytes, bytes]]:
    """Of the extensions a caller asked for, those that this agent has are said back."""
    asked = headers.get(b"a2a-extensions")
    if not asked:
        return []
    active = [uri for uri in (name.strip() for name in asked.split(b",")) if uri in mount.extensions]
    return [(b"a2a-extensions", b", ".join(active))] if active else []


async def _send(send: Send, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [_JSON, (b"content-length", b"%d" % len(body)), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def _fail(send: Send, id: bytes, wrong: AgentError) -> None:
    # JSON-RPC says errors inside a 200; a body we refused to read, or cannot take now, is HTTP's matter.
    status = wrong.row.http if wrong.name in ("TooLarge", "StoreFull", "Unavailable") else 200
    headers = [(b"retry-after", b"%d" % wrong.retry_seconds)] if wrong.retry_seconds else []
    await _send(send, status, jsonrpc.failed(id, wrong), headers)


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"error": words})
