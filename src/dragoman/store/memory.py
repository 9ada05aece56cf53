"""The store in memory: every law but durability, for tests, trials and agents that may forget.

A settled log is one string of bytes, not a list of them, and the fold of a finished task is made
again when somebody asks: ten thousand finished tasks stay small and invisible to the collector.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Sequence
from itertools import islice

from ..core.tasks import TERMINAL
from ..model.errors import error
from .store import (
    Append,
    Batch,
    Claimant,
    Conflict,
    Done,
    Fed,
    Fenced,
    Found,
    Head,
    Label,
    NewWork,
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


class _Log:
    __slots__ = ("append_id", "events", "head", "label", "order", "seq", "snapshot", "waiters")

    def __init__(self, label: Label, head: Head) -> None:
        self.label = label
        self.head = head
        self.seq = 0
        self.append_id = ""
        self.events: list[bytes] | bytes = []
        self.snapshot: tuple[int, bytes] | None = None
        self.waiters: list[asyncio.Future[None]] | None = None
        self.order = 0

    @property
    def is_over(self) -> bool:
        return self.head.state in TERMINAL


class _Item:
    __slots__ = ("attempts", "body", "due", "epoch", "kind", "log", "name", "node", "topic")

    def __init__(self, new: NewWork) -> None:
        self.kind = new.kind
        self.topic = new.topic
        self.log = new.log
        self.body = new.body
        self.name = new.name
        self.due = new.due
        self.node = ""
        self.epoch = 0
        self.attempts = 0

    def held(self, work: int, memo: object = None) -> Work:
        return Work(work, self.kind, self.topic, self.log, self.body, self.epoch, self.attempts, memo)


class MemoryStore:
    """See `Store` for what each method promises."""

    def __init__(self, *, tasks_max: int = TASKS_MAX) -> None:
        self.tasks_max = tasks_max
        self._logs: dict[str, _Log] = {}
        # Task logs in the order of their last status change: lists read it backwards, eviction forwards.
        self._tasks: dict[str, _Log] = {}
        self._over = 0
        self._changes = 0
        self._records: dict[tuple[str, str], Record] = {}
        self._record_of: dict[str, tuple[str, str]] = {}
        self._work: dict[int, _Item] = {}
        self._named: dict[str, int] = {}
        self._due: list[tuple[float, int]] = []
        self._last_work = 0
        self._nodes: dict[str, float] = {}
        self._claimants: list[Claimant] = []
        self._feed: list[tuple[str, int]] = []
        self._feed_start = 0
        self._tombs: dict[str, None] = {}
        self._fresh: list[str] = []

    # Writing.

    def submit(self, batch: Batch, done: Done) -> None:
        done(self._apply(batch))

    async def commit(self, batch: Batch) -> None:
        refusal = self._apply(batch)
        if refusal is not None:
            raise refusal

    def _apply(self, batch: Batch) -> Refusal | None:
        logs = self._logs
        begun = 0
        for append in batch.appends:
            log = logs.get(append.log)
            if log is None:
                if append.after or append.label is None or append.log in self._tombs:
                    return Conflict(append.log, 0)
                begun += append.label.kind == "task"
            elif log.seq != append.after:
                # Law 3: who lost the answer asks again with the same append id and gets it again.
                return None if log.append_id == append.id else Conflict(append.log, log.seq)
        refusal = self._refuse(batch, begun)
        if refusal is not None:
            return refusal
        for append in batch.appends:
            self._append(append)
        if batch.claim is not None and batch.appends:
            # Attempts count takings in a row that led to nothing.
            self._work[batch.claim.work].attempts = 1
        for record in batch.records:
            self._keep(record)
        if batch.ends or batch.drops:
            self._end(batch)
        for name in batch.closes:
            self._delete(name)
        if batch.work:
            self._put(batch.work)
        return None

    def _refuse(self, batch: Batch, begun: int) -> Refusal | None:
        claim = batch.claim
        if claim is not None:
            item = self._work.get(claim.work)
            if item is None or item.epoch != claim.epoch or not item.node:
                return Fenced(f"work {claim.work} is no longer held at epoch {claim.epoch}")
        for record in batch.records:
            if record.is_new:
                there = self._records.get((record.kind, record.key))
                if there is not None:
                    return Present(there)
        if begun and len(self._tasks) + begun > self.tasks_max and not self._make_room(begun):
            return StoreFull(f"{self.tasks_max} tasks are active")
        return None

    def _append(self, append: Append) -> None:
        name = append.log
        log = self._logs.get(name)
        if log is None:
            assert append.label is not None
            log = self._logs[name] = _Log(append.label, append.head or Head())
            if append.label.kind == "task":
                self._tasks[name] = log
                self._changes += 1
                log.order = self._changes
        elif append.head is not None and append.head is not log.head:
            self._move(name, log, append.head)
        events = log.events
        if isinstance(events, bytes):
            events = log.events = _split(events)
        events.extend(append.events)
        log.seq += len(append.events)
        log.append_id = append.id
        if append.snapshot is not None:
            log.snapshot = (log.seq, append.snapshot)
        if log.label.kind == "task":
            if log.head.state in TERMINAL:
                self._settle(name, log, events)
            if append.events:
                self._note(name, log.seq)
        waiters = log.waiters
        if waiters is not None:
            log.waiters = None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def _move(self, name: str, log: _Log, head: Head) -> None:
        was_over = log.is_over
        log.head = head
        if name in self._tasks:
            del self._tasks[name]
            self._tasks[name] = log
            self._changes += 1
            log.order = self._changes
            self._over += log.is_over - was_over

    def _settle(self, name: str, log: _Log, events: list[bytes]) -> None:
        log.events = b"\n".join(events)
        if log.snapshot is not None:
            self._fresh.append(name)
            if len(self._fresh) > FRESH_FOLDS:
                old = self._logs.get(self._fresh.pop(0))
                if old is not None and old.is_over:
                    old.snapshot = None

    def _note(self, name: str, seq: int) -> None:
        self._feed.append((name, seq))
        if len(self._feed) > FEED_MAX:
            del self._feed[: FEED_MAX // 2]
            self._feed_start += FEED_MAX // 2

    def _keep(self, record: Record) -> None:
        self._records[record.kind, record.key] = record
        if record.log:
            self._record_of[record.log] = (record.kind, record.key)

    def _end(self, batch: Batch) -> None:
        for work in batch.ends:
            item = self._work.pop(work, None)
            if item is not None and item.name:
                self._named.pop(item.name, None)
        for name in batch.drops:
            self._work.pop(self._named.pop(name, 0), None)

    def _put(self, news: Sequence[NewWork]) -> None:
        for new in news:
            known = self._named.get(new.name) if new.name else None
            if known is not None:
                self._work[known].due = new.due
                heapq.heappush(self._due, (new.due, known))
                continue
            self._last_work += 1
            work = self._last_work
            item = self._work[work] = _Item(new)
            if new.name:
                self._named[new.name] = work
            claimant = self._claimant_for(new)
            if claimant is None:
                heapq.heappush(self._due, (new.due, work))
                for other in self._claimants:
                    other.hint()
            else:
                claimant.free[new.topic] -= 1
                item.node = claimant.node
                item.epoch = item.attempts = 1
                claimant.take(item.held(work, new.memo))

    def _claimant_for(self, new: NewWork) -> Claimant | None:
        if new.due > 0:
            return None
        for claimant in self._claimants:
            if claimant.free.get(new.topic, 0) > 0:
                return claimant
        return None

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
            del self._tombs[next(iter(self._tombs))]

    def _delete(self, name: str) -> None:
        log = self._logs.pop(name, None)
        if log is None:
            return
        if self._tasks.pop(name, None) is not None:
            self._over -= log.is_over
        kept = self._record_of.pop(name, None)
        if kept is not None:
            self._records.pop(kept, None)
        for waiter in log.waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def sweep(self, before: float, limit: int) -> int:
        old = [name for name, log in self._tasks.items() if log.is_over and log.head.at < before][:limit]
        for name in old:
            self._bury(name)
        return len(old)

    # Reading.

    def row(self, log: str) -> Row | None:
        found = self._logs.get(log)
        return None if found is None else Row(log, found.label, found.head, found.seq)

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        found = self._logs.get(log)
        if found is None or found.seq <= after:
            return ()
        events = found.events
        return (_split(events) if isinstance(events, bytes) else events)[after : after + limit]

    def snapshot(self, log: str, at: int | None = None) -> tuple[int, bytes] | None:
        found = self._logs.get(log)
        if found is None or found.snapshot is None:
            return None
        return found.snapshot if at is None or found.snapshot[0] <= at else None

    def record(self, kind: str, key: str) -> bytes | None:
        found = self._records.get((kind, key))
        return None if found is None else found.body

    async def wait(self, log: str, after: int) -> None:
        found = self._logs.get(log)
        if found is None or found.seq > after:
            return
        waiter = asyncio.get_running_loop().create_future()
        if found.waiters is None:
            found.waiters = [waiter]
        else:
            found.waiters.append(waiter)
        await waiter

    async def find(self, query: Query) -> Found:
        start = _place(query.token)
        rows: list[Row] = []
        total = 0
        more = False
        for name in reversed(self._tasks):
            log = self._tasks[name]
            if not _matches(log, query):
                continue
            total += 1
            if start is not None and log.order >= start:
                continue
            if len(rows) < query.size:
                rows.append(Row(name, log.label, log.head, log.seq))
            else:
                more = True
        token = str(self._logs[rows[-1].log].order) if more else ""
        return Found(rows, token, total)

    def feed(self, after: int, limit: int = 1000) -> Sequence[Fed]:
        start = max(after - self._feed_start, 0)
        first = self._feed_start + start
        return [
            Fed(first + i + 1, log, seq) for i, (log, seq) in enumerate(self._feed[start : start + limit])
        ]

    # Work.

    def offer(self, claimant: Claimant) -> None:
        self._claimants.append(claimant)

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        taken: list[Work] = []
        passed: list[tuple[float, int]] = []
        while self._due and self._due[0][0] <= now and len(taken) < limit:
            due, work = heapq.heappop(self._due)
            item = self._work.get(work)
            if item is None or item.node or item.due != due:
                continue
            if item.kind != kind or item.topic not in topics:
                passed.append((due, work))
                continue
            item.node = node
            item.epoch += 1
            item.attempts += 1
            taken.append(item.held(work))
        for entry in passed:
            heapq.heappush(self._due, entry)
        return taken

    async def release(self, work: int, epoch: int, due: float) -> None:
        item = self._work.get(work)
        if item is not None and item.epoch == epoch and item.node:
            self._free(work, item, due)
            for claimant in self._claimants:
                claimant.hint()

    def _free(self, work: int, item: _Item, due: float) -> None:
        item.node = ""
        item.due = due
        heapq.heappush(self._due, (due, work))

    async def beat(self, node: str, until: float, now: float) -> int:
        self._nodes[node] = until
        silent = {name for name, end in self._nodes.items() if end <= now}
        for name in silent:
            del self._nodes[name]
        ended = 0
        for work, item in self._work.items():
            if item.node and item.node not in self._nodes:
                self._free(work, item, 0.0)
                ended += 1
        return ended

    def next_due(self) -> float | None:
        return self._due[0][0] if self._due else None

    async def close(self) -> None:
        self._wake(self._logs.values())

    def _wake(self, logs: Iterable[_Log]) -> None:
        for log in logs:
            for waiter in log.waiters or ():
                if not waiter.done():
                    waiter.set_result(None)


def _split(events: bytes) -> list[bytes]:
    # No event holds a raw newline: JSON escapes it.
    return events.split(b"\n")


def _matches(log: _Log, query: Query) -> bool:
    label, head = log.label, log.head
    return (
        (query.owner is None or label.owner == query.owner)
        and (query.tenant is None or label.tenant == query.tenant)
        and (query.agent is None or label.agent == query.agent)
        and not head.hidden
        and (not query.context or label.context == query.context)
        and (query.state is None or head.state is query.state)
        and (query.since is None or head.at >= query.since)
    )


def _place(token: str) -> int | None:
    if not token:
        return None
    if not token.isascii() or not token.isdigit():
        raise error("InvalidParams", "this page token was not made here", at="pageToken")
    return int(token)
