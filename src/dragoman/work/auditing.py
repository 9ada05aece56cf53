"""Brings calls that changed nothing into the audit log: together, within a second of when they were answered.

Those that changed something are there already, in the transaction of what they changed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from ..model.audit import AuditEntry
from ..store.store import Batch, Refusal, Store

__all__ = ["Auditing"]

log = logging.getLogger("dragoman.work")

FLUSH_SECONDS = 1.0
WAITING_MAX = 10_000
BATCH_MAX = 1000


class Auditing:
    """`note` is called as calls are answered; it never waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[AuditEntry] = []
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def note(self, entry: AuditEntry) -> None:
        """One call, to be kept soon."""
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(entry)
        else:
            self._lost += 1

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            with suppress(Refusal):
                await self.flush()

    async def flush(self) -> None:
        """Keep what waits. What the store has no room for waits on."""
        if self._lost:
            log.warning("%d calls were not audited: more came than the store takes", self._lost)
            self._lost = 0
        while self._waiting:
            batch = self._waiting[:BATCH_MAX]
            await self._store.commit(Batch(audit=batch))
            del self._waiting[: len(batch)]

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        with suppress(Refusal):
            await self.flush()
