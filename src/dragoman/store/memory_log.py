"""A log as the memory store keeps it: a list of events while it grows, a few hundred bytes once it is over.

Events of one task say its ids and the same few phrases again and again. In a settled log those are
single bytes below 0x20, which no JSON holds: ten thousand finished tasks stay small, and being
bytes they are nothing to the garbage collector.
"""

from __future__ import annotations

import asyncio

from ..core.tasks import TERMINAL
from ..model.task import State
from .store import Head, Label, Query, Row

__all__ = ["Log", "pack", "unpack"]

_STATUS = b'{"statusUpdate":{"taskId":"\x01","contextId":"\x02","status":{"state":"TASK_STATE_'
_ARTIFACT = b'{"artifactUpdate":{"taskId":"\x01","contextId":"\x02","artifact":{"artifactId":"'
_BELONGS = b'"contextId":"\x02","taskId":"\x01"'
# Inner phrases first: the outer ones are spelled with what those became.
_PHRASES = ((_STATUS, b"\x03"), (_ARTIFACT, b"\x04"), (_BELONGS, b"\x05"))
_SEPARATOR = b"\n"
# A longer log is long because of what it carries: to pack it would copy that, and save next to nothing.
PACKED_BYTES_MAX = 256 * 1024


def pack(events: list[bytes], task_id: str, context: str) -> bytes | list[bytes]:
    """All events as one short string of bytes; those of a long log as they are."""
    if sum(map(len, events)) > PACKED_BYTES_MAX:
        return events
    packed = _SEPARATOR.join(events).replace(task_id.encode(), b"\x01")
    if context:
        packed = packed.replace(context.encode(), b"\x02")
    for phrase, mark in _PHRASES:
        packed = packed.replace(phrase, mark)
    return packed


def unpack(packed: bytes, task_id: str, context: str) -> list[bytes]:
    """The events as they were."""
    for phrase, mark in _PHRASES:
        packed = packed.replace(mark, phrase)
    return packed.replace(b"\x02", context.encode()).replace(b"\x01", task_id.encode()).split(_SEPARATOR)


class Log:
    """One log. `who` is its label without context and trace, shared by all logs of one caller and agent."""

    __slots__ = (
        "append_id",
        "at",
        "born",
        "context",
        "events",
        "hidden",
        "keys",
        "order",
        "seq",
        "snapshot",
        "state",
        "trace",
        "waiters",
        "who",
    )

    def __init__(self, who: Label, context: str, trace: str, born: int) -> None:
        self.who = who
        self.context = context
        self.trace = trace
        # After which position of the feed it began.
        self.born = born
        self.state = State.UNKNOWN
        self.at = 0.0
        self.hidden = False
        self.seq = 0
        self.append_id = ""
        self.events: list[bytes] | bytes = []
        self.snapshot: tuple[int, bytes] | None = None
        self.waiters: list[asyncio.Future[None]] | None = None
        self.order = 0
        # The records that die with this log.
        self.keys: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    def matches(self, query: Query) -> bool:
        """Whether a list that is asked for so holds this log."""
        who = self.who
        return (
            (query.owner is None or who.owner == query.owner)
            and (query.tenant is None or who.tenant == query.tenant)
            and (query.agent is None or who.agent == query.agent)
            and not self.hidden
            and (not query.context or self.context == query.context)
            and (query.state is None or self.state is query.state)
            and (query.since is None or self.at >= query.since)
        )

    def row(self, name: str) -> Row:
        who = self.who
        label = Label(who.kind, who.owner, who.tenant, who.agent, self.context, self.trace)
        return Row(name, label, Head(self.state, self.at, self.hidden), self.seq)

    def growing(self, name: str) -> list[bytes]:
        """The events as a list that may be added to."""
        events = self.events
        if isinstance(events, bytes):
            events = self.events = unpack(events, name, self.context)
        return events

    def wake(self) -> None:
        """Whoever waits for this log looks again."""
        waiters, self.waiters = self.waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)
