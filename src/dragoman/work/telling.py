"""How what a turn says gets into its task's log: together when it can, in order always, once.

While a commit is in flight what is said waits and shares the next. A caller who spoke meanwhile is
taken in and appended after; a claim that is no longer ours ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ..core.tasks import Fold, Give, Move, Say, decide
from ..model.events import decode, encode
from ..model.peer import Clock, timestamp
from ..model.task import State
from ..store.folding import fold_of
from ..store.store import (
    Append,
    Batch,
    Claim,
    Conflict,
    Fenced,
    Head,
    Label,
    NewWork,
    Record,
    Refusal,
    Store,
    Work,
)
from .journal import Asked, Entry, Journal, journal_log

__all__ = ["Lost", "Telling"]

# A running task's fold is stored after this many events, then whenever its log has doubled.
SNAPSHOT_EVENTS = 256


class Lost(Exception):
    """This turn no longer owns its task: it was canceled, or another node took over."""


class Telling:
    """The writing end of one task's log, under a claim."""

    __slots__ = (
        "_claim",
        "_clock",
        "_in_flight",
        "_is_due",
        "_moved_at",
        "_snapshot_at",
        "_store",
        "_waiting",
        "asked_at",
        "fold",
        "journal",
        "label",
        "pending",
        "refusal",
        "seq",
        "work",
    )

    def __init__(self, store: Store, clock: Clock, work: Work, fold: Fold, seq: int, label: Label) -> None:
        self._store = store
        self._clock = clock
        self.label = label
        # Made when the first step or question needs it.
        self.journal: Journal | None = None
        self.under(work, fold, seq)
        self.pending: list[bytes] = []
        self.refusal: Refusal | None = None
        self._in_flight: list[bytes] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._is_due = False
        self._snapshot_at = 0
        # When the status last changed: lists go by it, and a chunk does not change it.
        self._moved_at = 0.0
        # Where the question stands that was asked last.
        self.asked_at = 0

    def under(self, work: Work, fold: Fold, seq: int) -> None:
        """From here on, under this claim, after this position."""
        self.work = work
        self.fold = fold
        self.seq = seq
        self._claim = Claim(work.id, work.epoch)

    def push(self, command: Move | Give | Say) -> None:
        """Decide, let it happen here, and have it wait for the log."""
        if self.refusal is not None:
            raise Lost("this turn no longer owns its task") from self.refusal
        fold, now = self.fold, self._clock.now()
        if type(command) is not Give:
            self._moved_at = now
        for event in decide(fold, command, timestamp(now)):
            # First, because it fails on what is not JSON: then nothing has happened, and the agent may still fail.
            data = encode(event)
            fold.apply(event)
            self.pending.append(data)

    def soon(self) -> None:
        """Append at the next pause: what is said without one goes into the log together."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._come_due)

    def _come_due(self) -> None:
        self._is_due = False
        self.flush()

    def flush(
        self,
        entry: Entry | None = None,
        *,
        work: Sequence[NewWork] = (),
        ends: Sequence[int] = (),
        records: Sequence[Record] = (),
        is_last: bool = False,
    ) -> None:
        """Append what waits, with a journal entry and the work it causes; `is_last` settles for good."""
        nothing = not (self.pending or entry or ends or records)
        if self._in_flight is not None or self.refusal is not None or nothing:
            return
        events, self.pending = self.pending, []
        self._in_flight = events
        appends = [self._append(events, is_last)] if events else []
        if entry is not None:
            appends.append(self._journalled(entry))
            if type(entry) is Asked:
                self.asked_at = entry.seq
        closes = (journal_log(self.fold.id),) if is_last and self.journal is not None else ()
        batch = Batch(appends, work, records, self._claim, ends, (), closes)
        self._store.submit(batch, lambda refusal: self._done(refusal, batch, entry))

    def _append(self, events: list[bytes], is_last: bool) -> Append:
        fold = self.fold
        seq = self.seq + len(events)
        head = snapshot = None
        if fold.reply is not None:
            head = Head(State.COMPLETED, self._moved_at, True)
        else:
            if not (events[0].startswith(_CHUNK) and (len(events) == 1 or _are_chunks(events))):
                head = Head(fold.status.state, self._moved_at, not fold.is_told)
            if is_last or seq - self._snapshot_at >= max(SNAPSHOT_EVENTS, self._snapshot_at):
                snapshot = _encode(fold.task())
                self._snapshot_at = seq
        name = f"{self.work.id}.{self.work.epoch}.{self.seq}"
        return Append(fold.id, self.seq, name, events, head, None, snapshot)

    def _journalled(self, entry: Entry) -> Append:
        assert self.journal is not None, "entries are written to a journal"
        after, label = self.journal.seq, None
        if after == 0:
            label = Label("turn", self.label.owner, self.label.tenant, self.label.agent)
        name = f"{self.work.id}.{self.work.epoch}.{after}"
        return Append(journal_log(self.fold.id), after, name, (self.journal.spell(entry),), None, label)

    def _done(self, refusal: Refusal | None, batch: Batch, entry: Entry | None) -> None:
        events = self._in_flight
        assert events is not None, "a commit that nobody asked for came back"
        self._in_flight = None
        if refusal is None or batch.claim is not self._claim:
            if batch.claim is self._claim:
                self.seq += len(events)
            # Else the question was answered before its own commit was: that it is in the log is known.
            if entry is not None and self.journal is not None:
                self.journal.seq += 1
        elif isinstance(refusal, Conflict) and refusal.log == self.fold.id and refusal.seq > self.seq:
            self._catch_up(batch, events, entry)
            return
        else:
            self.refusal = refusal
        if self.pending:
            self.flush()
        if self._waiting and not (self.pending and self.refusal is None):
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    def _catch_up(self, batch: Batch, events: list[bytes], entry: Entry | None) -> None:
        """A caller spoke meanwhile: take in what they said, then append after it."""
        news = self._store.read(self.fold.id, self.seq)
        self.seq += len(news)
        fold = fold_of(self._store, self.fold.id, self.seq)
        for data in events:
            fold.apply(decode(data))
        self.fold = fold
        self._in_flight = events
        appends = [self._append(events, batch.appends[0].snapshot is not None)]
        if isinstance(entry, Asked):
            entry = msgspec.structs.replace(entry, seq=entry.seq + len(news))
            self.asked_at = entry.seq
        if entry is not None:
            appends.append(self._journalled(entry))
        for data in self.pending:
            fold.apply(decode(data))
        retry = msgspec.structs.replace(batch, appends=appends)
        self._store.submit(retry, lambda refusal: self._done(refusal, retry, entry))

    async def drained(self) -> None:
        """Until everything said is in the log."""
        while self._in_flight is not None or (self.pending and self.refusal is None):
            if self._in_flight is None:
                self.flush()
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        if self.refusal is not None:
            raise Lost("this turn no longer owns its task") from self.refusal

    @property
    def is_flying(self) -> bool:
        """Whether a commit is under way or was refused: then it must be waited for."""
        return self._in_flight is not None or self.refusal is not None

    def lose(self) -> None:
        """The task is over by somebody else's word: nothing more is taken."""
        self.refusal = self.refusal or Fenced("the task is over")


def _are_chunks(events: list[bytes]) -> bool:
    return all(event.startswith(_CHUNK) for event in events)


_encode = msgspec.json.Encoder().encode
_CHUNK = b'{"artifactUpdate":'
