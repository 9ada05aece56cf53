"""HTTP: which address is which agent, what headers mean, and how an answer or a stream is sent.

Raw ASGI, because the path of a request should fit on a screen and cost next to nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from ..model.errors import AgentError, error
from ..model.operations.a2a import Send as Ask
from ..model.peer import Caller, SystemClock
from ..wire import jsonrpc, rest
from ..wire.guard import BODY_BYTES_MAX
from ..wire.sse import frame
from ..wire.versions import said
from .mount import Mount
from .streams import ENDS, ENDS_AT_QUESTION, Streams, past_questions

__all__ = ["Scope", "Site"]

log = logging.getLogger("dragoman.serve")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]
Asked = jsonrpc.Asked | rest.Asked

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
KEY_BYTES_MAX = 256
_WANTED = frozenset(
    {
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"a2a-version",
        b"a2a-extensions",
        b"x-a2a-extensions",
        b"idempotency-key",
        b"last-event-id",
        b"if-none-match",
    }
)
_JSON = b"application/json"
_RULES = rest.Rules()


class Site:
    """The addresses of a node. `first` also answers at the root."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        body_bytes_max: int = BODY_BYTES_MAX,
        ends_at_question: bool = True,
        rules: rest.Rules = _RULES,
        health: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.streams = Streams()
        self.is_closing = False
        self._body_bytes_max = body_bytes_max
        self._ends_at_question = ends_at_question
        self._rules = rules
        self._forms: dict[str, str] = {}
        self._health = health
        self._new_id = SystemClock().new_id
        self._first = mounts[0]
        self._peers: dict[str, Mount] = {}
        self._cards: dict[str, Mount] = {}
        for mount in mounts:
            self._put(f"/agents/{mount.name}", mount)
        self._put("", mounts[0])
        self._index = msgspec.json.encode(
            {"agents": [{"name": m.name, "card": f"/agents/{quote(m.name)}{CARD_PATHS[0]}"} for m in mounts]}
        )

        self._plain_paths = frozenset((*self._peers, *self._cards, "/healthz", "/readyz"))

    def _put(self, prefix: str, mount: Mount) -> None:
        self._peers[prefix or "/"] = self._peers[f"{prefix}/"] = mount
        for path in CARD_PATHS:
            self._cards[prefix + path] = mount

    async def close(self) -> None:
        """End streams with the place to resume from, and waiting calls with a reason."""
        self.is_closing = True
        await self.streams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        mount = self._peers.get(scope["path"])
        if mount is not None and scope["method"] == "POST":
            await self._answer(mount, jsonrpc.Asked(), scope, receive, send)
        elif scope["path"] in self._plain_paths or (there := self._place(scope)) is None:
            await self._plain(scope, send)
        else:
            await self._rest(*there, scope, receive, send)

    async def _answer(self, mount: Mount, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, whatever its binding: read, ask, answer."""
        headers = _wanted(scope["headers"])
        try:
            await self._read(asked, headers, scope, receive)
            caller = _caller(headers, asked)
            if asked.operation.kind == "watch":
                await self._stream(mount, headers, asked, caller, receive, send)
                return
            call = self.streams.called(receive)
            try:
                answer = await mount.peer.call(caller, asked.request)
            finally:
                self.streams.answered(call)
            await _send(send, 200, asked.replied(answer), _echo(mount, headers), asked.media_type)
        except AgentError as wrong:
            await _fail(send, asked, wrong)
        except asyncio.CancelledError:
            if self.streams.is_closing:
                words = "the node is going down; ask again, perhaps another"
                await _fail(send, asked, error("Unavailable", words))
            elif not self.streams.is_gone(asyncio.current_task()):
                raise
        except Exception:
            log.exception("a request failed on our side")
            await _fail(send, asked, error("Internal"))

    async def _read(self, asked: Asked, headers: Headers, scope: Scope, receive: Receive) -> None:
        method = scope["method"]
        body = b""
        if method == "POST":
            body = await self._body(headers, receive)
            if (body or asked.needs_body) and (
                headers.get(b"content-type") != b"application/json" or b"content-encoding" in headers
            ):
                _check_type(headers)
        version = headers.get(b"a2a-version", b"")
        asked.read(method, body, self._new_id, version, scope["query_string"], self._body_bytes_max)

    # REST.

    def _place(self, scope: Scope) -> tuple[Mount, rest.Place] | None:
        """The agent at an address, and the place below it."""
        # As it was sent: an id may hold a slash that is no separator.
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        mount = self._first
        if path.startswith("/agents/"):
            name, _, below = path[len("/agents/") :].partition("/")
            found = self._peers.get(f"/agents/{unquote(name)}")
            if found is not None:
                mount, path = found, f"/{below}"
        place = rest.place_of(path)
        return None if place is None else (mount, place)

    async def _rest(
        self, mount: Mount, place: rest.Place, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if scope["method"] not in place.methods:
            allowed = ", ".join(sorted(place.methods))
            problem = _problem(f"{scope['path']} is asked with {allowed}")
            await _send(send, 405, problem, [(b"allow", allowed.encode())])
            return
        accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        await self._answer(mount, rest.Asked(place, self._rules, self._forms, accept), scope, receive, send)

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
        self, mount: Mount, headers: Headers, asked: Asked, caller: Caller, receive: Receive, send: Send
    ) -> None:
        ends_at_question = self._ends_at_question and asked.dialect.ends_at_question
        runs = mount.peer.watch(caller, asked.request, _cursor(headers))
        if not ends_at_question:
            runs = past_questions(mount.peer, caller, runs)
        try:
            # Until its first event a stream is a call: its caller may leave, and the node may close.
            call = self.streams.called(receive)
            try:
                first = await anext(runs, None)
            finally:
                self.streams.answered(call)
            ends = ENDS_AT_QUESTION if ends_at_question and asked.operation.request is Ask else ENDS
            voice = asked.voice(first, ends)
            failed = partial(_error_item, asked)
            await self.streams.run(runs, first, voice, failed, receive, send, _echo(mount, headers))
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
        headers = _wanted(scope["headers"])
        card = mount.card_in(_version(headers, scope["query_string"]))
        seen = headers.get(b"if-none-match", b"")
        if seen and (
            seen == b"*" or card.etag in [tag.strip().removeprefix(b"W/") for tag in seen.split(b",")]
        ):
            await send({"type": "http.response.start", "status": 304, "headers": card.headers})
            await send({"type": "http.response.body", "body": b""})
            return
        length = (b"content-length", b"%d" % len(card.body))
        await send({"type": "http.response.start", "status": 200, "headers": [*card.headers, length]})
        await send({"type": "http.response.body", "body": card.body if scope["method"] == "GET" else b""})


def _version(headers: Headers, query: bytes) -> str:
    """The version a card is asked for in. Whoever asks in one that is not spoken learns from it which are."""
    try:
        return said(headers.get(b"a2a-version", b""), query)
    except AgentError:
        return ""


def _wanted(sent: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The headers we look at. One that came on several lines is one list (RFC 9110, 5.3)."""
    headers: Headers = {}
    for name, value in sent:
        if name in _WANTED:
            headers[name] = b"%b, %b" % (headers[name], value) if name in headers else value
    return headers


def _check_type(headers: Headers) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if kind not in jsonrpc.MEDIA_TYPES:
        raise error("ContentTypeNotSupported", f"a request is application/json, not {kind or 'untyped'}")
    if headers.get(b"content-encoding", b"identity") not in (b"", b"identity"):
        raise error("ContentTypeNotSupported", "requests are taken as they are, without a Content-Encoding")


def _caller(headers: Headers, asked: Asked) -> Caller:
    key = headers.get(b"idempotency-key", b"")
    extensions = headers.get(b"a2a-extensions") or headers.get(b"x-a2a-extensions", b"")
    tenant = asked.request.tenant
    if not (key or extensions or tenant or asked.names_tasks):
        return _ANYONE
    if len(key) > KEY_BYTES_MAX or not key.isascii():
        raise error(
            "InvalidParams",
            f"an idempotency key is up to {KEY_BYTES_MAX} ASCII characters",
            at="Idempotency-Key",
        )
    named = tuple(uri.strip() for uri in extensions.decode("latin-1").split(",") if uri.strip())
    return Caller(tenant=tenant, key=key.decode(), extensions=named, names_tasks=asked.names_tasks)


_ANYONE = Caller()
# Before 1.0 the header had a prefix; who asks with it is answered with it.
_EXTENSIONS = (b"a2a-extensions", b"x-a2a-extensions")


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
    for name in _EXTENSIONS:
        if asked := headers.get(name):
            active = [uri for uri in (word.strip() for word in asked.split(b",")) if uri in mount.extensions]
            return [(name, b", ".join(active))] if active else []
    return []


async def _send(
    send: Send,
    status: int,
    body: bytes,
    headers: Sequence[tuple[bytes, bytes]] = (),
    media_type: bytes = _JSON,
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", media_type),
                (b"content-length", b"%d" % len(body)),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def _fail(send: Send, asked: Asked, wrong: AgentError) -> None:
    headers = [(b"retry-after", b"%d" % wrong.retry_seconds)] if wrong.retry_seconds else []
    status, body = asked.failed(wrong)
    if status == 200 and asked.refuses_in_stream:
        await _send(send, status, frame(0, body), headers, b"text/event-stream")
    else:
        await _send(send, status, body, headers, asked.media_type)


def _error_item(asked: Asked, wrong: AgentError) -> bytes:
    return asked.failed(wrong)[1]


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"error": words})
