"""The store in a SQLite file: what is committed survives the process and the power.

Writing is `sqlite_writer` (when) and `sqlite_group` (what); here is reading, waiting and opening.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apsw
import msgspec

from ..model.audit import AuditEntry, AuditQuery
from ..model.peer import Clock
from . import sqlite_find
from .ballast import Ballast
from .lock import Lock
from .sqlite_file import QUERIES, connect, migrate, rows_of
from .sqlite_group import Group
from .sqlite_known import Known, stored
from .sqlite_writer import Writer
from .store import Batch, Claimant, Done, Fed, Found, Query, Row, Work

__all__ = ["SqliteStore"]

ACTIVE_TASKS_MAX = 100_000
OWNER_ACTIVE_MAX = 10_000
# Tasks deleted in one transaction: each deletes many rows, and everybody else waits.
SWEPT_AT_ONCE = 20
AUDIT_SWEPT_AT_ONCE = 5000

_LOG_BY_NAME = QUERIES["log_by_name"]
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


class SqliteStore:
    """See `Store` for what each method promises. Made by `open`."""

    def __init__(
        self, path: Path, lock: Lock, db: apsw.Connection, known: Known, clock: Clock, ballast: Ballast
    ) -> None:
        self.path = path
        self.lock = lock
        self._known = known
        self._writer = Writer(db, known, clock, ballast)
        self._writer.on_commit = self._wake
        self._reader = connect(path, for_reading=True)
        self._finder = connect(path, for_reading=True)
        self._finding = ThreadPoolExecutor(1, "store-find")
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._nodes: dict[str, float] = {}

    @staticmethod
    async def open(
        path: str | Path,
        *,
        clock: Clock,
        active_tasks_max: int = ACTIVE_TASKS_MAX,
        owner_active_max: int = OWNER_ACTIVE_MAX,
        on_lost: Callable[[], None] = lambda: None,
    ) -> SqliteStore:
        """Take the file's lock, bring its schema up to date and end the leases of whoever had it before.

        `on_lost` is called when the store can promise nothing any more: then the process should end.
        """
        path = Path(path)
        lock = Lock(path, secrets.token_urlsafe(32))
        try:
            ballast = Ballast(path)
            db = connect(path)
            migrate(db, path)
            try:
                db.execute(QUERIES["free_all_work"])
            except apsw.FullError:
                if not ballast.throw():
                    raise
                db.execute(QUERIES["free_all_work"])
            reserved = rows_of(db, QUERIES["meta"], ("reserved",))
            active = {
                (tenant, owner): count for tenant, owner, count in rows_of(db, QUERIES["active_of_owners"])
            }
            known = Known(reserved[0][0] if reserved else 0, active, active_tasks_max, owner_active_max)
            store = SqliteStore(path, lock, db, known, clock, ballast)
        except BaseException:
            lock.release()
            raise
        store._writer.on_lost = on_lost
        return store

    def set_address(self, address: str) -> None:
        """Say in the lock file where this process answers."""
        self.lock.set_address(address)

    # Writing.

    def submit(self, batch: Batch, done: Done) -> None:
        self._writer.submit(batch, done)

    async def commit(self, batch: Batch) -> None:
        await self._writer.commit(batch)

    async def sweep(self, before: float, limit: int) -> int:
        gone = 0
        while gone < limit:
            size = min(limit - gone, SWEPT_AT_ONCE)
            swept = await self._writer.change(partial(Group.sweep, before=before, limit=size))
            gone += swept
            if swept < size:
                break
        return gone

    # Reading.

    def row(self, log: str) -> Row | None:
        found = self._known.log(log)
        if found is not None:
            return found.row
        rows = rows_of(self._reader, _LOG_BY_NAME, (log,))
        return stored(rows[0]).row if rows else None

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        events: list[bytes] = []
        for last, count, body in rows_of(self._reader, QUERIES["read"], (log, after, limit)):
            if count == 1:
                events.append(body)
            else:
                events.extend(_unpack(body)[max(0, after - last + count) :])
        return events[:limit]

    def snapshot(self, log: str, at: int | None = None) -> tuple[int, bytes] | None:
        for seq, body in rows_of(self._reader, QUERIES["snapshot"], (log,)):
            if at is None or seq <= at:
                return seq, body
        return None

    def record(self, kind: str, key: str) -> bytes | None:
        for _, body in rows_of(self._reader, QUERIES["record"], (kind, key)):
            return bytes(body)
        return None

    def owner_of_context(self, context: str) -> tuple[str, str] | None:
        for tenant, owner in rows_of(self._reader, QUERIES["owner_of_context"], (context,)):
            return tenant, owner
        return None

    async def audited(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._finding, sqlite_find.audited, self._finder, query)

    async def sweep_audit(self, before: float) -> None:
        await self._writer.change(lambda group: group.sweep_audit(before, AUDIT_SWEPT_AT_ONCE))

    def feed(self, after: int, limit: int = 1000) -> Sequence[Fed]:
        return [Fed(*row) for row in rows_of(self._reader, QUERIES["feed"], (after, limit))]

    async def find(self, query: Query) -> Found:
        # Counting a long list takes milliseconds: not on the event loop.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._finding, sqlite_find.find, self._finder, query)

    async def wait(self, log: str, after: int) -> None:
        row = self.row(log)
        if row is None or row.seq > after or self._writer.lost is not None:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(log, []).append(waiter)
        try:
            await waiter
        finally:
            if waiter.cancelled():
                self._forget(log, waiter)

    def _forget(self, log: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiters.get(log)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[log]

    def _wake(self, group: Group) -> None:
        if not self._waiters:
            return
        for log in group.logs:
            for waiter in self._waiters.pop(log, ()):
                if not waiter.done():
                    waiter.set_result(None)

    # Work.

    def offer(self, claimant: Claimant) -> None:
        self._writer.claimants.append(claimant)

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        return await self._writer.change(lambda group: group.claim(kind, topics, node, now, limit))

    async def release(self, work: int, epoch: int, due: float) -> None:
        await self._writer.change(lambda group: group.work.release(work, epoch, due))

    async def beat(self, node: str, until: float, now: float) -> int:
        # Leases end when the file is opened, so heartbeats need not outlive the process.
        self._nodes[node] = until
        for name in [name for name, end in self._nodes.items() if end <= now]:
            del self._nodes[name]
        if all(held.node in self._nodes for held in self._known.held.values()):
            return 0
        return await self._writer.change(lambda group: group.work.end_leases(self._nodes))

    def next_due(self) -> float | None:
        for (due,) in rows_of(self._reader, QUERIES["next_due"]):
            return float(due)
        return None

    async def close(self) -> None:
        # First, because who hears how a commit went may read.
        await self._writer.close()
        self._finding.shutdown()
        self._finder.close()
        self._reader.close()
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        self._waiters.clear()
        self.lock.release()
