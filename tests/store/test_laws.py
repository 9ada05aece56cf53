"""The laws on each store: in memory and in a SQLite file; and each store against a model of a page.

The model is what the laws say in the fewest words: it knows nothing of groups, caches or indexes.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dragoman.core.tasks import TERMINAL
from dragoman.model.task import State
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import (
    Append,
    Batch,
    Claim,
    Conflict,
    Fenced,
    Head,
    Label,
    NewWork,
    Present,
    Query,
    Record,
    Refusal,
    Store,
    StoreFull,
)
from tests.store.exercise import EVERYONE, HandClock, Laws, Opened, together


class TestMemory(Laws):
    @pytest.fixture
    def opened(self) -> Opened:
        @asynccontextmanager
        async def open_one(active_tasks_max: int = 1000) -> AsyncGenerator[Store, None]:
            store = MemoryStore(tasks_max=active_tasks_max)
            yield store
            await store.close()

        return open_one


class TestSqlite(Laws):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        @asynccontextmanager
        async def open_one(**limits: Any) -> AsyncGenerator[Store, None]:
            store = await SqliteStore.open(tmp_path / "store.db", clock=HandClock(), **limits)
            yield store
            await store.close()

        return open_one


# The model.

ACTIVE_MAX = 3


@dataclass
class Written:
    """A log of the model."""

    label: Label
    head: Head
    events: list[bytes] = field(default_factory=list)
    append_id: str = ""
    snapshot: tuple[int, bytes] | None = None


@dataclass
class Todo:
    """Work of the model, known by its body: ids are the store's own business."""

    log: str
    due: float
    name: str
    node: str = ""
    epoch: int = 0
    attempts: int = 0
    moved: float | None = None


class Model:
    """A store as a page of dicts."""

    def __init__(self, active_max: int) -> None:
        self.active_max = active_max
        self.logs: dict[str, Written] = {}
        self.work: dict[bytes, Todo] = {}
        self.records: dict[tuple[str, str], Record] = {}
        # What bodies the store's ids stand for, as far as anybody was told.
        self.bodies: dict[int, bytes] = {}

    def commit(self, batch: Batch) -> type[Refusal] | None:
        refusal = self._judge(batch)
        if refusal == "again":
            return None
        if refusal is None:
            self._apply(batch)
        return refusal  # type: ignore[return-value]

    def _judge(self, batch: Batch) -> Any:
        for append in batch.appends:
            log = self.logs.get(append.log)
            if log is not None and log.append_id == append.id:
                return "again"
        for append in batch.appends:
            log = self.logs.get(append.log)
            if len(log.events) != append.after if log else append.after or append.label is None:
                return Conflict
        if batch.claim is not None:
            held = self.work.get(self.bodies[batch.claim.work])
            if held is None or not held.node or held.epoch != batch.claim.epoch:
                return Fenced
        if any(record.is_new and (record.kind, record.key) in self.records for record in batch.records):
            return Present
        begun = sum(append.log not in self.logs for append in batch.appends)
        active = sum(log.head.state not in TERMINAL for log in self.logs.values())
        return StoreFull if begun and active + begun > self.active_max else None

    def _apply(self, batch: Batch) -> None:
        for append in batch.appends:
            if append.label is not None and append.log not in self.logs:
                self.logs[append.log] = Written(append.label, Head())
            log = self.logs[append.log]
            log.events += append.events
            log.head = append.head or log.head
            log.append_id = append.id
            if append.snapshot is not None:
                log.snapshot = (len(log.events), append.snapshot)
        if batch.claim is not None:
            self.work[self.bodies[batch.claim.work]].attempts = 1
        for record in batch.records:
            self.records[record.kind, record.key] = record
        for work in batch.ends:
            self._end(self.bodies[work])
        for name in batch.drops:
            self.work = {body: todo for body, todo in self.work.items() if todo.name != name}
        for log in batch.closes:
            self.delete(log)
        for put in batch.work:
            self._put(put)

    def _end(self, body: bytes) -> None:
        todo = self.work.get(body)
        if todo is not None and todo.moved is not None:
            todo.node, todo.due, todo.moved = "", todo.moved, None
        else:
            self.work.pop(body, None)

    def _put(self, put: NewWork) -> None:
        for todo in self.work.values():
            if put.name and todo.name == put.name:
                if todo.node:
                    todo.moved = put.due
                else:
                    todo.due = put.due
                return
        self.work[put.body] = Todo(put.log, put.due, put.name)

    def delete(self, log: str) -> None:
        if self.logs.pop(log, None) is not None:
            self.records = {key: record for key, record in self.records.items() if record.log != log}

    def free(self, todo: Todo, due: float) -> None:
        todo.node = ""
        todo.due = due if todo.moved is None else min(due, todo.moved)
        todo.moved = None

    def reopen(self) -> None:
        for todo in self.work.values():
            if todo.node:
                todo.node, todo.due, todo.moved = "", 0.0, None

    def found(self, query: Query) -> set[str]:
        return {
            name
            for name, log in self.logs.items()
            if query.owner in (None, log.label.owner)
            and query.tenant in (None, log.label.tenant)
            and query.context in ("", log.label.context)
            and query.state in (None, log.head.state)
            and not log.head.hidden
        }


