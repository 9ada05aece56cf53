"""The seams: Peer (who answers), Caller (who asks), Clock (what time it is and what ids are new)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from .events import Logged
from .operations.a2a import Reply, Request

__all__ = ["ANYONE", "Answer", "Caller", "Clock", "Peer", "SystemClock", "timestamp", "trace_of"]


class Caller(Struct, frozen=True):
    """Who asks, after authentication, and what came beside the request.

    `key` makes a first message safe to send again; `extensions` are those the caller understands.
    `names_tasks`: the caller may name tasks by ids of its own choice, as callers of 0.1 do. `trace` is the trace the
    call is part of, `credential` what was shown, `via` how it was said: for the audit log and for calls onward.
    """

    owner: str = "anyone"
    tenant: str = ""
    key: str = ""
    extensions: tuple[str, ...] = ()
    names_tasks: bool = False
    trace: str = ""
    credential: str = ""
    via: str = ""


ANYONE = Caller()


def trace_of(traceparent: bytes) -> str:
    """The trace that a W3C `traceparent` names; empty if it is none."""
    found = _TRACEPARENT(traceparent)
    return "" if found is None or found[1] == b"0" * 32 else found[1].decode()


_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?").fullmatch


class Answer:
    """A reply as a value, as its 1.0 JSON, or both; whichever is missing is made when asked for.

    `said` is how a peer elsewhere has said it, in its own version.
    """

    __slots__ = ("_data", "_value", "kind", "said")

    def __init__(self, kind: type[Reply], value: Reply | None = None, data: bytes | None = None) -> None:
        assert value is not None or data is not None, "an answer holds a value or its bytes"
        self.kind = kind
        self._value = value
        self._data = data
        self.said: bytes | None = None

    @property
    def value(self) -> Reply:
        if self._value is None:
            assert self._data is not None
            self._value = _decode(self._data, type=self.kind)
        return self._value

    @property
    def data(self) -> bytes:
        if self._data is None:
            self._data = _encode(self._value)
        return self._data


class Peer(Protocol):
    """Anything with call and watch: an engine's agent here, or a client's agent there."""

    async def call(self, caller: Caller, request: Request) -> Answer:
        """Ask once."""
        ...

    def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        """Follow a task's log. Each item is a run of events that were there together.

        With `after` the first event is the task as of that position; without, as of now.
        """
        ...


class Clock(Protocol):
    """Time and fresh ids: the only two things the heart takes from outside."""

    def now(self) -> float:
        """Seconds since 1970, for people and for due times."""
        ...

    def new_id(self) -> str:
        """An id nobody had before: a UUID of version 7."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ("_at", "_chance")

    def __init__(self) -> None:
        self._chance = ""
        self._at = 0

    now = staticmethod(time.time)

    def new_id(self) -> str:
        # Version 7 keeps the newest rows together in the database's index; 72 random bits remain.
        at = self._at
        if at >= len(self._chance):
            # One system call for many ids.
            self._chance = os.urandom(9 * 256).hex()
            at = 0
        self._at = at + 18
        chance = self._chance[at : at + 18]
        when = f"{int(time.time() * 1000):012x}"
        return f"{when[:8]}-{when[8:]}-7{chance[:3]}-b{chance[3:6]}-{chance[6:]}"


def timestamp(seconds: float) -> str:
    """The protocol's form of a time: UTC with milliseconds."""
    global _said
    now = int(seconds * 1000)
    at, second, spelled = _said
    if now != at:
        # A busy node says the same second thousands of times and the same millisecond a few.
        if now // 1000 != at // 1000:
            second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000))
        spelled = f"{second}.{now % 1000:03d}Z"
        _said = (now, second, spelled)
    return spelled


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode

# The last millisecond that was spelled: it, its second, and how it reads.
_said = (-1, "", "")
