"""What a peer said, as values; and what is wrong with it where it is none: the same for every binding."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ..model.errors import AgentError, Fault
from ..model.events import Event
from ..model.operations.a2a import Operation, Send
from ..model.peer import Answer, Caller
from ..wire.codec import Codec, Raw
from ..wire.sse import Item, Reader
from ..wire.versions import Dialect
from .errors import Unreadable
from .http import Http

__all__ = ["WRONG", "Stream", "beside", "events_of", "reply_of", "start_of", "strange"]

# What a peer may get wrong in a value: all of it is caught where the value is read.
WRONG = (AgentError, Fault, msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError)

Heard = Sequence[Event | Exception]


class _Response(Protocol):
    @property
    def content(self) -> Any: ...
    def release(self) -> Any: ...


class Stream:
    """The items of one connection, as events or as what was wrong with them.

    `hear` reads one item as its binding frames it.
    """

    def __init__(self, http: Http, response: Any, hear: Callable[[Item], Heard]) -> None:
        self._http = http
        self._response = response
        self._hear = hear
        self._reader = Reader(http.body_bytes_max)

    @property
    def beats(self) -> int:
        return self._reader.beats

    @property
    def retry_ms(self) -> int | None:
        return self._reader.retry_ms

    async def read(self) -> list[tuple[str, Event | Exception]] | None:
        """What came together: (id or "", event); None at the end, an empty list for a keep-alive."""
        chunk = await self._http.some(self._response)
        if not chunk:
            return None
        found: list[tuple[str, Event | Exception]] = []
        for item in self._reader.feed(chunk):
            *earlier, last = self._hear(item)
            # Only when all of an item is known has its place been reached.
            found += [("", one) for one in earlier]
            found.append((item.id if item.brought_id else "", last))
        if self._reader.fault is not None:
            found.append(("", self._reader.fault))
        return found

    async def finish(self) -> None:
        """Read the end that follows a last event, so that the connection can be used again."""
        if not self._response.content.at_eof():
            await self._http.some(self._response)

    def close(self) -> None:
        # Closes the connection unless the answer was read to its end.
        self._response.release()


def reply_of(codec: Codec, operation: Operation, result: Raw) -> Answer:
    """What answers a call."""
    try:
        answer = codec.read_reply(operation, result)
        answer.said = bytes(result)
        return answer
    except WRONG as problem:
        raise Fault(f"the peer's result is not valid: {problem}", start=start_of(result)) from problem


def events_of(codec: Codec, item: Raw) -> Heard:
    """What one item of a stream says. A stream goes on past one that says nothing."""
    try:
        return codec.read_item(item)
    except WRONG as problem:
        return (Unreadable(f"the peer sent an item that is not valid: {problem}", start=start_of(item)),)


def beside(caller: Caller, operation: Operation, dialect: Dialect) -> dict[str, str]:
    """The headers that belong to this request alone."""
    headers = {"A2A-Version": dialect.header} if dialect.header else {}
    if caller.key and operation.request is Send:
        headers["Idempotency-Key"] = caller.key
    if caller.extensions and dialect.extensions:
        headers[dialect.extensions] = ", ".join(caller.extensions)
    if caller.trace:
        headers["traceparent"] = f"00-{caller.trace}-{os.urandom(8).hex()}-01"
    return headers


def strange(response: Any) -> Fault:
    """An answer of a kind that belongs to no binding, such as a page of a web site."""
    kind = response.headers.get("Content-Type", "no content type")
    return Fault(
        f"{response.url} answered with {kind}: that is not an agent's answer",
        url=str(response.url),
        content_type=kind,
    )


def start_of(answer: Raw) -> str:
    """Enough of what was seen to recognise it."""
    return bytes(memoryview(answer)[:200]).decode("utf-8", "replace")
