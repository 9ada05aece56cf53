"""When a SQLite store writes: everything pending is one transaction, its sync runs on a thread of its own.

There is no timer: while a commit is under way what arrives waits, and goes together with the next.
Statements run on the event loop, where nothing fights for the interpreter; only COMMIT, which waits
for the disk, is handed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

import apsw

from ..model.peer import Clock
from .ballast import Ballast
from .sqlite_group import Group
from .sqlite_known import Known
from .store import Batch, Claimant, Done, Refusal, StoreFull, StoreLost

__all__ = ["Writer"]

log = logging.getLogger("dragoman.store")

# More would keep the event loop from everything else for too long.
GROUP_BATCHES_MAX = 256
GROUP_BYTES_MAX = 8 * 1024 * 1024
# How long the write-ahead log grows before it is folded into the file.
WAL_PAGES_MAX = 4000
# How often a full disk is looked at for room.
TIGHT_SECONDS = 1.0

T = TypeVar("T")
Change = Callable[[Group], object]
_Entry = tuple[Batch | Change, Done]


class Writer:
    """Owns the writing connection and its thread."""

    def __init__(self, db: apsw.Connection, known: Known, clock: Clock, ballast: Ballast) -> None:
        self.claimants: list[Claimant] = []
        self.on_commit: Callable[[Group], None] = lambda group: None
        self.on_lost: Callable[[], None] = lambda: None
        self.lost: StoreLost | None = None
        self._db = db
        self._known = known
        self._clock = clock
        self._ballast = ballast
        # The disk was full: only what ends things is taken until the ballast can be held again.
        self._is_tight = not ballast.take()
        self._tight_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._pending: list[_Entry] = []
        # How many pending entries go each alone, because a group that held one of them failed.
        self._alone = 0
        self._flying: Group | None = None
        self._flying_entries: list[_Entry] = []
        self._answers: list[tuple[Done, Refusal | None]] = []
        self._is_pump_due = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._wal_pages = 0
        db.set_wal_hook(self._grew)
        self._syncs: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._sync, name="store", daemon=True)
        self._thread.start()

    def submit(self, entry: Batch | Change, done: Done) -> None:
        if self.lost is not None:
            done(self.lost)
            return
        self._pending.append((entry, done))
        if self._flying is None and not self._is_pump_due:
            self._is_pump_due = True
            self._idle.clear()
            # Not at once: who else is ready in this turn of the event loop shares the sync.
            self._loop.call_soon(self._pump)

    async def commit(self, entry: Batch | Change) -> None:
        future: asyncio.Future[None] = self._loop.create_future()

        def done(refusal: Refusal | None) -> None:
            if future.done():
                return
            if refusal is None:
                future.set_result(None)
            else:
                future.set_exception(refusal)

        self.submit(entry, done)
        await future

    async def change(self, make: Callable[[Group], T]) -> T:
        """Do something inside the next transaction and return what it gave."""
        given: list[T] = []
        await self.commit(lambda group: given.append(make(group)))
        # A group that failed is tried again entry by entry: the last run is the one that counts.
        return given[-1]

    async def close(self) -> None:
        """Commit what was submitted, fold the write-ahead log into the file, end the thread."""
        while not self._idle.is_set():
            await self._idle.wait()
        self._syncs.put(False)
        self._thread.join()
        if self.lost is None:
            self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.lost = StoreLost("the store is closed")
        self._db.close()
        self._ballast.leave()

    # One group after the other.

    def _pump(self) -> None:
        self._is_pump_due = False
        if self._flying is not None:
            return
        entries = self._next_entries()
        if not entries:
            self._idle.set()
            return
        group = Group(self._db, self._known, self.claimants, self._clock.now())
        self._flying, self._flying_entries = group, entries
        answers: list[tuple[Done, Refusal | None]] = []
        self._answers = answers
        try:
            for entry, done in entries:
                if not isinstance(entry, Batch):
                    entry(group)
                    answers.append((done, None))
                elif self._is_tight and _wants_room(entry) and not self._has_room():
                    answers.append((done, StoreFull("the disk is full")))
                else:
                    answers.append((done, group.add(entry)))
            group.flush()
        except Exception as problem:
            self._answers = [(done, None) for _, done in entries]
            self._failed_before_commit(group, entries, problem)
            return
        if group.is_open:
            self._syncs.put(True)
        else:
            self._landed(None)

    def _next_entries(self) -> list[_Entry]:
        count = min(len(self._pending), GROUP_BATCHES_MAX)
        if self._alone:
            self._alone -= 1
            count = 1
        elif count > 1:
            size = 0
            for index in range(count):
                entry = self._pending[index][0]
                if isinstance(entry, Batch):
                    size += sum(len(event) for append in entry.appends for event in append.events)
                if size > GROUP_BYTES_MAX:
                    count = index + 1
                    break
        entries = self._pending[:count]
        del self._pending[:count]
        return entries

    def _failed_before_commit(self, group: Group, entries: list[_Entry], problem: Exception) -> None:
        refusal = _refusal(problem)
        if refusal is None and len(entries) > 1:
            # One of them cannot be written, whatever it is; it shall not take the others with it.
            group.undo()
            self._flying = None
            self._pending[:0] = entries
            self._alone += len(entries)
            self._pump()
            return
        self._landed(refusal or Refusal(f"{type(problem).__name__}: {problem}"))

    def _landed(self, failure: Refusal | None) -> None:
        """On the event loop, after the commit or instead of it: everybody hears how it went."""
        group = self._flying
        assert group is not None
        self._flying = None
        answers, self._answers = self._answers, []
        entries, self._flying_entries = self._flying_entries, []
        if isinstance(failure, StoreFull) and self._ballast.throw():
            # With the room that gives, what ends things is tried once more; the rest is refused.
            self._is_tight = True
            self._tight_since = self._clock.now()
            group.undo()
            self._pending[:0] = entries
            self._pump()
            return
        if failure is None:
            group.land()
        elif isinstance(failure, StoreLost):
            # Not even a second try of the sync would tell the truth: nobody is promised anything again.
            self.lost = failure
            answers += [(done, None) for _, done in self._pending]
            self._pending.clear()
        else:
            group.undo()
        for done, refusal in answers:
            try:
                done(failure or refusal)
            except Exception:
                # What one of them makes of its answer is not the matter of the others.
                log.exception("the answer to a commit could not be taken")
        if failure is None:
            self._hand_out(group)
        elif self.lost is not None:
            self.on_lost()
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump)

    def _has_room(self) -> bool:
        """Whether the disk has room again; looked at now and then."""
        now = self._clock.now()
        if now - self._tight_since >= TIGHT_SECONDS:
            self._tight_since = now
            self._is_tight = not self._ballast.take()
        return not self._is_tight

    def _hand_out(self, group: Group) -> None:
        for claimant, _, work in group.work.leased:
            claimant.take(work)
        if group.work.is_hinting:
            for claimant in self.claimants:
                claimant.hint()
        self.on_commit(group)

    # On the thread.

    def _sync(self) -> None:
        while self._syncs.get():
            failure: Refusal | None = None
            try:
                self._db.execute("COMMIT")
                if self._is_tight:
                    # What the log held is room too.
                    self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)
                elif self._wal_pages > WAL_PAGES_MAX:
                    self._fold(apsw.SQLITE_CHECKPOINT_PASSIVE)
            except Exception as problem:
                failure = _refusal(problem) or StoreLost(f"commit: {problem}")
            self._loop.call_soon_threadsafe(self._landed, failure)

    def _fold(self, mode: int) -> None:
        """Copy the write-ahead log into the file. Without room there it just stays as it is, and durable."""
        with contextlib.suppress(apsw.FullError):
            self._db.wal_checkpoint(mode=mode)

    def _grew(self, db: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK


def _wants_room(batch: Batch) -> bool:
    """Whether a batch begins something or goes on with it, rather than ending it."""
    if batch.claim is not None:
        return bool(batch.appends) and not batch.ends
    return any(append.after == 0 for append in batch.appends)


_FATAL = (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.CantOpenError, apsw.ReadOnlyError)


def _refusal(problem: Exception) -> Refusal | None:
    """What a failure of the database means to callers; none if it is about one batch."""
    if isinstance(problem, apsw.FullError):
        return StoreFull("the disk is full")
    if getattr(problem, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        # The index of the write-ahead log could not grow: nothing was written yet.
        return StoreFull("the disk is full")
    if isinstance(problem, _FATAL):
        return StoreLost(f"the store's file failed: {problem}")
    return None
