"""Connections: how large the head of a request may be, and for how long nothing may move in either direction.

The server under us knows no such bounds, and a head that never ends is the cheapest attack there is.
"""

from __future__ import annotations

import asyncio

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["HEAD_BYTES_MAX", "HEAD_SECONDS", "Heads"]

HEAD_BYTES_MAX = 32 * 1024
HEAD_SECONDS = 10.0
# A body comes at this rate at least, seen over this time.
BODY_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 1024
# An answer of which nothing was taken for so long is not waited for.
STALL_SECONDS = 45.0
LINGER_SECONDS = 1.0


class Heads(HttpToolsProtocol):
    """A bounded connection. A request that comes in one piece and an answer that fits cost no timer."""

    _certificate = ""
    _is_in_head = True
    _is_in_body = False
    _is_refused = False
    _head_bytes = 0
    _body_bytes = 0
    _piece_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._certificate = _subject_of(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._piece_bytes = len(data)
        if self._is_in_head and self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(b"431 Request Header Fields Too Large", b"The head of a request is up to 32 kB.\n")
            return
        was_idle = self.timeout_keep_alive_task is not None
        scope = self.scope
        super().data_received(data)
        # Empty lines before a request begin nothing, but they are no reason to wait for ever.
        if self._is_in_head or (was_idle and self.scope is scope):
            self._head_bytes += len(data)
            if self._deadline is None:
                self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)
        elif self._is_in_body:
            self._body_bytes += len(data)
            if self._deadline is None:
                self._deadline = self.loop.call_later(BODY_SECONDS, self._look_at_body)

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._disarm()
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._is_in_body = True
        self._body_bytes = 0
        self._disarm()
        if self._piece_bytes > HEAD_BYTES_MAX and sum(map(_bytes, self.headers)) > HEAD_BYTES_MAX:
            raise httptools.HttpParserError("the head is too large")
        if self._certificate:
            self.scope["certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self.headers and sum(map(_bytes, self.headers)) > HEAD_BYTES_MAX:
            self._refuse(b"431 Request Header Fields Too Large", b"The head of a request is up to 32 kB.\n")
        else:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._stall is not None:
            self._stall.cancel()
        super().connection_lost(exc)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look_at_body(self) -> None:
        self._deadline = None
        came, self._body_bytes = self._body_bytes, 0
        if self.cycle.response_complete:
            # It was refused unread: nobody waits for the rest.
            self.transport.close()
            return
        # A request that waits behind another is not read on; that is our doing.
        if came < BODY_BYTES_PER_SECOND * BODY_SECONDS and not self.flow.read_paused:
            self._refuse(b"408 Request Timeout", b"A body comes at 1 kB a second or faster.\n")
        else:
            self._deadline = self.loop.call_later(BODY_SECONDS, self._look_at_body)

    # Answers. To close a connection is to wait until what was written has been taken: perhaps for ever.

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_taking()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_taking()

    def _watch_taking(self) -> None:
        if self._stall is None:
            left = self.transport.get_write_buffer_size()
            self._stall = self.loop.call_later(STALL_SECONDS, self._look_at_taking, left)

    def _look_at_taking(self, left: int) -> None:
        self._stall = None
        still = self.transport.get_write_buffer_size()
        if still and still == left:
            self.transport.abort()
        elif still:
            self._watch_taking()

    def _late(self) -> None:
        self._deadline = None
        self._refuse(b"408 Request Timeout", b"The head of a request comes within 10 seconds.\n")

    def _refuse(self, status: bytes, words: bytes) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        if not self.transport.is_closing():
            self._is_refused = True
            self.transport.write(head % (status, len(words)) + words)
            # To close now, with something of theirs unread, would take the answer away from them.
            self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _subject_of(transport: asyncio.Transport) -> str:
    """The common name in the certificate that the other side has shown and TLS has verified."""
    shown = transport.get_extra_info("peercert")
    for names in shown.get("subject", ()) if shown else ():
        for name, value in names:
            if name == "commonName":
                return str(value)
    return ""


def _bytes(header: tuple[bytes, bytes]) -> int:
    return len(header[0]) + len(header[1])
