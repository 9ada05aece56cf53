"""HTTP: which address is which agent, what headers mean, and how an answer or a stream is sent.

Raw ASGI, because the path of a request should fit on a screen and cost next to nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import msgspec

from ..core.access import OPERATOR
from ..model.audit import OK, AuditEntry, AuditQuery
from ..model.errors import AgentError, error
from ..model.operations.a2a import Send as Ask
from ..model.peer import SystemClock
from ..wire import jsonrpc, rest
from ..wire.guard import BODY_BYTES_MAX
from ..wire.sse import frame
from .door import NOBODY, RUNNER, Door
from .metrics import MEDIA_TYPE as METRICS_TYPE
from .metrics import Metrics
from .mount import Mount
from .streams import ENDS, ENDS_AT_QUESTION, Streams, past_questions

__all__ = ["Scope", "Site"]
from .visit import (
    Asked,
    Headers,
    Scope,
    Visit,
    caller_of,
    check_type,
    cursor_of,
    echo,
    entry_of,
    shown,
    version_of,
    wanted,
)

log = logging.getLogger("dragoman.serve")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_JSON = b"application/json"
_RULES = rest.Rules()
# What is not for everybody.
_GUARDED = ("/metrics", "/api/audit")
# What the store says in the audit log itself, in the transaction that it happens in.
_CHANGES = ("send", "stream", "cancel")
_now = time.perf_counter


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
        door: Door | None = None,
        audit: Callable[[AuditEntry], None] | None = None,
        audited: Callable[[AuditQuery], Awaitable[Sequence[tuple[int, AuditEntry]]]] | None = None,
    ) -> None:
        self.door = door or Door()
        self.metrics = Metrics(self._gauges)
        self._audit = audit
        self._audited = audited
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

        self._plain_paths = frozenset((*self._peers, *self._cards, "/healthz", "/readyz", *_GUARDED))

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
        """One request, whatever its binding: who is it, what is asked, ask, answer."""
        began = _now()
        visit = Visit(mount, asked, wanted(scope["headers"]))
        outcome = OK
        try:
            await self._let_in(visit, scope)
            await self._read(asked, visit.headers, scope, receive)
            self._allow(visit)
            if asked.operation.kind == "watch":
                await self._stream(visit, receive, send)
                return
            call = self.streams.called(receive)
            try:
                answer = await mount.peer.call(visit.caller, asked.request)
            finally:
                self.streams.answered(call)
            body = asked.replied(answer)
            await _send(send, 200, body, echo(mount, visit.headers), asked.media_type)
        except AgentError as wrong:
            outcome = wrong.name
            await self._fail(send, asked, wrong)
        except asyncio.CancelledError:
            outcome = "Gone"
            if self.streams.is_closing:
                words = "the node is going down; ask again, perhaps another"
                await self._fail(send, asked, error("Unavailable", words))
            elif not self.streams.is_gone(asyncio.current_task()):
                raise
        except Exception:
            outcome = "Internal"
            log.exception("a request failed on our side")
            await self._fail(send, asked, error("Internal"))
        finally:
            self._noted(visit, outcome, _now() - began)

    async def _let_in(self, visit: Visit, scope: Scope) -> None:
        """Who is it? Before a byte of the body is read."""
        door = self.door
        if not door.is_kept and not door.is_limiting:
            return
        visit.address = (scope.get("client") or ("",))[0]
        seen = shown(visit.headers, scope, visit.address)
        visit.guest = door.known(seen) or await door.admit(seen)

    def _allow(self, visit: Visit) -> None:
        """May they, and how much of it?"""
        asked, guest = visit.asked, visit.guest
        door, name = self.door, asked.operation.name
        if guest is not NOBODY:
            door.check(guest, visit.mount.name, name, asked.request)
        if door.is_limiting:
            door.charge(guest, visit.address, name)
        visit.caller = caller_of(visit.headers, asked, guest)

    def _noted(self, visit: Visit, outcome: str, seconds: float) -> None:
        """Count it; and for the audit log whatever the store has not said with the change it made."""
        asked = visit.asked
        operation = getattr(asked, "operation", None)
        name = "unread" if operation is None else operation.name
        self.metrics.answered(name, outcome, asked.dialect.label, seconds)
        if self._audit is not None and (outcome != OK or name not in _CHANGES):
            self._audit(entry_of(visit, name, outcome))

    async def _read(self, asked: Asked, headers: Headers, scope: Scope, receive: Receive) -> None:
        method = scope["method"]
        body = b""
        if method == "POST":
            body = await self._body(headers, receive)
            if (body or asked.needs_body) and (
                headers.get(b"content-type") != b"application/json" or b"content-encoding" in headers
            ):
                check_type(headers)
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

    async def _stream(self, visit: Visit, receive: Receive, send: Send) -> None:
        who = self.door.stream_opened(visit.guest)
        try:
            await self._streamed(visit, receive, send)
        finally:
            self.door.stream_closed(who)

    async def _streamed(self, visit: Visit, receive: Receive, send: Send) -> None:
        mount, asked, headers, caller = visit.mount, visit.asked, visit.headers, visit.caller
        ends_at_question = self._ends_at_question and asked.dialect.ends_at_question
        runs = mount.peer.watch(caller, asked.request, cursor_of(headers))
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
            await self.streams.run(runs, first, voice, failed, receive, send, echo(mount, headers))
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
        elif path == "/" or path in _GUARDED:
            await self._for_guests(path, scope, send)
        else:
            await _send(send, 404, _problem(f"there is nothing at {path}; the agents are listed at /"))

    async def _for_guests(self, path: str, scope: Scope, send: Send) -> None:
        """What only those may read who were let in; and what others did, only who runs the node."""
        seen = shown(wanted(scope["headers"]), scope, (scope.get("client") or ("",))[0])
        try:
            guest = self.door.known(seen) or await self.door.admit(seen)
            if guest is NOBODY and self.door.is_operator(seen):
                guest = RUNNER
            if path == "/api/audit":
                if OPERATOR not in (guest.scopes or ()):
                    raise error("Forbidden", "the audit log is the operator's")
                body, kind = await self._audit_page(scope["query_string"]), _JSON
            elif path == "/metrics":
                body, kind = self.metrics.text(), METRICS_TYPE
            else:
                body, kind = self._index, _JSON
        except AgentError as wrong:
            more = self._headers_of(wrong)
            await _send(send, wrong.row.http, _problem(wrong.message), more)
            return
        await _send(send, 200, body, (), kind)

    async def _audit_page(self, query: bytes) -> bytes:
        said = dict(parse_qsl(query.decode("latin-1")))
        try:
            asked = msgspec.convert(said, AuditQuery, strict=False)
        except msgspec.ValidationError as wrong:
            raise error("InvalidParams", str(wrong)) from None
        assert self._audited is not None, "a site with an audit log can be asked for it"
        found = await self._audited(msgspec.structs.replace(asked, limit=max(1, min(asked.limit, 1000))))
        entries = [{"position": position, **msgspec.to_builtins(entry)} for position, entry in found]
        return msgspec.json.encode({"entries": entries})

    def _gauges(self) -> Mapping[str, float]:
        told = {name: value for name, value in self._health().items() if isinstance(value, int | float)}
        return {**told, "streams": len(self.streams), "calls_waiting": self.streams.calls}

    async def _fail(self, send: Send, asked: Asked, wrong: AgentError) -> None:
        status, body = asked.failed(wrong)
        media_type = asked.media_type
        if status == 200 and asked.refuses_in_stream:
            body, media_type = frame(0, body), b"text/event-stream"
        await _send(send, status, body, self._headers_of(wrong), media_type)

    def _headers_of(self, wrong: AgentError) -> list[tuple[bytes, bytes]]:
        """What an error says in headers: how long to wait, and what to show."""
        headers = []
        if wrong.retry_seconds:
            headers.append((b"retry-after", b"%d" % max(1, math.ceil(wrong.retry_seconds))))
        if wrong.name == "Unauthenticated" and self.door.challenges:
            headers.append((b"www-authenticate", self.door.challenges))
        return headers

    async def _card(self, scope: Scope, send: Send, mount: Mount) -> None:
        headers = wanted(scope["headers"])
        card = mount.card_in(version_of(headers, scope["query_string"]))
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


def _error_item(asked: Asked, wrong: AgentError) -> bytes:
    return asked.failed(wrong)[1]


def _problem(words: str) -> bytes:
    return msgspec.json.encode({"error": words})
