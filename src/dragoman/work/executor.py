"""Takes turns: turns work that this node holds into running agents, and ends what they leave behind.

It learns of work from the store, at once when the store leased it here, else by claiming; it
answers to nobody but the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import NamedTuple

from ..model.agent import Conduct
from ..model.errors import AgentError
from ..model.peer import Clock
from ..store.folding import fold_of
from ..store.store import Batch, Fenced, Refusal, Store, StoreFull, Work
from .journal import Journal, Mismatch, journal_log
from .telling import Lost
from .turn import DRIVEN, Driver, Stop, Turn

__all__ = ["STOP", "Executor", "Runner"]

log = logging.getLogger("dragoman.work")

# Questions whose code is kept in memory; the code of older ones is dropped and run again when answered.
PARKED_MAX = 1000
CLAIM_MAX = 100
# Work that is due at nobody's hint (leases that ended, time that came) is looked for this often.
LOOK_SECONDS = 1.0
RETRY_SECONDS = 5.0
STOP_SECONDS_MAX = 600.0
STOP = "stop "


class Runner(NamedTuple):
    """An agent as the executor knows it: its rules and its code."""

    conduct: Conduct
    drive: Driver
    stop: Stop | None = None


class _Running(NamedTuple):
    task: asyncio.Task[None]
    turn: Turn
    topic: str


class Executor:
    """The claimant of turns in this process."""

    def __init__(self, store: Store, clock: Clock, node: str, runners: Mapping[str, Runner]) -> None:
        self.node = node
        self.free = {name: runner.conduct.turns_max for name, runner in runners.items()}
        # Stopping never waits for a slot.
        self.free.update({STOP + name: 1 << 30 for name in runners})
        self._store = store
        self._clock = clock
        self._runners = runners
        # By task: a task has at most one turn.
        self._running: dict[str, _Running] = {}
        self._parked: dict[str, None] = {}
        self._side: set[asyncio.Task[None]] = set()
        self._hint = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._draining = False

    def start(self) -> None:
        """Offer to take work, and look for what is there already."""
        self._store.offer(self)
        self._hint.set()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    # What the store calls.

    def take(self, work: Work) -> None:
        try:
            self._take(work)
        except Exception:
            # The store is in the middle of a commit that is not about this, or of handing out other work.
            log.exception("task %s cannot be read back: its turn is not taken", work.log)
            self._give_back(work.topic)

    def _take(self, work: Work) -> None:
        if work.kind == "stop":
            self._aside(self._stop(work))
            return
        there = self._running.get(work.log)
        if there is not None:
            if there.turn.is_asking and self._resume(there.turn, work):
                return
            self.forget(work.log)
        runner = self._runners[work.topic]
        turn = self._turn(work, runner.conduct)
        if turn is None:
            # Its task was swept away; so is its work.
            self._give_back(work.topic)
            self._aside(self._end(work))
            return
        turn.on_park = self._park
        task = asyncio.get_running_loop().create_task(self._run(turn, work, runner))
        self._running[work.log] = _Running(task, turn, work.topic)

    def hint(self) -> None:
        self._hint.set()

    # Turns.

    async def _run(self, turn: Turn, work: Work, runner: Runner) -> None:
        turn.has_begun = True
        try:
            await self._drive(turn, runner, work)
        finally:
            here = self._running.get(work.log)
            if here is not None and here.turn is turn:
                del self._running[work.log]
                self._parked.pop(work.log, None)
            if turn.holds_slot:
                self._give_back(work.topic)

    def _turn(self, work: Work, conduct: Conduct) -> Turn | None:
        if work.memo is not None:
            # Leased as it was put: the task is as the engine has just made it.
            fold, label = work.memo
            return Turn(self._store, self._clock, conduct, work, fold, 1, label)
        row = self._store.row(work.log)
        if row is None:
            return None
        fold = fold_of(self._store, work.log, row.seq)
        entries = self._store.read(journal_log(work.log), 0, 100_000)
        journal = Journal(entries) if entries else None
        return Turn(self._store, self._clock, conduct, work, fold, row.seq, row.label, journal)

    async def _drive(self, turn: Turn, runner: Runner, work: Work) -> None:
        conduct = runner.conduct
        try:
            if work.attempts > conduct.attempts_max:
                await turn.fail(
                    f"The turn was interrupted {conduct.attempts_max} times and is not tried again.",
                    {"reason": "interrupted"},
                )
                return
            if work.attempts > 1 and conduct.on_interrupt == "fail":
                await turn.fail("The turn was interrupted.", {"reason": "interrupted"})
                return
            turn.begin()
            await runner.drive(turn)
            if not turn.is_settled:
                await turn.complete()
        except Lost as lost:
            await self._lost(turn, lost)
        except asyncio.CancelledError:
            if not self._draining and not turn.is_lost and not turn.is_asking:
                # The agent's own code was cancelled from within: for the caller that is a failure.
                await self._fail(turn, conduct, "The agent gave up.")
            raise
        except Exception as wrong:
            await self._fail(turn, conduct, _said(wrong), wrong)

    async def _lost(self, turn: Turn, lost: Lost) -> None:
        cause = lost.__cause__
        if cause is not None and not isinstance(cause, Fenced):
            log.error("turn %s stopped: %s", turn.task_id, cause)
            claim = turn.claim
            await self._insist(
                lambda: self._store.release(claim.work, claim.epoch, self._clock.now() + RETRY_SECONDS)
            )

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """Until it is written: a disk that is full now has room again some time, and nobody else does it."""
        while True:
            try:
                return await write()
            except StoreFull:
                await asyncio.sleep(RETRY_SECONDS)

    async def _fail(self, turn: Turn, conduct: Conduct, words: str, wrong: Exception | None = None) -> None:
        if wrong is not None:
            log.error("agent %s failed on task %s", conduct.name, turn.task_id, exc_info=wrong)
        if turn.is_settled:
            return
        try:
            await turn.fail(words)
        except Lost as lost:
            await self._lost(turn, lost)

    def _park(self, turn: Turn) -> None:
        """A question waits without a slot, and its code is only a cache: drop the oldest beyond the bound."""
        self._give_back(self._running[turn.task_id].topic)
        self._parked[turn.task_id] = None
        if len(self._parked) > PARKED_MAX:
            oldest = next(iter(self._parked))
            del self._parked[oldest]
            running = self._running.pop(oldest, None)
            if running is not None:
                running.turn.lose()
                running.task.cancel()

    def _resume(self, turn: Turn, work: Work) -> bool:
        row = self._store.row(work.log)
        assert row is not None, "a task that is answered is there"
        had_slot = turn.holds_slot
        if not turn.resume(work, fold_of(self._store, work.log, row.seq), row.seq):
            return False
        self._parked.pop(work.log, None)
        if had_slot:
            # The answer was quicker than the question's own commit: it brought a second slot.
            self._give_back(work.topic)
        return True

    def _give_back(self, topic: str) -> None:
        self.free[topic] += 1
        if self.free[topic] == 1:
            self._hint.set()

    # Stopping.

    async def _stop(self, work: Work) -> None:
        """A caller canceled: the log says so already; here the code is stopped."""
        self.forget(work.log)
        try:
            if await self._is_stopped(work):
                await self._end(work)
        finally:
            self.free[work.topic] += 1

    async def _is_stopped(self, work: Work) -> bool:
        """Whether what the turn drove outside has stopped too. It is asked again until it has."""
        runner = self._runners[work.topic.removeprefix(STOP)]
        driven = self._store.record(DRIVEN, work.log) if runner.stop is not None else None
        if runner.stop is None or driven is None:
            return True
        try:
            await runner.stop(driven.decode())
        except Exception as wrong:
            wait_seconds = min(STOP_SECONDS_MAX, RETRY_SECONDS * 2 ** min(work.attempts - 1, 16))
            log.warning("%s could not be stopped, again in %.0f s: %s", driven.decode(), wait_seconds, wrong)
            due = self._clock.now() + wait_seconds
            await self._insist(lambda: self._store.release(work.id, work.epoch, due))
            return False
        return True

    async def _end(self, work: Work) -> None:
        # Fenced: our lease ended first, and whoever has it now ends it.
        with suppress(Fenced):
            await self._insist(lambda: self._store.commit(Batch(claim=work.claim, ends=(work.id,))))

    def forget(self, task_id: str) -> None:
        """Stop the code of a task that is over."""
        self._parked.pop(task_id, None)
        running = self._running.pop(task_id, None)
        if running is not None:
            running.turn.lose()
            running.task.cancel()
            if not running.turn.has_begun:
                # It will never run, so it will not give its slot back itself.
                self._give_back(running.topic)

    def _aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._side.add(task)
        task.add_done_callback(self._side.discard)

    # Looking for work that nobody handed over.

    async def _look(self) -> None:
        while not self._draining:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hint.wait(), LOOK_SECONDS)
            self._hint.clear()
            try:
                await self._claim()
            except Refusal as refusal:
                # No room for a lease just now: what is due stays due.
                log.warning("work could not be claimed: %s", refusal)

    async def _claim(self) -> None:
        for kind, mark in (("stop", STOP), ("turn", "")):
            topics = [mark + name for name in self._runners if self.free[mark + name] > 0]
            room = min([CLAIM_MAX, *(self.free[topic] for topic in topics)])
            if not topics or self._draining:
                continue
            for work in await self._store.claim(kind, topics, self.node, self._clock.now(), room):
                self.free[work.topic] -= 1
                self.take(work)

    async def drain(self, seconds: float) -> None:
        """Take no more work; give running turns time to end; then let go of the rest, to be claimed again."""
        self._draining = True
        for topic in self.free:
            self.free[topic] = -(1 << 30)
        if self._looking is not None:
            self._looking.cancel()
        asked = [running for running in self._running.values() if running.turn.is_asking]
        for running in asked:
            running.task.cancel()
        busy = [running.task for running in self._running.values() if not running.turn.is_asking]
        if busy:
            await asyncio.wait(busy, timeout=seconds)
        for task in (*busy, *self._side):
            task.cancel()
        await asyncio.gather(*busy, *self._side, *(one.task for one in asked), return_exceptions=True)

    @property
    def running(self) -> int:
        """How many turns run here now."""
        return len(self._running)


def _said(wrong: Exception) -> str:
    """What callers may read of an agent's mishap: the kind of it; the rest is in our log."""
    if isinstance(wrong, Mismatch | AgentError):
        return f"The agent's code did something that cannot be: {wrong}"
    return f"The agent failed ({type(wrong).__name__})."
