"""The head of a request: how large it may be, and how long it may take to come.

The server under us knows no such bounds, and a head that never ends is the cheapest attack there is.
"""

from __future__ import annotations

import asyncio

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["HEAD_BYTES_MAX", "HEAD_SECONDS", "Heads"]

HEAD_BYTES_MAX = 32 * 1024
HEAD_SECONDS = 10.0
LINGER_SECONDS = 1.0


class Heads(HttpToolsProtocol):
    """A connection whose heads are bounded. A head that comes in one piece costs no timer."""

    _is_in_head = True
    _is_refused = False
    _head_bytes = 0
    _piece_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._piece_bytes = len(data)
        if self._is_in_head and self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(b"431 Request Header Fields Too Large", b"The head of a request is up to 32 kB.\n")
            return
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._deadline is None:
                self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._piece_bytes > HEAD_BYTES_MAX and sum(map(_bytes, self.headers)) > HEAD_BYTES_MAX:
            raise httptools.HttpParserError("the head is too large")
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self.headers and sum(map(_bytes, self.headers)) > HEAD_BYTES_MAX:
            self._refuse(b"431 Request Header Fields Too Large", b"The head of a request is up to 32 kB.\n")
        else:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

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


def _bytes(header: tuple[bytes, bytes]) -> int:
    return len(header[0]) + len(header[1])
