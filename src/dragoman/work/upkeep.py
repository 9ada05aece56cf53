"""What time brings: questions that nobody answered, leases of the dead, tasks that are past keeping."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ..core.tasks import INTERRUPTED, TERMINAL, Move, decide
from ..model.events import encode
from ..model.peer import Clock, timestamp
from ..model.task import Message, Part, Role, State
from ..store.folding import fold_of
from ..store.store import Append, Batch, Conflict, Head, NewWork, Refusal, Row, Store, StoreFull, Work
from .executor import STOP
from .journal import journal_log

__all__ = ["LEASE_SECONDS", "Upkeep"]

log = logging.getLogger("dragoman.work")

LEASE_SECONDS = 30.0
BEAT_SECONDS = 5.0
SWEEP_SECONDS = 60.0
SWEEP_MAX = 500
CLAIM_MAX = 100
LOOK_SECONDS = 1.0
TRIES = 64


class Upkeep:
    """The node's own chores. Each is a claim or a sweep; two nodes doing them do no harm."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: str,
        forget: Callable[[str], None],
        retention_seconds: float | None,
        audit_seconds: float | None = None,
    ) -> None:
        self.node = node
        self.free: dict[str, int] = {}
        self._store = store
        self._clock = clock
        self._forget = forget
        self._retention = retention_seconds
        self._audit = audit_seconds
        self._hint = asyncio.Event()
        self._chores: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._store.offer(self)
        loop = asyncio.get_running_loop()
        self._chores = [
            loop.create_task(self._deadlines()),
            loop.create_task(self._every(BEAT_SECONDS, self._beat)),
            loop.create_task(self._every(SWEEP_SECONDS, self._sweep)),
        ]

    async def stop(self) -> None:
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)

    def take(self, work: Work) -> None:
        raise AssertionError("upkeep has no free slots, so nothing is leased to it")

    def hint(self) -> None:
        self._hint.set()

    async def _every(self, seconds: float, chore: Callable[[], object]) -> None:
        while True:
            try:
                await chore()  # type: ignore[misc]
            except Refusal as refusal:
                log.warning("a chore was refused: %s", refusal)
            except Exception:
                log.exception("a chore failed; it is done again in %s s", seconds)
            await asyncio.sleep(seconds)

    async def _beat(self) -> None:
        now = self._clock.now()
        await self._store.beat(self.node, now + LEASE_SECONDS, now)

    async def _sweep(self) -> None:
        if self._retention is not None:
            before = self._clock.now() - self._retention
            gone = SWEEP_MAX
            while gone == SWEEP_MAX:
                gone = await self._store.sweep(before, SWEEP_MAX)
        if self._audit is not None:
            await self._store.sweep_audit(self._clock.now() - self._audit)

    async def _deadlines(self) -> None:
        while True:
            now = self._clock.now()
            try:
                for work in await self._store.claim("deadline", ("deadline",), self.node, now, CLAIM_MAX):
                    await self._insist(work)
            except Refusal as refusal:
                log.warning("deadlines were refused: %s", refusal)
            due = self._store.next_due()
            wait_seconds = (
                LOOK_SECONDS if due is None else min(max(due - self._clock.now(), 0.005), LOOK_SECONDS)
            )
            self._hint.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hint.wait(), wait_seconds)

    async def _insist(self, work: Work) -> None:
        # On a full disk no other deadline could be written either, so all wait for this one.
        while True:
            try:
                return await self.expire(work)
            except StoreFull:
                await asyncio.sleep(LOOK_SECONDS)
            except Refusal as refusal:
                log.warning("deadline of %s was refused: %s", work.log, refusal)
                return
            except Exception:
                # One log that cannot be read must not take the deadlines of all others with it.
                log.exception("the deadline of %s could not be kept", work.log)
                return

    async def expire(self, work: Work) -> None:
        """A deadline came: the question fails the task, the request to stop ends it."""
        for _ in range(TRIES):
            row = self._store.row(work.log)
            if row is None or row.head.state in TERMINAL:
                await self._store.commit(Batch(claim=work.claim, ends=(work.id,)))
                return
            try:
                await self._store.commit(self._ending(work, row))
            except Conflict:
                continue
            self._forget(work.log)
            return

    def _ending(self, work: Work, row: Row) -> Batch:
        now = self._clock.now()
        fold = fold_of(self._store, work.log, row.seq)
        # A question asked after a caller wanted to stop does not prolong the time given for that.
        if row.head.state in INTERRUPTED and work.body != b"cancel":
            words = "The question was not answered in time."
            message = Message(self._clock.new_id(), Role.AGENT, (Part(text=words),), fold.context_id, fold.id)
            move = Move(State.FAILED, message, {"reason": "input-deadline"})
        else:
            move = Move(State.CANCELED)
        events = decide(fold, move, timestamp(now))
        for event in events:
            fold.apply(event)
        append = Append(
            work.log,
            row.seq,
            f"{work.id}.{work.epoch}.{row.seq}",
            [encode(event) for event in events],
            Head(fold.status.state, now),
            None,
            msgspec.json.encode(fold.task()),
        )
        stop = NewWork("stop", STOP + row.label.agent, work.log)
        drops = (work.log, f"deadline:{work.log}", f"cancel:{work.log}")
        return Batch((append,), (stop,), (), work.claim, (work.id,), drops, (journal_log(work.log),))
