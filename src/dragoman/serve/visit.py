"""One request on its way through: where to, by whom, and what its headers mean."""

from __future__ import annotations

import time
from collections.abc import MutableMapping, Sequence
from typing import Any

from ..model.audit import AuditEntry
from ..model.errors import AgentError, error
from ..model.peer import ANYONE, Caller, trace_of
from ..wire import jsonrpc, rest
from ..wire.versions import said
from .door import NOBODY, Guest, Shown
from .mount import Mount

__all__ = [
    "Asked",
    "Headers",
    "Scope",
    "Visit",
    "caller_of",
    "check_type",
    "cursor_of",
    "echo",
    "entry_of",
    "shown",
    "version_of",
    "wanted",
]

Scope = MutableMapping[str, Any]
Headers = dict[bytes, bytes]
Asked = jsonrpc.Asked | rest.Asked

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
        b"authorization",
        b"x-api-key",
        b"traceparent",
    }
)


def wanted(sent: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The headers we look at. One that came on several lines is one list (RFC 9110, 5.3)."""
    headers: Headers = {}
    for name, value in sent:
        if name in _WANTED:
            headers[name] = b"%b, %b" % (headers[name], value) if name in headers else value
    return headers


def check_type(headers: Headers) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if kind not in jsonrpc.MEDIA_TYPES:
        raise error("ContentTypeNotSupported", f"a request is application/json, not {kind or 'untyped'}")
    if headers.get(b"content-encoding", b"identity") not in (b"", b"identity"):
        raise error("ContentTypeNotSupported", "requests are taken as they are, without a Content-Encoding")


def version_of(headers: Headers, query: bytes) -> str:
    """The version a card is asked for in. Whoever asks in one that is not spoken learns from it which are."""
    try:
        return said(headers.get(b"a2a-version", b""), query)
    except AgentError:
        return ""


class Visit:
    """One request on its way through: where to, as what, by whom."""

    __slots__ = ("address", "asked", "caller", "guest", "headers", "mount")

    def __init__(self, mount: Mount, asked: Asked, headers: Headers) -> None:
        self.mount = mount
        self.asked = asked
        self.headers = headers
        self.guest = NOBODY
        self.caller = ANYONE
        self.address = ""


def shown(headers: Headers, scope: Scope, address: str) -> Shown:
    get = headers.get
    certificate = scope.get("certificate", "")
    return Shown(get(b"authorization", b""), get(b"x-api-key", b""), certificate, address)


def caller_of(headers: Headers, asked: Asked, guest: Guest) -> Caller:
    get = headers.get
    key, trace = get(b"idempotency-key", b""), get(b"traceparent", b"")
    extensions = get(b"a2a-extensions") or get(b"x-a2a-extensions", b"")
    if len(key) > KEY_BYTES_MAX or not key.isascii():
        raise error(
            "InvalidParams",
            f"an idempotency key is up to {KEY_BYTES_MAX} ASCII characters",
            at="Idempotency-Key",
        )
    named: tuple[str, ...] = ()
    if extensions:
        named = tuple(uri.strip() for uri in extensions.decode("latin-1").split(",") if uri.strip())
    return Caller(
        guest.owner,
        guest.tenant or asked.request.tenant,
        key.decode(),
        named,
        asked.names_tasks,
        trace_of(trace) if trace else "",
        guest.id,
        asked.dialect.label,
    )


def entry_of(visit: Visit, operation: str, outcome: str) -> AuditEntry:
    """What is said of a call that changed nothing."""
    caller, asked = visit.caller, visit.asked
    return AuditEntry(
        time.time(),
        visit.guest.owner,
        visit.mount.name,
        operation,
        outcome,
        asked.task_id if operation != "unread" else "",
        trace=caller.trace or trace_of(visit.headers.get(b"traceparent", b"")),
        tenant=visit.guest.tenant,
        credential=visit.guest.id,
        via=asked.dialect.label,
    )


# Before 1.0 the header had a prefix; who asks with it is answered with it.
_EXTENSIONS = (b"a2a-extensions", b"x-a2a-extensions")


def cursor_of(headers: Headers) -> int | None:
    text = headers.get(b"last-event-id")
    if text is None or text == b"":
        return None
    if not text.isdigit() or len(text) > 18:
        raise error(
            "InvalidParams", "the last event's id is a whole number, as it was sent", at="Last-Event-ID"
        )
    return int(text)


def echo(mount: Mount, headers: Headers) -> list[tuple[bytes, bytes]]:
    """Of the extensions a caller asked for, those that this agent has are said back."""
    for name in _EXTENSIONS:
        if asked := headers.get(name):
            active = [uri for uri in (word.strip() for word in asked.split(b",")) if uri in mount.extensions]
            return [(name, b", ".join(active))] if active else []
    return []