SHORT = ["t1", "t2", "t3", "t4"]
NAMES = st.sampled_from(SHORT)
KEYS = st.sampled_from(["k1", "k2"])
TIMERS = st.sampled_from(["", "", "n1", "n2"])
OWNERS = st.sampled_from(["ann", "bob"])
DUES = st.sampled_from([0.0, 10.0, 20.0])
STATES = st.sampled_from([State.SUBMITTED, State.WORKING, State.COMPLETED, State.INPUT_REQUIRED])


@dataclass
class Draft:
    """A batch before positions and ids are known."""

    logs: list[str]
    wrong: int
    count: int
    state: State
    moves: bool
    hidden: bool
    folds: bool
    owner: str
    work: list[tuple[float, str]]
    key: str
    is_new: bool
    pick: int | None
    is_late: bool
    ends: bool
    drops: list[str]
    closes: list[str]


def rarely(strategy: st.SearchStrategy[Any], otherwise: Any) -> st.SearchStrategy[Any]:
    return st.integers(0, 5).flatmap(lambda n: strategy if n == 5 else st.just(otherwise))


DRAFTS = st.builds(
    Draft,
    logs=st.lists(NAMES, min_size=1, max_size=2, unique=True),
    wrong=rarely(st.sampled_from([-1, 1, 2]), 0),
    count=st.integers(1, 3),
    state=STATES,
    moves=st.booleans(),
    hidden=rarely(st.just(True), False),
    folds=st.booleans(),
    owner=OWNERS,
    work=st.lists(st.tuples(DUES, TIMERS), max_size=2),
    key=rarely(KEYS, ""),
    is_new=st.booleans(),
    pick=st.none() | st.integers(0, 5),
    is_late=rarely(st.just(True), False),
    ends=st.booleans(),
    drops=rarely(st.lists(TIMERS.filter(bool), min_size=1, max_size=2, unique=True), []),
    closes=rarely(st.lists(NAMES, min_size=1, max_size=2, unique=True), []),
)


