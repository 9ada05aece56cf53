"""The store in memory: every law but durability, for tests, trials and agents that may forget.

A settled log is one string of bytes, not a list of them, and the fold of a finished task is made
again when somebody asks: ten thousand finished tasks stay small and invisible to the collector.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice

from ..model.audit import AuditEntry, AuditQuery
from ..model.errors import error
from ..model.peer import ANYONE
from .memory_log import Log, pack, unpack
from .memory_shared import OWNER_ACTIVE_MAX, MemoryAudit, Shared
from .memory_work import MemoryWork
from .store import (
    Append,
    Batch,
    Claimant,
    Conflict,
    Done,
    Fed,
    Fenced,
    Found,
    Label,
    Present,
    Query,
    Record,
    Refusal,
    Row,
    StoreFull,
    Work,
)

__all__ = ["MemoryStore"]

TASKS_MAX = 1000
TOMBSTONES_MAX = 10_000
FEED_MAX = 100_000
# How many folds of finished tasks are kept at hand; older ones are folded again when read.
FRESH_FOLDS = 64


class MemoryStore:
    """See `Store` for what each method promises."""

    def __init__(self, *, tasks_max: int = TASKS_MAX, owner_active_max: int = OWNER_ACTIVE_MAX) -> None:
        self.tasks_max = tasks_max
        self._shared = Shared(owner_active_max)
        self._audit = MemoryAudit()
        # Task logs in the order of their last status change: lists read it backwards, eviction forwards.
        # (A plain dict that loses its first entries is slow to find its first.)
        self._tasks: OrderedDict[str, Log] = OrderedDict()
        self._journals: dict[str, Log] = {}
        self._who: dict[tuple[str, str, str, str], Label] = {}
        self._over = 0
        self._changes = 0
        self._records: dict[str, tuple[bytes, str]] = {}
        self._work = MemoryWork()
        self._feed: list[str] = []
        self._feed_seqs = array("L")
        self._feed_start = 0
        self._tombs: OrderedDict[str, None] = OrderedDict()
        self._fresh: deque[str] = deque()
        self._unpacked: tuple[bytes, list[bytes]] = (b"", [])

    # Writing.

    def submit(self, batch: Batch, done: Done) -> None:
        done(self._apply(batch))

    async def commit(self, batch: Batch) -> None:
        refusal = self._apply(batch)
        if refusal is not None:
            raise refusal

    def _apply(self, batch: Batch) -> Refusal | None:
        begun = 0
        logs: list[Log | None] = []
        for append in batch.appends:
            log = self._log(append.log)
            logs.append(log)
            if log is None:
                if append.after or append.label is None or append.log in self._tombs:
                    return Conflict(append.log, 0)
                if append.label.kind == "task":
                    begun += 1
                    if append.label.owner != ANYONE.owner and self._shared.is_full(append.label):
                        return self._shared.refusal
            elif log.seq != append.after:
                # Law 3: who lost the answer asks again with the same append id and gets it again.
                return None if log.append_id == append.id else Conflict(append.log, log.seq)
        refusal = self._refuse(batch, begun)
        if refusal is not None:
            return refusal
        for append, log in zip(batch.appends, logs, strict=True):
            self._append(append, log)
        if batch.claim is not None and batch.appends:
            self._work.prove(batch.claim)
        for record in batch.records:
            self._keep(record)
        if batch.ends or batch.drops:
            self._work.end(batch.ends, batch.drops)
        for name in batch.closes:
            self._delete(name)
        if batch.work:
            self._work.put(batch.work)
        if batch.audit:
            self._audit.add(batch.audit)
        return None

    def _refuse(self, batch: Batch, begun: int) -> Refusal | None:
        claim = batch.claim
        if claim is not None and not self._work.is_held(claim):
            return Fenced(f"work {claim.work} is no longer held at epoch {claim.epoch}")
        for record in batch.records:
            if record.is_new:
                there = self._records.get(_key(record.kind, record.key))
                if there is not None:
                    return Present(Record(record.kind, record.key, *there))
        if begun and len(self._tasks) + begun > self.tasks_max and not self._make_room(begun):
            return StoreFull(f"{self.tasks_max} tasks are active")
        return None

    def _log(self, name: str) -> Log | None:
        return self._tasks.get(name) or self._journals.get(name)

    def _append(self, append: Append, log: Log | None) -> None:
        name, head = append.log, append.head
        if log is None:
            assert append.label is not None, "what begins a log says what it is about"
            log = self._begin(name, append.label)
        elif head is not None and name in self._tasks:
            self._tasks.move_to_end(name)
        events = log.events
        if isinstance(events, bytes):
            events = log.growing(name)
        events.extend(append.events)
        log.seq += len(append.events)
        log.append_id = append.id
        if append.snapshot is not None:
            log.snapshot = (log.seq, append.snapshot)
        if head is not None:
            was_over = log.is_over
            log.state, log.at, log.hidden = head.state, head.at, head.hidden
            if log.who.kind == "task":
                self._changed(name, log, was_over)
        if log.who.kind == "task" and append.events:
            self._note(name, log.seq)
        if log.waiters is not None:
            log.wake()

    def _begin(self, name: str, label: Label) -> Log:
        key = (label.kind, label.owner, label.tenant, label.agent)
        who = self._who.get(key)
        if who is None:
            who = self._who[key] = Label(*key)
        log = Log(who, label.context, label.trace, self._feed_start + len(self._feed))
        if label.kind == "task":
            self._tasks[name] = log
            self._shared.began(who, label.context)
        else:
            self._journals[name] = log
        return log

    def _changed(self, name: str, log: Log, was_over: bool) -> None:
        self._changes += 1
        log.order = self._changes
        is_over = log.is_over
        if is_over == was_over:
            return
        self._over += is_over - was_over
        self._shared.moved(log.who, -1 if is_over else 1)
        if not is_over:
            return
        assert isinstance(log.events, list), "a log is packed when it is over, once"
        log.events = pack(log.events, name, log.context)
        if log.snapshot is not None:
            self._fresh.append(name)
            if len(self._fresh) > FRESH_FOLDS:
                stale = self._tasks.get(self._fresh.popleft())
                if stale is not None and stale.is_over:
                    stale.snapshot = None

    def _note(self, name: str, seq: int) -> None:
        self._feed.append(name)
        self._feed_seqs.append(seq)
        if len(self._feed) > FEED_MAX:
            half = FEED_MAX // 2
            del self._feed[:half], self._feed_seqs[:half]
            self._feed_start += half

    def _keep(self, record: Record) -> None:
        key = _key(record.kind, record.key)
        self._records[key] = (record.body, record.log)
        log = self._log(record.log)
        if log is not None and key not in log.keys:
            log.keys = (*log.keys, key)

    # Room.

    def _make_room(self, wanted: int) -> bool:
        if self._over < len(self._tasks) + wanted - self.tasks_max:
            return False
        oldest = islice((name for name, log in self._tasks.items() if log.is_over), wanted)
        for name in list(oldest):
            self._bury(name)
        return True

    def _bury(self, name: str) -> None:
        self._delete(name)
        self._tombs[name] = None
        if len(self._tombs) > TOMBSTONES_MAX:
            self._tombs.popitem(last=False)

    def _delete(self, name: str) -> None:
        log = self._tasks.pop(name, None)
        if log is not None:
            self._over -= log.is_over
            self._shared.gone(log.who, log.context, log.is_over)
        else:
            log = self._journals.pop(name, None)
        if log is not None:
            for key in log.keys:
                if self._records.get(key, ("", ""))[1] == name:
                    del self._records[key]
            log.wake()

    async def sweep(self, before: float, limit: int) -> int:
        busy = self._work.logs()
        past = [
            name for name, log in self._tasks.items() if log.is_over and log.at < before and name not in busy
        ]
        for name in past[:limit]:
            self._bury(name)
        return len(past[:limit])

    # Reading.

    def row(self, log: str) -> Row | None:
        found = self._log(log)
        return None if found is None else found.row(log)

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        found = self._log(log)
        if found is None or found.seq <= after:
            return ()
        events = found.events
        if isinstance(events, bytes):
            # Who reads a log that is over reads on: it is unpacked once, not once for every few hundred events.
            if self._unpacked[0] is not events:
                self._unpacked = (events, unpack(events, log, found.context))
            events = self._unpacked[1]
        return events[after : after + limit]

    def snapshot(self, log: str, at: int | None = None) -> tuple[int, bytes] | None:
        found = self._log(log)
        if found is None or found.snapshot is None:
            return None
        return found.snapshot if at is None or found.snapshot[0] <= at else None

    def record(self, kind: str, key: str) -> bytes | None:
        there = self._records.get(_key(kind, key))
        return None if there is None else there[0]

    async def wait(self, log: str, after: int) -> None:
        found = self._log(log)
        if found is None or found.seq > after:
            return
        waiter = asyncio.get_running_loop().create_future()
        if found.waiters is None:
            found.waiters = [waiter]
        else:
            found.waiters.append(waiter)
        try:
            await waiter
        finally:
            # Who stopped waiting leaves nothing behind: a question may be watched in vain a thousand times.
            if waiter.cancelled() and waiter in (found.waiters or ()):
                found.waiters.remove(waiter)

    async def find(self, query: Query) -> Found:
        start = _place(query.token)
        rows: list[Row] = []
        total = 0
        more = False
        for name in reversed(self._tasks):
            log = self._tasks[name]
            if not log.matches(query):
                continue
            total += 1
            if start is not None and log.order >= start:
                continue
            if len(rows) < query.size:
                rows.append(log.row(name))
            else:
                more = True
        token = str(self._tasks[rows[-1].log].order) if more else ""
        return Found(rows, token, total)

    def owner_of_context(self, context: str) -> tuple[str, str] | None:
        return self._shared.owner_of_context(context)

    async def audited(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
        return self._audit.find(query)

    async def sweep_audit(self, before: float) -> None:
        self._audit.sweep(before)

    def feed(self, after: int, limit: int = 1000) -> Sequence[Fed]:
        start = max(after - self._feed_start, 0)
        fed: list[Fed] = []
        for place in range(start, len(self._feed)):
            if len(fed) == limit:
                break
            name, position = self._feed[place], self._feed_start + place + 1
            log = self._tasks.get(name)
            # What is gone is not fed, and a log begun anew under its name is another one.
            if log is not None and position > log.born:
                fed.append(Fed(position, name, self._feed_seqs[place]))
        return fed

    # Work.

    def offer(self, claimant: Claimant) -> None:
        self._work.claimants.append(claimant)

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        return self._work.claim(kind, topics, node, now, limit)

    async def release(self, work: int, epoch: int, due: float) -> None:
        self._work.release(work, epoch, due)

    async def beat(self, node: str, until: float, now: float) -> int:
        return self._work.beat(node, until, now)

    def next_due(self) -> float | None:
        return self._work.next_due()

    async def close(self) -> None:
        for log in (*self._tasks.values(), *self._journals.values()):
            log.wake()


def _key(kind: str, key: str) -> str:
    return f"{kind}\n{key}"


def _place(token: str) -> int | None:
    if not token:
        return None
    if not token.isascii() or not token.isdigit() or len(token) > 18:
        raise error("InvalidParams", "this page token was not made here", at="pageToken")
    return int(token)
