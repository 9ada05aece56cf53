"""The store in memory: every law but durability, for tests, trials and agents that may forget.

A settled log is one string of bytes, not a list of them, and the fold of a finished task is made
again when somebody asks: ten thousand finished tasks stay small and invisible to the collector.
"""

from __future__ import annotations

import asyncio
import heapq
from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice

from ..model.errors import error
from .memory_log import Log, pack, unpack
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
# How many due times of work that is gone may lie about.
STALE_DUES = 1000


class _Item:
    __slots__ = ("again", "attempts", "body", "due", "epoch", "kind", "log", "name", "node", "topic")

    def __init__(self, put: NewWork) -> None:
        self.kind = put.kind
        self.topic = put.topic
        self.log = put.log
        self.body = put.body
        self.name = put.name
        self.due = put.due
        # When it is due once more, if it was put again while somebody held it.
        self.again: float | None = None
        self.node = ""
        self.epoch = 0
        self.attempts = 0

    def held(self, work: int, memo: object = None) -> Work:
        return Work(work, self.kind, self.topic, self.log, self.body, self.epoch, self.attempts, memo)


class MemoryStore:
    """See `Store` for what each method promises."""

    def __init__(self, *, tasks_max: int = TASKS_MAX) -> None:
        self.tasks_max = tasks_max
        # Task logs in the order of their last status change: lists read it backwards, eviction forwards.
        # (A plain dict that loses its first entries is slow to find its first.)
        self._tasks: OrderedDict[str, Log] = OrderedDict()
        self._journals: dict[str, Log] = {}
        self._who: dict[tuple[str, str, str, str], Label] = {}
        self._over = 0
        self._changes = 0
        self._records: dict[str, tuple[bytes, str]] = {}
        self._work: dict[int, _Item] = {}
        self._named: dict[str, int] = {}
        self._due: list[tuple[float, int]] = []
        self._last_work = 0
        self._nodes: dict[str, float] = {}
        self._claimants: list[Claimant] = []
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
                begun += append.label.kind == "task"
            elif log.seq != append.after:
                # Law 3: who lost the answer asks again with the same append id and gets it again.
                return None if log.append_id == append.id else Conflict(append.log, log.seq)
        refusal = self._refuse(batch, begun)
        if refusal is not None:
            return refusal
        for append, log in zip(batch.appends, logs, strict=True):
            self._append(append, log)
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
        log = Log(who, label.context, self._feed_start + len(self._feed))
        if label.kind == "task":
            self._tasks[name] = log
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

    def _end(self, batch: Batch) -> None:
        for work in batch.ends:
            item = self._work.get(work)
            if item is not None and item.again is not None:
                self._free(work, item, item.again)
            elif item is not None:
                del self._work[work]
                self._named.pop(item.name, None)
        for name in batch.drops:
            self._work.pop(self._named.pop(name, 0), None)

    def _put(self, several: Sequence[NewWork]) -> None:
        for put in several:
            known = self._named.get(put.name) if put.name else None
            if known is not None:
                self._put_again(known, put.due)
                continue
            self._last_work += 1
            work = self._last_work
            item = self._work[work] = _Item(put)
            if put.name:
                self._named[put.name] = work
            claimant = self._claimant_for(put)
            if claimant is None:
                self._await(put.due, work)
                for other in self._claimants:
                    other.hint()
            else:
                claimant.free[put.topic] -= 1
                item.node = claimant.node
                item.epoch = item.attempts = 1
                claimant.take(item.held(work, put.memo))

    def _put_again(self, work: int, due: float) -> None:
        """Named work is there already: it moves, or, while somebody holds it, comes again afterwards."""
        item = self._work[work]
        if item.node:
            item.again = due if item.again is None else min(item.again, due)
        else:
            self._free(work, item, due)

    def _claimant_for(self, put: NewWork) -> Claimant | None:
        if put.due > 0:
            return None
        for claimant in self._claimants:
            if claimant.free.get(put.topic, 0) > 0:
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
            self._tombs.popitem(last=False)

    def _delete(self, name: str) -> None:
        log = self._tasks.pop(name, None)
        if log is not None:
            self._over -= log.is_over
        else:
            log = self._journals.pop(name, None)
        if log is not None:
            for key in log.keys:
                if self._records.get(key, ("", ""))[1] == name:
                    del self._records[key]
            log.wake()

    async def sweep(self, before: float, limit: int) -> int:
        busy = {item.log for item in self._work.values()}
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
        self._claimants.append(claimant)

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        taken: list[Work] = []
        passed: list[tuple[float, int]] = []
        while self._due and self._due[0][0] <= now and len(taken) < limit:
            due, work = heapq.heappop(self._due)
            if not self._is_due(due, work):
                continue
            item = self._work[work]
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
        item.due = due if item.again is None else min(due, item.again)
        item.again = None
        self._await(item.due, work)

    def _await(self, due: float, work: int) -> None:
        heapq.heappush(self._due, (due, work))
        if len(self._due) > 2 * len(self._work) + STALE_DUES:
            # A question that was answered leaves its deadline here, and those are a week away.
            self._due = [(at, one) for at, one in self._due if self._is_due(at, one)]
            heapq.heapify(self._due)

    def _is_due(self, due: float, work: int) -> bool:
        item = self._work.get(work)
        return item is not None and not item.node and item.due == due

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
        while self._due:
            due, work = self._due[0]
            if self._is_due(due, work):
                return due
            heapq.heappop(self._due)
        return None

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
