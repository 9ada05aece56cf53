"""A small world on one event loop: nodes that crash and stop, a store between them, time that leaps, a bad network."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from dragoman import Agent
from dragoman.model.errors import AgentError
from dragoman.model.events import Logged
from dragoman.store.memory import MemoryStore
from dragoman.store.store import Batch, Claimant, Done, Refusal, Store, Work
from dragoman.testing.clock import TurnedClock
from dragoman.testing.faults import Cut, FaultyStore
from tests.sim.checker import Checker
from tests.work.stage import Node

T = TypeVar("T")

NODES = 3
RETRIES = 200


class Offer:
    """A node's claimant as the store sees it: there only while that node itself commits, and sometimes deaf."""

    def __init__(self, view: View, claimant: Claimant) -> None:
        self.view = view
        self.node = claimant.node
        self.claimant = claimant

    @property
    def free(self) -> dict[str, int]:
        return self.claimant.free if self.view.world.submitter is self.view else {}

    def take(self, work: Work) -> None:
        self.view.taken.append((self, work))

    def hint(self) -> None:
        # A wake-up is a hint: half of them get lost.
        if not self.view.is_cut and not self.view.is_paused and self.view.world.chance(0.5):
            self.claimant.hint()


class View(FaultyStore):
    """The store as one node sees it: late, in order, and with the node's end just before or after a commit."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.store)
        self.world = world
        self.name = name
        self.node: Node
        self.is_paused = False
        self.taken: list[tuple[Offer, Work]] = []
        self._queue: deque[tuple[Batch, Done]] = deque()
        self._is_due = False
        self._resumed = asyncio.Event()
        self._resumed.set()

    # A stopped process: what it had on the way to the store arrives when it goes on.

    def pause(self) -> None:
        self.is_paused = True
        self._resumed.clear()

    def go_on(self) -> None:
        self.is_paused = False
        self._resumed.set()
        self._arrive()

    async def _reached(self) -> None:
        await self._resumed.wait()
        await super()._reached()

    def submit(self, batch: Batch, done: Done) -> None:
        if self.is_cut:
            return
        world = self.world
        if not self.is_paused and world.chance(world.crash_rate):
            if world.chance(0.5):
                self._commit(batch, lambda refusal: None, is_last=True)
            self.node.kill()
            return
        self._queue.append((batch, done))
        if self.is_paused:
            return
        delay = world.commit_delay()
        if delay == 0 and not self._is_due:
            self._arrive()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(delay, self._arrive)

    def _arrive(self) -> None:
        self._is_due = False
        while self._queue and not self.is_cut and not self.is_paused:
            self._commit(*self._queue.popleft())

    def _commit(self, batch: Batch, done: Done, is_last: bool = False) -> None:
        world = self.world
        was, world.submitter = world.submitter, self
        answer: list[Refusal | None] = []
        self.store.submit(batch, answer.append)
        world.submitter = was
        [refusal] = answer
        world.checker.answered(self.name, batch, refusal, world.clock.now())
        taken, self.taken = self.taken, []
        for offer, work in taken:
            world.checker.leased(self.name, work)
            if not is_last:
                self.node.enter(offer.claimant.take, work)
        done(refusal)

    def offer(self, claimant: Claimant) -> None:
        self.store.offer(Offer(self, claimant))  # type: ignore[arg-type]

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        await self._reached()
        works = await self.store.claim(kind, topics, node, now, limit)
        for work in works:
            self.world.checker.leased(self.name, work)
        if works and self.world.chance(self.world.crash_rate):
            self.node.kill()
        await self._reached()
        return works

    async def release(self, work: int, epoch: int, due: float) -> None:
        await self._reached()
        self.world.checker.released(self.name, work, epoch)
        await self.store.release(work, epoch, due)

    async def beat(self, node: str, until: float, now: float) -> int:
        await self._reached()
        self.world.checker.beat(node, until, now)
        return await self.store.beat(node, until, now)


class World:
    """Everything of one episode, made from a seed."""

    def __init__(self, seed: int, clock: TurnedClock, store: Store | None = None) -> None:
        self.random = random.Random(seed)
        self.clock = clock
        self.checker = Checker(seed)
        self.store: Any = store or MemoryStore(tasks_max=100_000)
        self.submitter: View | None = None
        self.nodes: list[Node] = []
        self.agents: Sequence[Agent] = ()
        self.is_calm = False
        self.crash_rate = self.random.choice((0.0, 0.002, 0.01))
        self.latency_seconds = self.random.choice((0.0, 0.0, 0.005, 0.05))
        self.loss = self.random.choice((0.0, 0.05, 0.2))
        # What nobody caught: our own code must not fail, whatever the weather.
        self.wrongs: list[str] = []
        self.late: set[asyncio.Task[None]] = set()
        self._made = 0

    def went_wrong(self, said: dict[str, Any]) -> None:
        self.wrongs.append(f"{said.get('message')}: {said.get('exception')!r}")

    def chance(self, of: float) -> bool:
        return not self.is_calm and of > 0 and self.random.random() < of

    def commit_delay(self) -> float:
        if not self.latency_seconds or self.random.random() < 0.3:
            return 0.0
        return self.random.random() * self.latency_seconds

    async def start_node(self) -> None:
        self._made += 1
        name = f"n{self._made}"
        view = View(self, name)
        node = Node(name, view, self.clock, self.agents)
        view.node = node
        self.nodes.append(node)
        await node.start()

    # What befalls the nodes.

    async def weather(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0.5, 6))
            what = self.random.random()
            self.checker.note("weather", round(what, 3))
            node = self.random.choice(self.nodes)
            if what < 0.15 and self.crash_rate:
                node.kill()
            elif what < 0.4 and not node.is_dead:
                await self._stop(node)
            elif what < 0.45:
                # The whole machine slept.
                self.clock.turn(self.random.uniform(1, 60))
            await self.mend()

    async def _stop(self, node: Node) -> None:
        view: View = node.store
        if not view.is_paused:
            view.pause()
            seconds = self.random.choice((1, 5, 40, 90))
            asyncio.get_running_loop().call_later(seconds, view.go_on)

    async def mend(self) -> None:
        """Bury the dead, and start others in their place."""
        for node in [node for node in self.nodes if node.is_dead]:
            await node.gone()
            self.nodes.remove(node)
            self.checker.deaths += 1
        while len(self.nodes) < NODES:
            await self.start_node()

    async def calm(self) -> None:
        """From here on nothing goes wrong."""
        self.is_calm = True
        await self.mend()
        for node in self.nodes:
            node.store.go_on()

    # The network between callers and nodes.

    def _pick(self) -> Node:
        return self.random.choice(self.nodes)

    async def ask(self, what: Callable[[Node], Coroutine[Any, Any, T]], seconds: float = 30.0) -> T:
        """Ask some node until there is an answer. Requests and answers are lost, doubled and late."""
        for _ in range(RETRIES):
            if self.checker.broken:
                raise self.checker.broken
            node = self._pick()
            try:
                async with asyncio.timeout(seconds):
                    if self.latency_seconds:
                        await asyncio.sleep(self.random.random() * 0.1)
                    if self.chance(self.loss):
                        raise Cut("the request was lost")
                    if self.chance(self.loss):
                        self._again(node, what)
                    answer = await node.do(what(node))
                    if self.chance(self.loss):
                        raise Cut("the answer was lost")
                    return answer
            except (Cut, TimeoutError):
                await asyncio.sleep(self.random.random())
            except AgentError as wrong:
                if not wrong.row.retryable:
                    raise
                await asyncio.sleep(self.random.random())
        raise AssertionError("no answer in so many tries")

    def _again(self, node: Node, what: Callable[[Node], Coroutine[Any, Any, T]]) -> None:
        """The network delivers a request a second time, and nobody hears the answer."""

        async def late() -> None:
            try:
                await asyncio.sleep(self.random.random())
                async with asyncio.timeout(30):
                    await node.do(what(node))
            except (Cut, TimeoutError, AgentError):
                pass

        task = asyncio.get_running_loop().create_task(late())
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def stream(
        self, watch: Callable[[Node], AsyncGenerator[Sequence[Logged], None]]
    ) -> AsyncGenerator[Logged, None]:
        """One connection to some node: it ends when the stream does, or with `Cut` wherever it breaks."""
        node = self._pick()
        runs = watch(node)
        try:
            while True:
                if self.chance(self.loss / 4):
                    raise Cut("the stream broke")
                try:
                    async with asyncio.timeout(45):
                        run = await node.do(anext(runs))  # type: ignore[arg-type]
                except StopAsyncIteration:
                    return
                except RuntimeError as wrong:
                    # How a coroutine says that an iterator it asked is at its end.
                    if isinstance(wrong.__cause__, StopAsyncIteration):
                        return
                    raise
                except TimeoutError:
                    raise Cut("nothing came for long") from None
                for logged in run:
                    yield logged
        finally:
            await runs.aclose()