class Agrees(RuleBasedStateMachine):
    """Whatever is done, the store and the model say the same."""

    active_max = ACTIVE_MAX
    # Whether append ids are forgotten when a log is over: then no answer can be lost there either.
    forgets = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model = Model(self.active_max)
        self.place = Path(tempfile.mkdtemp())
        self.count = 0
        self.now = 1.0
        # A swept task's name is not used again.
        self.swept: dict[str, int] = {}
        self.last: Batch | None = None
        self.store = self.do(self.open())

    async def open(self) -> Any:
        raise NotImplementedError

    def do(self, waiting: Any) -> Any:
        return self.loop.run_until_complete(waiting)

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        shutil.rmtree(self.place)

    def fresh(self) -> int:
        self.count += 1
        return self.count

    @rule(drafts=st.lists(DRAFTS, min_size=1, max_size=5), again=st.booleans())
    def submit(self, drafts: list[Draft], again: bool) -> None:
        """Several batches at once; perhaps with the last one before, as if its answer had been lost."""
        planned = {name: len(log.events) for name, log in self.model.logs.items()}
        batches = [self.batch(draft, planned) for draft in drafts]
        if again and self.last is not None:
            batches.insert(0, self.last)
        given = self.do(together(self.store, *batches))
        expected = [self.model.commit(batch) for batch in batches]
        assert [type(one) if one else None for one in given] == expected
        over = [log.head.state in TERMINAL for log in self.model.logs.values()]
        self.last = batches[-1] if expected[-1] is None and not (self.forgets and any(over)) else None

    def batch(self, draft: Draft, planned: dict[str, int]) -> Batch:
        appends = []
        logs = [self.name(log) for log in draft.logs]
        for log in logs:
            number = self.fresh()
            after = planned.get(log, 0) + draft.wrong
            planned[log] = after + draft.count
            appends.append(
                Append(
                    log,
                    after,
                    f"a{number}",
                    tuple(f"{number}.{n}".encode() for n in range(draft.count)),
                    Head(draft.state, float(number), draft.hidden) if draft.moves or not after else None,
                    Label("task", draft.owner, "", "echo", f"c-{draft.owner}"),
                    f"s{number}".encode() if draft.folds else None,
                )
            )
        work = [
            NewWork("turn", "echo", logs[0], due, f"w{self.fresh()}".encode(), name)
            for due, name in draft.work
        ]
        records = [Record("key", draft.key, logs[0].encode(), logs[0], draft.is_new)] if draft.key else []
        claim = self.right(draft) if draft.pick is not None else None
        ends = (claim.work,) if claim and draft.ends else ()
        closes = [self.name(log) for log in draft.closes if log not in draft.logs]
        for log in closes:
            planned[log] = 0
        return Batch(appends, work, records, claim, ends, draft.drops, closes)

    @rule(lease=st.integers(1, 3), node=st.sampled_from(["n1", "n2"]))
    def claim(self, lease: int, node: str) -> None:
        taken = self.do(self.store.claim("turn", ["echo"], node, self.now, lease))
        due = sorted(todo.due for todo in self.model.work.values() if not todo.node and todo.due <= self.now)
        assert len(taken) == min(lease, len(due))
        for work in taken:
            todo = self.model.work[work.body]
            assert not todo.node
            assert todo.due <= due[len(taken) - 1]
            self.model.bodies[work.id] = work.body
            todo.node = node
            todo.epoch += 1
            todo.attempts += 1
            assert (work.log, work.epoch, work.attempts) == (todo.log, todo.epoch, todo.attempts)

    @rule(pick=st.integers(0, 5), due=DUES)
    def release(self, pick: int, due: float) -> None:
        held = [work for work, body in self.model.bodies.items() if body in self.model.work]
        if held:
            work = held[pick % len(held)]
            todo = self.model.work[self.model.bodies[work]]
            self.do(self.store.release(work, todo.epoch, due))
            if todo.node:
                self.model.free(todo, due)

    @rule(node=st.sampled_from(["n1", "n2"]), seconds=st.sampled_from([1.0, 5.0, 20.0]))
    def beat(self, node: str, seconds: float) -> None:
        """One node beats and the other was silent for longer than its lease."""
        self.now += seconds
        lost = [todo for todo in self.model.work.values() if todo.node not in ("", node)]
        assert self.do(self.store.beat(node, self.now + 0.5, self.now)) == len(lost)
        for todo in lost:
            todo.node, todo.due, todo.moved = "", 0.0, None

    @rule(age=st.integers(0, 30))
    def sweep(self, age: int) -> None:
        before = self.count - age
        busy = {todo.log for todo in self.model.work.values()}
        old = [
            name
            for name, log in self.model.logs.items()
            if log.head.state in TERMINAL and log.head.at < before and name not in busy
        ]
        assert self.do(self.store.sweep(float(before), 100)) == len(old)
        for name in old:
            self.model.delete(name)
            short = name.partition("-")[0]
            self.swept[short] = self.swept.get(short, 0) + 1

    def name(self, short: str) -> str:
        return f"{short}-{self.swept.get(short, 0)}"

    def right(self, draft: Draft) -> Claim | None:
        """A claim that holds, or one that held once."""
        bodies = self.model.bodies
        held = [
            work for work, body in bodies.items() if body in self.model.work and self.model.work[body].node
        ]
        among = list(bodies) if draft.is_late or not held else held
        if not among or draft.pick is None:
            return None
        work = among[draft.pick % len(among)]
        todo = self.model.work.get(bodies[work])
        return Claim(work, max(1, todo.epoch - draft.is_late) if todo else 1)

    @invariant()
    def agree(self) -> None:
        for name in [*self.model.logs, *map(self.name, SHORT)]:
            row, log = self.store.row(name), self.model.logs.get(name)
            assert (row is None) == (log is None)
            assert list(self.store.read(name, 0)) == (log.events if log else [])
            if row is not None and log is not None:
                assert (row.label, row.head, row.seq) == (log.label, log.head, len(log.events))
                fold = self.store.snapshot(name)
                assert fold == log.snapshot or (fold is None and log.head.state in TERMINAL)
        for key in ("k1", "k2"):
            record = self.model.records.get(("key", key))
            assert self.store.record("key", key) == (record.body if record else None)
        for query in (EVERYONE, Query("ann", ""), Query(None, None, state=State.WORKING, context="c-bob")):
            found = self.do(self.store.find(query))
            assert {row.log for row in found.rows} == self.model.found(query)
            assert found.total == len(found.rows)
            ages = [row.head.at for row in found.rows]
            assert ages == sorted(ages, reverse=True)
        fed = {one.log: one.seq for one in self.store.feed(0, 100_000)}
        assert all(fed[name] == len(log.events) for name, log in self.model.logs.items())


class MemoryAgrees(Agrees):
    active_max = 1000
    forgets = True

    async def open(self) -> Any:
        return MemoryStore()


class SqliteAgrees(Agrees):
    async def open(self) -> Any:
        return await SqliteStore.open(self.place / "store.db", clock=HandClock(), active_tasks_max=ACTIVE_MAX)

    @rule()
    def reopen(self) -> None:
        self.do(self.store.close())
        self.store = self.do(self.open())
        self.model.reopen()


_OFTEN = settings(
    max_examples=100, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)

TestMemoryAgrees = MemoryAgrees.TestCase
TestSqliteAgrees = SqliteAgrees.TestCase
TestMemoryAgrees.settings = _OFTEN
TestSqliteAgrees.settings = _OFTEN
