"""One episode: some agents, many callers, bad weather, then calm; and everything must have come out right."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any, NamedTuple

from dragoman import Agent, Turn
from dragoman.model.errors import AgentError
from dragoman.model.events import Logged, Replied, StatusChanged
from dragoman.model.operations.a2a import Cancel, Configuration, Get, List, Send, Subscribe
from dragoman.model.peer import Caller
from dragoman.model.task import Message, Part, Role, State, Task
from dragoman.store.folding import fold_of
from dragoman.store.store import Store
from dragoman.testing.clock import TurnedClock, run
from dragoman.testing.faults import Cut
from tests.sim.checker import Shadow
from tests.sim.world import World
from tests.work.stage import DONE, belonging

TASKS = 200
DEADLINE_SECONDS = 60.0
QUIET_SECONDS = 400.0
PATIENCE_SECONDS = 3000.0
OVER = frozenset(DONE)


class Ran(NamedTuple):
    """What an episode came to."""

    seed: int
    trace: str
    steps: int
    tasks: int
    commits: int
    refusals: int
    deaths: int
    takeovers: int
    states: dict[str, int]


def agents(world: World) -> list[Agent]:
    """Agents whose code is a script in the message: so that everybody knows what must come out."""

    async def take(turn: Turn) -> None:
        script = turn.parts[0].data
        async with turn.stream() as out:
            for n, (op, seconds) in enumerate(script):
                await play(turn, out, op, f"{op}{n}", seconds)
        if turn.cancelled:
            await turn.cancel("stopped")

    async def play(turn: Turn, out: Any, op: str, name: str, seconds: float) -> None:
        async def work() -> str:
            world.checker.step_runs(turn.task_id, name)
            await asyncio.sleep(seconds)
            return f"{name};"

        match op:
            case "chunk":
                await out.write(f"{name};")
            case "say":
                await turn.say(name)
            case "wait":
                await asyncio.sleep(seconds)
            case "step":
                await out.write(await turn.step(name, work))
            case "ask":
                await out.write(f"{(await turn.ask(name)).text};")
            case "both":
                await asyncio.gather(branch(turn, f"{name}a", seconds), branch(turn, f"{name}b", 1 - seconds))
            case "reply":
                if not turn.history[1:]:
                    await turn.reply(name)
            case "fail" | "reject":
                await getattr(turn, op)(name)
            case "raise":
                raise ValueError(name)

    async def branch(turn: Turn, name: str, seconds: float) -> None:
        async def work() -> str:
            world.checker.step_runs(turn.task_id, name)
            await asyncio.sleep(seconds)
            return name

        word = await turn.step(name, work)
        await asyncio.sleep(0.2)
        await turn.artifact(word, name=name)

    rules: dict[str, Any] = {"attempts_max": 1000, "input_deadline_seconds": DEADLINE_SECONDS}
    return [
        Agent("plain", take, **rules),
        Agent("narrow", take, turns_max=3, **rules),
        Agent("graceful", take, cancel_grace_seconds=3.0, **rules),
        Agent("either", take, answers="either", first_word_seconds=0.5, **rules),
    ]


def script_of(world: World, agent: str) -> list[tuple[str, float]]:
    pick = world.random
    ops = pick.choices(
        ("chunk", "say", "wait", "step", "ask", "both"), (6, 1, 2, 3, 1, 1), k=pick.randint(1, 6)
    )
    if agent == "either" and pick.random() < 0.6:
        ops = ["wait", "reply"] if pick.random() < 0.5 else ["reply"]
    ending = pick.random()
    if ending < 0.12 and "reply" not in ops:
        ops.append("fail" if ending < 0.04 else "reject" if ending < 0.08 else "raise")
    return [(op, round(pick.random(), 3)) for op in ops]


class Customer:
    """Somebody with one thing to be done: asks, answers, watches, sometimes changes their mind."""

    def __init__(self, world: World, number: int) -> None:
        pick = world.random
        self.world = world
        self.number = number
        self.agent = pick.choice(("plain", "plain", "narrow", "graceful", "either"))
        self.caller = Caller(f"owner{number % 7}", key=f"key{number}")
        self.script = script_of(world, self.agent)
        self.message = self.said(f"m{number}", Part(data=[list(op) for op in self.script]))
        self.answers = pick.random() < 0.9
        self.cancels_after = pick.uniform(0, 6) if pick.random() < 0.15 else None
        self.watches = pick.random() < 0.4
        self.chats = pick.random() < 0.1
        self.ids: set[str] = set()
        self.seen: list[Logged] = []
        self.first = 0
        self.is_message = False
        self.reconnects = 0

    def said(self, name: str, part: Part, task_id: str = "") -> Message:
        return Message(name, Role.USER, (part,), task_id=task_id)

    async def live(self) -> None:
        await asyncio.sleep(self.world.random.uniform(0, 15))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.get_it_done()
        except TimeoutError:
            self.world.checker.law(
                False, f"customer {self.number} ({self.script}) waits for {self.ids} in vain"
            )

    async def get_it_done(self) -> None:
        if self.watches and self.cancels_after is None:
            task_id = await self.stream()
        else:
            task_id = await self.send()
        if task_id and self.cancels_after is not None:
            await asyncio.sleep(self.cancels_after)
            await self.cancel(task_id)
        while task_id and not self.world.checker.broken:
            task = await self.get(task_id)
            if task.state in OVER:
                return
            if task.state is State.INPUT_REQUIRED and self.answers:
                await self.answer(task)
            elif self.chats:
                self.chats = False
                await self.add(task_id, f"chat{self.number}", "by the way")
            await asyncio.sleep(self.world.random.uniform(0.1, 3))

    async def send(self) -> str:
        immediately = self.world.random.random() < 0.6
        request = Send(self.message, Configuration(return_immediately=immediately))
        answer = await self.world.ask(lambda node: node.peers[self.agent].call(self.caller, request))
        return self.got(answer.value)

    def got(self, reply: Any) -> str:
        if isinstance(reply, Message):
            self.is_message = True
            return ""
        self.ids.add(reply.id)
        self.world.checker.law(len(self.ids) == 1, f"one key opened {self.ids}")
        return str(reply.id)

    async def get(self, task_id: str) -> Task:
        answer = await self.world.ask(lambda node: node.peers[self.agent].call(self.caller, Get(task_id)))
        task = answer.value
        assert isinstance(task, Task)
        return task

    async def answer(self, task: Task) -> None:
        asked = sum(message.role is Role.AGENT for message in task.history)
        await self.add(task.id, f"answer{self.number}.{asked}", f"a{asked}")

    async def add(self, task_id: str, name: str, text: str) -> None:
        request = Send(self.said(name, Part(text=text), task_id), Configuration(return_immediately=True))
        try:
            await self.world.ask(lambda node: node.peers[self.agent].call(self.caller, request))
        except AgentError as wrong:
            self.world.checker.law(wrong.name == "UnsupportedOperation", f"{task_id}: {wrong}")

    async def cancel(self, task_id: str) -> None:
        try:
            await self.world.ask(lambda node: node.peers[self.agent].call(self.caller, Cancel(task_id)))
        except AgentError as wrong:
            self.world.checker.law(wrong.name == "TaskNotCancelable", f"{task_id}: {wrong}")

    async def stream(self) -> str:
        """Send and watch; whenever the line breaks, go on from where it was."""
        task_id = ""
        while not self.world.checker.broken:
            try:
                if not task_id:
                    self.seen.clear()
                    request: Any = Send(self.message)
                    async for logged in self.world.stream(
                        lambda node: node.peers[self.agent].watch(self.caller, request)
                    ):
                        if isinstance(logged.event, Replied):
                            self.is_message = True
                            return ""
                        self.seen.append(logged)
                        if not task_id:
                            task_id = self.got(logged.event.task)  # type: ignore[union-attr]
                else:
                    await self.resume(task_id)
            except Cut:
                self.reconnects += 1
                await asyncio.sleep(self.world.random.random() * 2)
                continue
            if self.is_at_end:
                return task_id
            # It waits for an answer: give it, and watch on.
            task = await self.get(task_id)
            if task.state in OVER:
                continue
            if not self.answers:
                return task_id
            if task.state is State.INPUT_REQUIRED:
                await self.answer(task)
        return task_id

    async def resume(self, task_id: str) -> None:
        after = self.seen[-1].seq
        is_first = True
        async for logged in self.world.stream(
            lambda node: node.peers[self.agent].watch(self.caller, Subscribe(task_id), after)
        ):
            if is_first:
                self.world.checker.law(
                    logged.seq == after, f"{task_id}: asked after {after}, got {logged.seq}"
                )
                self.world.checker.as_of(task_id, logged)
                is_first = False
                continue
            self.seen.append(logged)
            if isinstance(logged.event, StatusChanged) and logged.event.status.state in (
                State.INPUT_REQUIRED,
                *OVER,
            ):
                return

    @property
    def is_at_end(self) -> bool:
        event = self.seen[-1].event if self.seen else None
        return isinstance(event, StatusChanged) and event.status.state in OVER

    # Afterwards.

    def check(self) -> None:
        checker = self.world.checker
        for task_id in self.ids:
            if self.seen:
                checker.watched(task_id, self.seen, self.first)
            shadow = checker.tasks[task_id]
            if shadow.fold.status.state is State.COMPLETED:
                self.check_artifacts(shadow)

    def check_artifacts(self, shadow: Shadow) -> None:
        """The result is that of a run that nothing disturbed."""
        answers = iter(self.world.checker.answers(shadow))
        words, names = [], []
        for n, (op, _) in enumerate(self.script):
            if op in ("chunk", "step"):
                words.append(f"{op}{n};")
            elif op == "ask":
                words.append(f"{next(answers, '?')};")
            elif op == "both":
                names += [f"{op}{n}a", f"{op}{n}b"]
        due = dict.fromkeys(names, "") | {name: name for name in names}
        if words:
            due["answer"] = "".join(words)
        got = {artifact.artifact_id: artifact.text for artifact in shadow.fold.task().artifacts}
        self.world.checker.law(got == due, f"{shadow.id} gave {got} and should have given {due}")


async def play(world: World, tasks: int) -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(belonging)
    me = asyncio.current_task()
    assert me is not None
    # The first broken law ends the play; what it leads to elsewhere says nothing more.
    world.checker.on_broken = me.cancel
    loop.set_exception_handler(lambda _, said: world.went_wrong(said))
    world.agents = agents(world)
    await world.mend()
    weather = loop.create_task(world.weather())
    customers = [Customer(world, n) for n in range(tasks)]
    lives = [loop.create_task(customer.live()) for customer in customers]
    try:
        for life in lives:
            await life
        weather.cancel()
        await asyncio.gather(weather, return_exceptions=True)
        await world.calm()
        quiet_by = world.clock.now() + QUIET_SECONDS
        while world.checker.all_over() and world.clock.now() < quiet_by and not world.checker.broken:
            await asyncio.sleep(1)
        await asyncio.sleep(5)
        await settled(world, customers)
    finally:
        for task in (weather, *lives, *world.late):
            task.cancel()
        for node in world.nodes:
            node.kill()
            await node.gone()
        await asyncio.gather(weather, *lives, *world.late, return_exceptions=True)


async def settled(world: World, customers: list[Customer]) -> None:
    """All is quiet: compare everything with everything."""
    checker = world.checker
    checker.law(not world.wrongs, f"our own code failed: {world.wrongs}")
    checker.law(not checker.all_over(), f"never ended: {checker.all_over()}")
    last: dict[str, int] = {}
    position = 0
    for fed in world.store.feed(0, 1_000_000):
        checker.law(fed.position > position, "the feed goes back")
        position = fed.position
        checker.law(
            fed.seq > last.get(fed.log, 0), f"the feed gives {fed.log} {fed.seq} after {last.get(fed.log)}"
        )
        last[fed.log] = fed.seq
    for task_id, shadow in checker.tasks.items():
        row = world.store.row(task_id)
        checker.law(row is not None and row.seq == len(shadow.events) == last[task_id], f"{task_id}: {row}")
        checker.law(list(world.store.read(task_id, 0, 100_000)) == shadow.events, f"{task_id}: another log")
        if shadow.fold.reply is None:
            checker.is_same(task_id, fold_of(world.store, task_id, sys.maxsize).task())
    checker.law(not checker.journals, f"journals are left: {list(checker.journals)}")
    for customer in customers:
        customer.check()
    for node in world.nodes:
        free = {name: node.executor.free[name] for name in node.peers}
        whole = {agent.name: agent.conduct.turns_max for agent in world.agents}
        checker.law(free == whole, f"{node.name} lost slots: {free}")
    await listed(world, customers)


async def listed(world: World, customers: list[Customer]) -> None:
    """Each owner's pages hold each of their tasks once."""
    peers = world.nodes[0].peers
    for owner in range(7):
        for agent, peer in peers.items():
            found: list[str] = []
            token = ""
            while True:
                page = (await peer.call(Caller(f"owner{owner}"), List(page_size=17, page_token=token))).value
                found += [task.id for task in page.tasks]  # type: ignore[union-attr]
                token = page.next_page_token  # type: ignore[union-attr]
                if not token:
                    break
            due = {
                task_id
                for task_id, shadow in world.checker.tasks.items()
                if shadow.agent == agent and shadow.owner == f"owner{owner}" and shadow.fold.reply is None
            }
            world.checker.law(sorted(found) == sorted(due), f"owner{owner} lists {len(found)} of {len(due)}")


def episode(seed: int, tasks: int = TASKS, store: Store | None = None) -> Ran:
    """Play one episode; raises `Broken` with the seed and the step where a law did not hold."""
    logging.getLogger("dragoman.work").disabled = True
    clock = TurnedClock()
    world = World(seed, clock, store)
    try:
        run(play(world, tasks), clock, seconds_max=20_000)
    except BaseException as wrong:
        if world.checker.broken is not None and wrong is not world.checker.broken:
            raise world.checker.broken from wrong
        if not isinstance(wrong, KeyboardInterrupt):
            wrong.add_note(f"(seed {seed}, step {world.checker.step})")
        raise
    finally:
        logging.getLogger("dragoman.work").disabled = False
    checker = world.checker
    return Ran(
        seed,
        checker.trace,
        checker.step,
        len(checker.tasks),
        checker.commits,
        checker.refusals,
        checker.deaths,
        checker.takeovers,
        checker.states(),
    )
