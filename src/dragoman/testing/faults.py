"""Faults on demand: a Store and a Peer that fail, lose their answers, are slow, or wake people for nothing.

Calls are counted from 1, from the moment the wrapper is made; a plan names the calls it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from ..model.events import Logged
from ..model.operations.a2a import Request
from ..model.peer import Answer, Caller, Peer
from ..store.store import (
    Batch,
    Claimant,
    Done,
    Fed,
    Found,
    Query,
    Refusal,
    Row,
    Store,
    StoreLost,
    Work,
)

__all__ = ["Cut", "FaultyPeer", "FaultyStore"]


class Cut(ConnectionError):
    """The other side is gone, or was never reached: nobody can say which."""


class FaultyStore:
    """A store as one node sees it. Only commits are counted; what it cannot reach answers nothing.

    `fail(3, StoreFull("…"))` refuses the third commit. `lose_reply(3)` does it and says that it is
    unknown. `slow(0.2)` answers later. `crash(3, after=True)` is the end of the node at its third
    commit. `cut()` is the end of it now; `heal()` lets it in again.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits = 0
        self.is_cut = False
        self.wakes_early = False
        self.on_crash: Callable[[], None] = lambda: None
        self._refusals: dict[int, Refusal] = {}
        self._lost: dict[int, Refusal] = {}
        self._crashes: dict[int, bool] = {}
        self._slow_seconds = 0.0
        self._claimants: list[_Watched] = []

    # The plan.

    def fail(self, nth: int, refusal: Refusal) -> None:
        """The nth commit is refused and changes nothing."""
        self._refusals[nth] = refusal

    def lose_reply(self, nth: int, refusal: Refusal | None = None) -> None:
        """The nth commit happens, and whoever asked hears that it is lost."""
        self._lost[nth] = refusal or StoreLost("the answer of a commit was lost")

    def slow(self, seconds: float) -> None:
        """Every commit from now on is answered so much later; they stay in order."""
        self._slow_seconds = seconds

    def crash(self, nth: int, *, after: bool) -> None:
        """The node ends at its nth commit: just before it, or when it is done but nobody knows."""
        self._crashes[nth] = after

    def wake_early(self) -> None:
        """From now on every wait returns at once, though nothing happened."""
        self.wakes_early = True

    def cut(self) -> None:
        """From now on nothing reaches the store and nothing is answered."""
        self.is_cut = True
        for claimant in self._claimants:
            claimant.free = {}

    def heal(self) -> None:
        """Undo `cut`."""
        self.is_cut = False
        for claimant in self._claimants:
            claimant.free = claimant.claimant.free

    # Writing.

    def submit(self, batch: Batch, done: Done) -> None:
        if self.is_cut:
            return
        self.commits += 1
        nth = self.commits
        after = self._crashes.get(nth)
        if after is not None:
            # A lease may come to this node with its last commit; it will never know.
            self.is_cut = True
            if after:
                self.store.submit(batch, lambda refusal: None)
            self.cut()
            self.on_crash()
            return
        refusal = self._refusals.get(nth)
        if refusal is not None:
            self._answer(done, refusal)
            return
        self.store.submit(batch, lambda refusal: self._answer(done, refusal or self._lost.get(nth)))

    def _answer(self, done: Done, refusal: Refusal | None) -> None:
        if not self._slow_seconds:
            done(refusal)
            return
        asyncio.get_running_loop().call_later(self._slow_seconds, self._late, done, refusal)

    def _late(self, done: Done, refusal: Refusal | None) -> None:
        if not self.is_cut:
            done(refusal)

    async def commit(self, batch: Batch) -> None:
        answered: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

        def done(refusal: Refusal | None) -> None:
            if not answered.done():
                answered.set_result(refusal)

        self.submit(batch, done)
        refusal = await answered
        if refusal is not None:
            raise refusal

    # Reading.

    def row(self, log: str) -> Row | None:
        return self.store.row(log)

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        return self.store.read(log, after, limit)

    def snapshot(self, log: str, at: int | None = None) -> tuple[int, bytes] | None:
        return self.store.snapshot(log, at)

    async def wait(self, log: str, after: int) -> None:
        if self.wakes_early:
            await asyncio.sleep(0.001)
            return
        await self.store.wait(log, after)
        await self._reached()

    async def find(self, query: Query) -> Found:
        await self._reached()
        return await self.store.find(query)

    def record(self, kind: str, key: str) -> bytes | None:
        return self.store.record(kind, key)

    def feed(self, after: int, limit: int = 1000) -> Sequence[Fed]:
        return self.store.feed(after, limit)

    # Work.

    def offer(self, claimant: Claimant) -> None:
        watched = _Watched(self, claimant)
        self._claimants.append(watched)
        self.store.offer(watched)

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        await self._reached()
        return await self.store.claim(kind, topics, node, now, limit)

    async def release(self, work: int, epoch: int, due: float) -> None:
        await self._reached()
        await self.store.release(work, epoch, due)

    async def beat(self, node: str, until: float, now: float) -> int:
        await self._reached()
        return await self.store.beat(node, until, now)

    def next_due(self) -> float | None:
        return self.store.next_due()

    async def sweep(self, before: float, limit: int) -> int:
        await self._reached()
        return await self.store.sweep(before, limit)

    async def close(self) -> None:
        await self.store.close()

    async def _reached(self) -> None:
        if self.is_cut:
            await asyncio.get_running_loop().create_future()


class _Watched:
    """A claimant that gets nothing while its node is cut off."""

    def __init__(self, store: FaultyStore, claimant: Claimant) -> None:
        self.node = claimant.node
        self.free = {} if store.is_cut else claimant.free
        self.claimant = claimant
        self._store = store

    def take(self, work: Work) -> None:
        if not self._store.is_cut:
            self.claimant.take(work)

    def hint(self) -> None:
        if not self._store.is_cut:
            self.claimant.hint()


class FaultyPeer:
    """A peer behind a bad line. Calls and watches are counted together."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.calls = 0
        self._failures: dict[int, Exception] = {}
        self._lost: dict[int, Exception] = {}
        self._cuts: dict[int, int] = {}
        self._slow_seconds = 0.0

    def fail(self, nth: int, wrong: Exception | None = None) -> None:
        """The nth call never arrives."""
        self._failures[nth] = wrong or Cut("the call never arrived")

    def lose_reply(self, nth: int, wrong: Exception | None = None) -> None:
        """The nth call is answered and the answer is lost."""
        self._lost[nth] = wrong or Cut("the answer was lost")

    def cut_stream(self, nth: int, runs: int) -> None:
        """The nth call is a watch, and breaks after so many runs of events."""
        self._cuts[nth] = runs

    def slow(self, seconds: float) -> None:
        """Every call from now on takes so much longer to arrive."""
        self._slow_seconds = seconds

    async def call(self, caller: Caller, request: Request) -> Answer:
        nth = await self._arrive()
        answer = await self.peer.call(caller, request)
        if nth in self._lost:
            raise self._lost[nth]
        return answer

    async def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        nth = await self._arrive()
        left = self._cuts.get(nth)
        stream = self.peer.watch(caller, request, after)
        try:
            async for run in stream:
                if left == 0 or nth in self._lost:
                    raise self._lost.get(nth, Cut("the stream broke"))
                yield run
                left = None if left is None else left - 1
            if left is not None:
                raise Cut("the stream broke")
        finally:
            await stream.aclose()

    async def _arrive(self) -> int:
        self.calls += 1
        nth = self.calls
        if self._slow_seconds:
            await asyncio.sleep(self._slow_seconds)
        if nth in self._failures:
            raise self._failures[nth]
        return nth
