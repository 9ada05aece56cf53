"""What a turn remembers of itself: its finished steps and its questions, in a log of its own.

A turn that is run again finds here what it need not do again. Entries are given back in the order
in which they were written, so that concurrent branches speak in the order they spoke in before.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

__all__ = ["Asked", "Entry", "Journal", "Mismatch", "Stepped", "digest", "journal_log"]

# How long a remembered entry waits for its turn before the agent is told that it changed its ways.
# Another branch may be about something long that is no step: better late than wrong.
STALL_SECONDS = 300.0


class Stepped(Struct, frozen=True, tag="step", omit_defaults=True):
    """A step ended: its result, and how much the turn had said by then."""

    key: str
    args: str
    result: msgspec.Raw
    said: int


class Asked(Struct, frozen=True, tag="ask", omit_defaults=True):
    """A question was put: the position of it in the task's log."""

    ordinal: int
    seq: int
    said: int


Entry = Stepped | Asked

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class Mismatch(Exception):
    """An agent that is run again does other things than it did before."""


def journal_log(task_id: str) -> str:
    """The name of the journal's log. No task operation can spell it: ids hold no colon."""
    return f"turn:{task_id}:1"


def digest(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A short form of a step's explicit arguments, equal iff they are."""
    try:
        data = msgspec.json.encode([args, kwargs], order="sorted")
    except TypeError as wrong:
        raise TypeError(
            f"step {name!r} got an argument that is not JSON ({wrong}): pass plain values, "
            "or close over the rest: turn.step(name, lambda: call(thing))"
        ) from None
    return hashlib.blake2b(data, digest_size=12).hexdigest()


class Journal:
    """The entries of earlier runs, and the place where new ones are written."""

    def __init__(self, events: Sequence[bytes] = ()) -> None:
        self._entries: list[Entry] = [_decode(event) for event in events]
        self._at = 0
        self._spoken = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._used: set[str] = set()
        self._steps = {entry.key: i for i, entry in enumerate(self._entries) if isinstance(entry, Stepped)}
        self._asks = {entry.ordinal: i for i, entry in enumerate(self._entries) if isinstance(entry, Asked)}
        self.seq = len(self._entries)
        # What was said before the last entry belongs to it and is not said again.
        self.said = self._entries[-1].said if self._entries else 0

    def skip(self) -> Sequence[Asked]:
        """Take all entries as given, whoever asks for none of them; the questions among them."""
        self._at, self._spoken = len(self._entries), self.said
        return [entry for entry in self._entries if isinstance(entry, Asked)]

    def use(self, key: str) -> None:
        """A step's name stands for its result, so it is used once."""
        if key in self._used:
            raise ValueError(f"step {key!r} was already used in this turn: give the second one its own key=")
        self._used.add(key)

    async def stepped(self, key: str, args: str) -> msgspec.Raw | None:
        """The result of a step that ended in an earlier run."""
        place = self._steps.get(key)
        if place is None:
            return None
        entry = self._entries[place]
        assert isinstance(entry, Stepped), "places of steps hold steps"
        if entry.args != args:
            raise Mismatch(
                f"step {key!r} was finished with other arguments (then {entry.args}, now {args}): "
                "a turn that runs again must ask for the same steps, or use another key="
            )
        await self._in_order(place)
        return entry.result

    async def asked(self, ordinal: int) -> int | None:
        """The position of a question that was put in an earlier run."""
        place = self._asks.get(ordinal)
        if place is None:
            return None
        entry = self._entries[place]
        assert isinstance(entry, Asked), "places of questions hold questions"
        await self._in_order(place)
        return entry.seq

    async def _in_order(self, place: int) -> None:
        # What was said before it must be said again first: else a branch that speaks after its own
        # step would be overtaken by the branch of this one.
        if place != self._at or self._spoken < self._entries[place].said:
            waiter = self._waiting[place] = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait_for(waiter, STALL_SECONDS)
            except TimeoutError:
                raise Mismatch(f"the turn ran again and {self._missing()}") from None
        self._at += 1
        # The branch that got this entry goes on first; the next entry is given when it has paused.
        asyncio.get_running_loop().call_soon(self._next)

    def spoke(self, said: int) -> None:
        """The turn said again what it had said before, so much of it by now."""
        self._spoken = said
        if self._waiting:
            self._next()

    def _missing(self) -> str:
        entry = self._entries[self._at]
        if self._at in self._waiting:
            return f"did not say what it had said before ({self._spoken} of {entry.said})"
        what = f"step {entry.key!r}" if isinstance(entry, Stepped) else f"question {entry.ordinal}"
        return f"did not come to {what}, which it had come to before"

    def _next(self) -> None:
        if self._at in self._waiting and self._entries[self._at].said <= self._spoken:
            waiter = self._waiting.pop(self._at)
            if not waiter.done():
                waiter.set_result(None)

    @staticmethod
    def spell(entry: Entry) -> bytes:
        """The bytes of an entry."""
        return _encode(entry)
