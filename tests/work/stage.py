"""Several nodes on one memory store and one turned clock: what the tests of work and the simulation play on."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from dragoman import Agent
from dragoman.engine.engine import Engine
from dragoman.model.events import ArtifactChanged, Event, StatusChanged, decode
from dragoman.model.operations.a2a import Cancel, Configuration, Get, Send
from dragoman.model.peer import ANYONE, Caller
from dragoman.model.task import Message, Part, Role, State, Task
from dragoman.store.memory import MemoryStore
from dragoman.store.store import Store
from dragoman.testing.clock import TurnedClock, run
from dragoman.testing.faults import Cut, FaultyStore
from dragoman.work.executor import Executor, Runner
from dragoman.work.upkeep import Upkeep

T = TypeVar("T")

LEASE_SECONDS = 30.0
_here: ContextVar[Node | None] = ContextVar("node", default=None)


class Node:
    """One process: what runs in it ends with it, and what it had not committed is gone."""

    def __init__(self, name: str, store: Any, clock: TurnedClock, agents: Sequence[Agent]) -> None:
        self.name = name
        self.store = store
        self.clock = clock
        self.is_dead = False
        self.tasks: dict[asyncio.Task[Any], None] = {}
        runners = {agent.name: Runner(agent.conduct, agent.drive) for agent in agents}
        self.executor = Executor(store, clock, name, runners)
        self.upkeep = Upkeep(store, clock, name, self.executor.forget, None)
        self.peers = {agent.name: Engine(store, clock, agent.conduct) for agent in agents}

    async def start(self) -> None:
        now = self.clock.now()
        await self.store.beat(self.name, now + LEASE_SECONDS, now)
        self.enter(self.executor.start)
        self.enter(self.upkeep.start)

    def enter(self, do: Callable[..., T], *arguments: Any) -> T:
        """Call something so that the tasks it makes belong to this node."""
        token = _here.set(self)
        try:
            return do(*arguments)
        finally:
            _here.reset(token)

    async def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Run something here; if the node ends meanwhile, whoever asked hears that the line was cut."""
        if self.is_dead:
            what.close()
            raise Cut(f"{self.name} is down")
        task = self.enter(asyncio.get_running_loop().create_task, what)
        try:
            return await task
        except asyncio.CancelledError:
            if self.is_dead:
                raise Cut(f"{self.name} went down") from None
            task.cancel()
            raise

    def kill(self) -> None:
        """End the process, now: nothing it still does reaches anybody."""
        self.is_dead = True
        self.store.cut()
        for task in list(self.tasks):
            task.cancel()

    async def gone(self) -> None:
        """Until nothing runs here; code that holds out is cancelled again."""
        while self.tasks:
            for task in list(self.tasks):
                task.cancel()
            await asyncio.sleep(0)


def belonging(
    loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, Any], context: Any = None, **more: Any
) -> asyncio.Task[Any]:
    """A task factory: each task is told to the node in which it was made."""
    task: asyncio.Task[Any] = asyncio.Task(what, loop=loop, context=context, **more)
    node = _here.get() if context is None else context.get(_here)
    if node is not None:
        node.tasks[task] = None
        task.add_done_callback(node.tasks.pop)
        if node.is_dead:
            task.cancel()
    return task


class Stage:
    """The agents, the store, the nodes, and a caller's plain words."""

    def __init__(self, *agents: Agent, tasks_max: int = 1000, store: Store | None = None) -> None:
        self.agents = agents
        self.clock = TurnedClock()
        self.store: Any = store or MemoryStore(tasks_max=tasks_max)
        self.nodes: list[Node] = []
        self._ids = itertools.count(1)

    async def node(self, **plan: Any) -> Node:
        """One more node, started."""
        view = FaultyStore(self.store)
        node = Node(f"n{len(self.nodes) + 1}", view, self.clock, self.agents)
        view.on_crash = node.kill
        for name, value in plan.items():
            getattr(view, name)(*value)
        self.nodes.append(node)
        await node.start()
        return node

    @property
    def live(self) -> Node:
        return next(node for node in self.nodes if not node.is_dead)

    def message(self, text: str, task_id: str = "", **more: Any) -> Message:
        return Message(f"m{next(self._ids)}", Role.USER, (Part(text=text),), task_id=task_id, **more)

    async def send(
        self, text: str, task_id: str = "", *, wait: bool = False, agent: str = "", caller: Caller = ANYONE
    ) -> Any:
        """Say something to the first agent (or the one named) on a node that lives."""
        node = self.live
        configuration = Configuration(return_immediately=not wait)
        request = Send(self.message(text, task_id), configuration)
        peer = node.peers[agent or self.agents[0].name]
        return (await node.do(peer.call(caller, request))).value

    async def get(self, task_id: str, *, agent: str = "") -> Task:
        peer = self.live.peers[agent or self.agents[0].name]
        task = (await peer.call(ANYONE, Get(task_id))).value
        assert isinstance(task, Task)
        return task

    async def cancel(self, task_id: str) -> Task:
        node = self.live
        task = (await node.do(node.peers[self.agents[0].name].call(ANYONE, Cancel(task_id)))).value
        assert isinstance(task, Task)
        return task

    async def until(self, task_id: str, *states: State, seconds: float = 600.0) -> Task:
        """The task once it is in one of these states."""
        async with asyncio.timeout(seconds):
            while True:
                row = self.store.row(task_id)
                if row is not None and row.head.state in states:
                    return await self.get(task_id)
                await asyncio.sleep(0.05)

    def log(self, task_id: str) -> list[Event]:
        return [decode(event) for event in self.store.read(task_id, 0, 100_000)]

    def states(self, task_id: str) -> list[str]:
        return [event.status.state.word for event in self.log(task_id) if isinstance(event, StatusChanged)]

    def chunks(self, task_id: str) -> list[str]:
        return [event.artifact.text for event in self.log(task_id) if isinstance(event, ArtifactChanged)]

    def only_task(self) -> str:
        """The id of the one task there is: whoever opened it may have lost the answer."""
        [task_id] = {fed.log for fed in self.store.feed(0)}
        return str(task_id)


def on_turned_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test on an event loop whose time leaps: a week takes no time, and 100,000 s are its bound.

    A test that takes `stage_of` is given a function that makes its stage, on the same clock.
    """

    @functools.wraps(test)
    def timed(*arguments: Any, **named: Any) -> None:
        clock = TurnedClock()

        async def play() -> None:
            loop = asyncio.get_running_loop()
            loop.set_task_factory(belonging)
            stages: list[Stage] = []
            _clocks.set((clock, stages))
            try:
                await test(*arguments, **named)
            finally:
                for stage in stages:
                    for node in stage.nodes:
                        node.kill()
                    for node in stage.nodes:
                        await node.gone()

        run(play(), clock)

    return timed


_clocks: ContextVar[tuple[TurnedClock, list[Stage]]] = ContextVar("clocks")


def staged(*agents: Agent, **more: Any) -> Stage:
    """A stage on the running test's clock, taken down with the test."""
    clock, stages = _clocks.get()
    stage = Stage(*agents, **more)
    stage.clock = clock
    stages.append(stage)
    return stage


def here() -> Node:
    """The node in which this code runs."""
    node = _here.get()
    assert node is not None, "agents run in nodes"
    return node


DONE = (State.COMPLETED, State.FAILED, State.CANCELED, State.REJECTED)
