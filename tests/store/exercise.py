"""What every store promises, as tests: one class to inherit, one fixture `opened` that opens a store.

`opened(**limits)` is an async context manager. Opening again within one test gives the same file on
stores that have one; what must survive that is tested beside the store.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.errors import AgentError
from dragoman.model.task import State
from dragoman.store.store import (
    Append,
    Batch,
    Claim,
    Conflict,
    Fed,
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
    Work,
)

Opened = Callable[..., AbstractAsyncContextManager[Store]]

EVERYONE = Query(None, None)
WORKING = Head(State.WORKING, 2.0)
COMPLETED = Head(State.COMPLETED, 3.0)


class HandClock:
    """Time as the test says."""

    def __init__(self, time: float = 1000.0) -> None:
        self.time = time
        self._ids = itertools.count(1)

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        return f"id-{next(self._ids)}"


class Worker:
    """A claimant that remembers what it was given."""

    def __init__(self, node: str = "n1", **free: int) -> None:
        self.node = node
        self.free = free
        self.given: list[Work] = []
        self.hints = 0

    def take(self, work: Work) -> None:
        self.given.append(work)

    def hint(self) -> None:
        self.hints += 1


def label(owner: str = "ann", tenant: str = "", agent: str = "echo", context: str = "c1") -> Label:
    return Label("task", owner, tenant, agent, context)


def opening(log: str, at: float = 1.0, about: Label | None = None, state: State = State.SUBMITTED) -> Append:
    """The append that begins a task."""
    return Append(log, 0, f"{log}-1", (b"1",), Head(state, at), about or label())


def growing(log: str, after: int, count: int = 1, head: Head | None = None, **rest: Any) -> Append:
    """An append whose events are their own positions."""
    events = tuple(str(after + 1 + n).encode() for n in range(count))
    return Append(log, after, f"{log}-{after + 1}", events, head, **rest)


async def begin(store: Store, *logs: str) -> None:
    for log in logs:
        await store.commit(Batch((opening(log),)))


async def put(store: Store, *work: NewWork) -> None:
    await store.commit(Batch(work=work))


async def claimed(store: Store, now: float = 1000.0, node: str = "n1", limit: int = 10) -> Sequence[Work]:
    return await store.claim("turn", ["echo"], node, now, limit)


async def refused(store: Store, batch: Batch, kind: type[Refusal]) -> Refusal:
    with pytest.raises(kind) as caught:
        await store.commit(batch)
    return caught.value


async def together(store: Store, *batches: Batch) -> list[Refusal | None]:
    """Submit all before any is committed; what each was answered, and that it was in order."""
    answers: list[tuple[int, Refusal | None]] = []
    ended = asyncio.Event()

    def answer(number: int, refusal: Refusal | None) -> None:
        answers.append((number, refusal))
        if len(answers) == len(batches):
            ended.set()

    for number, batch in enumerate(batches):
        store.submit(batch, lambda refusal, number=number: answer(number, refusal))  # type: ignore[misc]
    await ended.wait()
    assert [number for number, _ in answers] == list(range(len(batches)))
    return [refusal for _, refusal in answers]


def turn(log: str, **rest: Any) -> NewWork:
    return NewWork("turn", "echo", log, **rest)


async def names(store: Store, query: Query = EVERYONE) -> list[str]:
    return [row.log for row in (await store.find(query)).rows]


class Laws:
    """The eight laws, in order."""

    # 1. Positions.

    async def test_events_of_a_log_are_numbered_from_one_without_gaps(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1, 3),)))
            await store.commit(Batch((growing("t1", 4, 1),)))
            assert list(store.read("t1", 0)) == [b"1", b"2", b"3", b"4", b"5"]
            row = store.row("t1")
            assert row is not None
            assert row.seq == 5

    async def test_a_read_gives_the_events_after_a_position_up_to_a_limit(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1, 3),)))
            await store.commit(Batch((growing("t1", 4, 2),)))
            every = [b"1", b"2", b"3", b"4", b"5", b"6"]
            for after in range(8):
                for limit in range(1, 8):
                    assert list(store.read("t1", after, limit)) == every[after : after + limit]

    async def test_an_append_at_a_wrong_position_is_refused_and_changes_nothing(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1),)))
            before = store.row("t1")
            for after in (0, 1, 3):
                batch = Batch((Append("t1", after, "x", (b"x",), COMPLETED, label()),), (turn("t1"),))
                refusal = await refused(store, batch, Conflict)
                assert isinstance(refusal, Conflict)
                assert (refusal.log, refusal.seq) == ("t1", 2)
            assert store.row("t1") == before
            assert list(store.read("t1", 0)) == [b"1", b"2"]
            assert await claimed(store) == []

    async def test_a_log_that_is_not_there_takes_only_its_first_append(self, opened: Opened):
        async with opened() as store:
            await refused(store, Batch((growing("t1", 3, label=label()),)), Conflict)
            await refused(store, Batch((growing("t1", 0),)), Conflict)
            assert store.row("t1") is None
            assert list(store.read("t1", 0)) == []
            assert store.snapshot("t1") is None

    async def test_of_many_appends_at_one_position_one_wins(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            batches = [Batch((Append("t1", 1, f"w{n}", (str(n).encode(),)),)) for n in range(10)]
            answers = await together(store, *batches)
            assert [type(answer) for answer in answers] == [type(None)] + [Conflict] * 9
            assert list(store.read("t1", 1)) == [b"0"]

    # 2. Batches.

    async def test_a_batch_over_two_logs_happens_in_both_or_in_neither(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1", "t2")
            await refused(store, Batch((growing("t1", 1), growing("t2", 7))), Conflict)
            await refused(store, Batch((growing("t1", 7), growing("t2", 1))), Conflict)
            assert [len(store.read(log, 0)) for log in ("t1", "t2")] == [1, 1]
            await store.commit(Batch((growing("t1", 1), growing("t2", 1))))
            assert [len(store.read(log, 0)) for log in ("t1", "t2")] == [2, 2]

    async def test_a_refused_batch_leaves_neither_work_nor_records(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            batch = Batch((growing("t1", 5),), (turn("t1"),), (Record("key", "k", b"v"),))
            await refused(store, batch, Conflict)
            assert store.record("key", "k") is None
            assert await claimed(store) == []
            assert store.next_due() is None

    async def test_a_refused_batch_harms_no_other_that_came_with_it(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1", "t2", "t3")
            answers = await together(
                store,
                Batch((growing("t1", 1),)),
                Batch((growing("t2", 8),)),
                Batch((growing("t3", 1),)),
                Batch((growing("t1", 2),)),
                Batch((growing("t3", 2),), claim=Claim(99, 1)),
                Batch((growing("t3", 2, 2),)),
            )
            assert [type(answer) for answer in answers] == [
                type(None),
                Conflict,
                type(None),
                type(None),
                Fenced,
                type(None),
            ]
            assert [len(store.read(log, 0)) for log in ("t1", "t2", "t3")] == [3, 1, 4]

    async def test_a_log_can_be_begun_and_grown_by_batches_submitted_at_once(self, opened: Opened):
        async with opened() as store:
            answers = await together(
                store,
                Batch((opening("t1"),)),
                Batch((growing("t1", 1, head=WORKING),)),
                Batch((growing("t1", 2, head=COMPLETED, snapshot=b"all"),)),
            )
            assert answers == [None, None, None]
            row = store.row("t1")
            assert row is not None
            assert (row.seq, row.head, row.label) == (3, COMPLETED, label())
            assert store.snapshot("t1") == (3, b"all")

    # 3. Append ids.

    async def test_the_same_append_again_is_answered_as_before(self, opened: Opened):
        async with opened() as store:
            batch = Batch((opening("t1"),), (turn("t1"),), (Record("key", "k", b"t1", "t1", is_new=True),))
            await store.commit(batch)
            await store.commit(batch)
            assert list(store.read("t1", 0)) == [b"1"]
            [work] = await claimed(store)
            batch = Batch((growing("t1", 1, 2),), claim=work.claim, ends=(work.id,))
            await store.commit(batch)
            await store.commit(batch)
            assert len(store.read("t1", 0)) == 3
            assert await claimed(store) == []

    async def test_the_same_append_again_is_recognised_while_the_first_is_under_way(self, opened: Opened):
        async with opened() as store:
            batch = Batch((opening("t1"),), (turn("t1"),))
            assert await together(store, batch, batch) == [None, None]
            assert list(store.read("t1", 0)) == [b"1"]
            assert len(await claimed(store)) == 1

    async def test_another_append_at_the_same_position_conflicts(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await refused(store, Batch((replace(opening("t1"), id="other"),)), Conflict)

    # 4. Claims.

    async def test_a_late_append_of_an_owner_who_lost_the_work_is_refused(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            [first] = await claimed(store, node="n1")
            await store.beat("n2", 2000.0, 1500.0)
            [second] = await claimed(store, node="n2")
            assert second.epoch > first.epoch
            late = Batch((growing("t1", 1),), (turn("t9"),), (Record("a", "b", b"c"),), claim=first.claim)
            await refused(store, late, Fenced)
            assert len(store.read("t1", 0)) == 1
            assert store.record("a", "b") is None
            await store.commit(Batch((growing("t1", 1),), claim=second.claim))
            assert len(store.read("t1", 0)) == 2

    async def test_an_append_under_work_that_was_ended_is_refused(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            [work] = await claimed(store)
            canceled = Head(State.CANCELED, 5.0)
            await store.commit(Batch((growing("t1", 1, head=canceled),), ends=(work.id,)))
            await refused(store, Batch((growing("t1", 2),), claim=work.claim), Fenced)
            assert await claimed(store) == []

    async def test_an_append_under_work_that_was_given_back_is_refused(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            [work] = await claimed(store)
            await store.release(work.id, work.epoch, 0.0)
            await refused(store, Batch((growing("t1", 1),), claim=work.claim), Fenced)

    async def test_work_that_nobody_took_lends_no_right_to_append(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            await refused(store, Batch((growing("t1", 1),), claim=Claim(1, 0)), Fenced)

    async def test_a_caller_needs_no_claim(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            [work] = await claimed(store)
            await store.commit(Batch((growing("t1", 1),)))
            late = Append("t1", 1, "late", (b"x",))
            await refused(store, Batch((late,), claim=work.claim), Conflict)
            await store.commit(Batch((growing("t1", 2),), claim=work.claim))

    async def test_attempts_count_takings_without_an_append_between(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await put(store, turn("t1"))
            for attempts in (1, 2, 3):
                [work] = await claimed(store)
                assert (work.attempts, work.epoch) == (attempts, attempts)
                if attempts < 3:
                    await store.release(work.id, work.epoch, 0.0)
            await store.commit(Batch((growing("t1", 1),), claim=work.claim))
            await store.release(work.id, work.epoch, 0.0)
            [work] = await claimed(store)
            assert (work.attempts, work.epoch) == (2, 4)

    # 5. Heads and snapshots.

    async def test_the_head_moves_with_every_append_and_stays_when_none_is_given(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1, head=WORKING),)))
            await store.commit(Batch((growing("t1", 2),)))
            row = store.row("t1")
            assert row is not None
            assert (row.log, row.label, row.head, row.seq) == ("t1", label(), WORKING, 3)

    async def test_a_snapshot_and_the_events_after_it_are_the_whole_log(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            assert store.snapshot("t1") is None
            await store.commit(Batch((growing("t1", 1, 2, snapshot=b"1,2,3"),)))
            await store.commit(Batch((growing("t1", 3),)))
            found = store.snapshot("t1")
            assert found == (3, b"1,2,3")
            assert list(store.read("t1", found[0])) == [b"4"]
            await store.commit(Batch((growing("t1", 4, snapshot=b"1,2,3,4,5"),)))
            assert store.snapshot("t1") == (5, b"1,2,3,4,5")
            assert store.snapshot("t1", 9) == (5, b"1,2,3,4,5")
            # An older fold may be gone, but what is given is never past the position.
            assert store.snapshot("t1", 4) in (None, (3, b"1,2,3"))
            assert store.snapshot("t1", 2) is None

    # 6. Work.

    async def test_work_is_there_when_its_batch_is(self, opened: Opened):
        async with opened() as store:
            await store.commit(Batch((opening("t1"),), (turn("t1", body=b"b"),)))
            [work] = await claimed(store)
            assert (work.kind, work.topic, work.log, work.body) == ("turn", "echo", "t1", b"b")

    async def test_a_claim_is_exclusive_until_it_ends(self, opened: Opened):
        async with opened() as store:
            await put(store, *[turn(f"t{n}") for n in range(20)])
            takings = await asyncio.gather(*[claimed(store, node=f"n{n}", limit=3) for n in range(10)])
            taken = [work.id for works in takings for work in works]
            assert len(taken) == len(set(taken)) == 20
            assert all(len(works) <= 3 for works in takings)
            assert await claimed(store) == []

    async def test_only_work_that_is_due_and_of_that_kind_and_topic_is_claimed(self, opened: Opened):
        async with opened() as store:
            await put(
                store,
                turn("later", due=50.0),
                turn("soon", due=10.0),
                NewWork("turn", "other", "topic"),
                NewWork("stop", "echo", "kind"),
            )
            assert [work.log for work in await claimed(store, now=9.0)] == []
            assert [work.log for work in await claimed(store, now=10.0)] == ["soon"]
            assert [work.log for work in await claimed(store, now=60.0)] == ["later"]
            both = await store.claim("turn", ["echo", "other"], "n1", 60.0, 10)
            assert [work.log for work in both] == ["topic"]
            assert [work.log for work in await store.claim("stop", ["echo"], "n1", 60.0, 10)] == ["kind"]
            assert await store.claim("turn", [], "n1", 60.0, 10) == []

    async def test_the_next_due_time_is_never_later_than_the_truth(self, opened: Opened):
        async with opened() as store:
            assert store.next_due() is None
            await put(store, turn("t1", due=50.0), turn("t2", due=20.0))
            assert store.next_due() == 20.0
            await claimed(store, now=20.0)
            due = store.next_due()
            assert due is not None
            assert due <= 50.0

    async def test_work_given_back_is_due_when_it_was_said(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1"))
            [work] = await claimed(store)
            await store.release(work.id, work.epoch + 1, 0.0)
            assert await claimed(store) == []
            await store.release(work.id, work.epoch, 70.0)
            assert await claimed(store, now=69.0) == []
            assert [work.log for work in await claimed(store, now=70.0)] == ["t1"]

    async def test_work_of_a_name_that_exists_moves_instead_of_doubling(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1", due=50.0, name="timer"))
            await put(store, turn("t1", due=20.0, name="timer"))
            assert store.next_due() == 20.0
            await put(store, turn("t1", due=90.0, name="timer"))
            assert await claimed(store, now=60.0) == []
            assert len(await claimed(store, now=90.0)) == 1
            await store.commit(Batch(drops=("timer", "no-such")))
            assert await claimed(store, now=99.0) == []
            await put(store, turn("t1", name="timer"))
            assert len(await claimed(store)) == 1

    async def test_a_name_can_be_dropped_and_put_in_one_batch(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1", due=50.0, name="timer", body=b"old"))
            await store.commit(Batch(work=(turn("t1", name="timer", body=b"new"),), drops=("timer",)))
            [work] = await claimed(store)
            assert work.body == b"new"
            await store.commit(Batch(work=(turn("t1", name="timer", body=b"next"),), ends=(work.id,)))
            [work] = await claimed(store)
            assert (work.body, work.attempts) == (b"next", 1)

    async def test_work_put_again_by_its_name_while_it_is_held_is_not_lost(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1", name="delivery"))
            [work] = await claimed(store)
            await put(store, turn("t1", due=30.0, name="delivery"))
            assert await claimed(store) == []
            await store.commit(Batch(claim=work.claim, ends=(work.id,)))
            [again] = await claimed(store, now=30.0)
            await store.commit(Batch(claim=again.claim, ends=(again.id,)))
            assert await claimed(store) == []

    async def test_work_put_again_in_the_moment_it_is_taken_is_not_lost(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1", name="delivery"))
            taking = asyncio.create_task(claimed(store))
            await asyncio.sleep(0)
            await put(store, turn("t1", due=30.0, name="delivery"))
            [work] = await taking
            await store.commit(Batch(claim=work.claim, ends=(work.id,)))
            assert len(await claimed(store, now=30.0)) == 1

    async def test_work_put_again_while_it_is_held_is_due_at_the_earlier_time(self, opened: Opened):
        async with opened() as store:
            await put(store, turn("t1", name="delivery"))
            [work] = await claimed(store)
            await put(store, turn("t1", due=30.0, name="delivery"))
            await store.release(work.id, work.epoch, 500.0)
            assert len(await claimed(store, now=30.0)) == 1

    async def test_a_claimant_with_room_is_given_work_as_it_is_put(self, opened: Opened):
        async with opened() as store:
            worker = Worker(echo=1)
            store.offer(worker)
            memo = object()
            await store.commit(Batch((opening("t1"),), (turn("t1", body=b"b", memo=memo),)))
            [work] = worker.given
            assert (work.log, work.body, work.attempts, work.memo is memo) == ("t1", b"b", 1, True)
            assert worker.free == {"echo": 0}
            await store.commit(Batch((opening("t2"),), (turn("t2"),)))
            assert len(worker.given) == 1
            assert worker.hints > 0
            await store.commit(Batch((growing("t1", 1),), claim=work.claim, ends=(work.id,)))
            await refused(store, Batch((growing("t1", 2),), claim=work.claim), Fenced)
            assert [other.log for other in await claimed(store)] == ["t2"]

    async def test_named_work_is_given_as_it_is_put_unless_that_name_is_there(self, opened: Opened):
        async with opened() as store:
            worker = Worker(echo=5)
            store.offer(worker)
            await store.commit(Batch((opening("t1"),), (turn("t1", name="t1"),)))
            [work] = worker.given
            await put(store, turn("t1", name="t1"))
            assert len(worker.given) == 1
            await store.commit(Batch(drops=("t1",)))
            await refused(store, Batch((growing("t1", 1),), claim=work.claim), Fenced)
            await put(store, turn("t1", name="t1"))
            assert [one.epoch for one in worker.given] == [1, 1]
            assert await claimed(store) == []

    async def test_a_claimant_is_given_neither_later_work_nor_that_of_a_refused_batch(self, opened: Opened):
        async with opened() as store:
            worker = Worker(echo=5)
            store.offer(worker)
            await put(store, turn("later", due=5000.0), NewWork("turn", "other", "topic"))
            await refused(store, Batch((growing("t1", 5),), (turn("t1"),)), Conflict)
            assert worker.given == []
            assert worker.free == {"echo": 5}

    async def test_a_claimant_is_never_given_more_than_it_has_room_for(self, opened: Opened):
        async with opened() as store:
            worker = Worker(echo=3)
            store.offer(worker)
            await together(store, *[Batch((opening(f"t{n}"),), (turn(f"t{n}"),)) for n in range(8)])
            assert len(worker.given) == 3
            assert len(await claimed(store)) == 5

    async def test_leases_of_a_silent_node_end_and_those_of_a_living_one_do_not(self, opened: Opened):
        async with opened() as store:
            await store.beat("n1", 100.0, 50.0)
            await store.beat("n2", 100.0, 50.0)
            await put(store, turn("t1"), turn("t2"))
            [one] = await claimed(store, node="n1", limit=1)
            [two] = await claimed(store, node="n2", limit=1)
            assert await store.beat("n1", 150.0, 90.0) == 0
            assert await store.beat("n1", 200.0, 120.0) == 1
            [again] = await claimed(store, node="n1")
            assert (again.id, again.epoch, again.attempts) == (two.id, 2, 2)
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1),), claim=one.claim))
            await refused(store, Batch((growing("t1", 2),), claim=two.claim), Fenced)

    async def test_a_lease_that_ended_tells_claimants(self, opened: Opened):
        async with opened() as store:
            worker = Worker()
            store.offer(worker)
            await put(store, turn("t1"))
            assert worker.hints == 1
            [work] = await claimed(store)
            await store.release(work.id, work.epoch, 0.0)
            assert worker.hints == 2

    # Records.

    async def test_a_record_is_replaced_unless_it_should_be_free(self, opened: Opened):
        async with opened() as store:
            await store.commit(Batch(records=(Record("card", "a", b"1"), Record("card", "b", b"2"))))
            await store.commit(Batch(records=(Record("card", "a", b"3"),)))
            assert store.record("card", "a") == b"3"
            assert store.record("card", "b") == b"2"
            assert store.record("other", "a") is None

    async def test_a_key_is_taken_once_however_many_ask_at_once(self, opened: Opened):
        async with opened() as store:

            def send(number: int) -> Batch:
                log = f"t{number}"
                record = Record("key", "k", log.encode(), log, is_new=True)
                return Batch((opening(log),), (turn(log),), (record,))

            answers = [*await together(store, *[send(n) for n in range(5)]), *await together(store, send(5))]
            assert answers[0] is None
            for answer in answers[1:]:
                assert isinstance(answer, Present)
                assert (answer.record.body, answer.record.log) == (b"t0", "t0")
            assert [store.row(f"t{n}") is None for n in range(6)] == [False] + [True] * 5
            assert len(await claimed(store)) == 1

    async def test_a_key_is_free_as_soon_as_the_log_it_belongs_to_is_closed(self, opened: Opened):
        async with opened() as store:

            def send(log: str, key: str) -> Batch:
                return Batch((opening(log),), records=(Record("key", key, log.encode(), log, is_new=True),))

            await store.commit(send("t1", "a"))
            answers = await together(
                store,
                Batch(closes=("t1",)),
                send("t2", "a"),
                send("t3", "b"),
                Batch(closes=("t3",)),
                send("t4", "b"),
                Batch(closes=("t4",)),
                send("t4", "b"),
            )
            assert answers == [None] * 7
            assert (store.record("key", "a"), store.record("key", "b")) == (b"t2", b"t4")
            assert list(store.read("t4", 0)) == [b"1"]

    # 7. The feed.

    async def test_the_feed_gives_every_append_in_one_order(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1", "t2")
            await store.commit(Batch((growing("t1", 1, 3), growing("t2", 1))))
            await together(store, Batch((growing("t2", 2),)), Batch((growing("t1", 4),)))
            fed = list(store.feed(0))
            assert [(one.log, one.seq) for one in fed] == [
                ("t1", 1),
                ("t2", 1),
                ("t1", 4),
                ("t2", 2),
                ("t2", 3),
                ("t1", 5),
            ]
            positions = [one.position for one in fed]
            assert positions == sorted(set(positions))
            paged: list[Fed] = []
            while page := store.feed(paged[-1].position if paged else 0, 2):
                assert len(page) <= 2
                paged += page
            assert paged == fed

    async def test_the_feed_never_uses_a_position_twice(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1, head=COMPLETED),)))
            last = store.feed(0)[-1].position
            assert await store.sweep(99.0, 10) == 1
            await begin(store, "t2")
            [fed] = store.feed(last)
            assert (fed.log, fed.seq) == ("t2", 1)
            assert fed.position > last

    # 8. Waiting and finding.

    async def test_a_waiter_wakes_when_its_log_is_past_the_position(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1", "t2")
            waiting = asyncio.create_task(store.wait("t1", 1))
            other = asyncio.create_task(store.wait("t2", 1))
            await asyncio.sleep(0)
            await store.commit(Batch((growing("t1", 1),)))
            await asyncio.wait_for(waiting, 5)
            assert len(store.read("t1", 1)) == 1
            assert not other.done()
            other.cancel()

    async def test_a_waiter_does_not_wait_for_what_is_there_or_gone(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await asyncio.wait_for(store.wait("t1", 0), 5)
            await asyncio.wait_for(store.wait("no-such", 0), 5)
            waiting = asyncio.create_task(store.wait("t1", 1))
            await asyncio.sleep(0)
            await store.commit(Batch(closes=("t1",)))
            await asyncio.wait_for(waiting, 5)
            assert store.row("t1") is None

    async def test_all_waiters_of_a_log_wake_and_one_may_leave_before(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            waiting = [asyncio.create_task(store.wait("t1", 1)) for _ in range(5)]
            await asyncio.sleep(0)
            waiting[2].cancel()
            await asyncio.sleep(0)
            await store.commit(Batch((growing("t1", 1),)))
            await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)

    async def test_tasks_are_found_newest_status_first(self, opened: Opened):
        async with opened() as store:
            for n, log in enumerate(("t1", "t2", "t3")):
                await store.commit(Batch((opening(log, at=float(n)),)))
            assert await names(store) == ["t3", "t2", "t1"]
            await store.commit(Batch((growing("t2", 1, head=Head(State.WORKING, 9.0)),)))
            assert await names(store) == ["t2", "t3", "t1"]
            found = await store.find(EVERYONE)
            assert (found.rows[0], found.total, found.token) == (store.row("t2"), 3, "")

    async def test_pages_are_stable_while_tasks_are_added(self, opened: Opened):
        async with opened() as store:
            for n in range(7):
                # Several have the same status time.
                await store.commit(Batch((opening(f"t{n}", at=float(n // 3)),)))
            seen: list[str] = []
            token = ""
            for page in range(4):
                found = await store.find(replace(EVERYONE, size=2, token=token))
                assert found.total == 7 + page
                seen += [row.log for row in found.rows]
                token = found.token
                assert bool(token) == (page < 3)
                await store.commit(Batch((opening(f"late{page}", at=50.0),)))
            assert seen == ["t6", "t5", "t4", "t3", "t2", "t1", "t0"]

    async def test_a_page_token_that_was_not_given_is_an_error(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1", "t2")
            for token in ("garbage", "ÿ", "AAAA", "-1", "1e3"):
                with pytest.raises(AgentError) as caught:
                    await store.find(replace(EVERYONE, token=token))
                assert (caught.value.name, caught.value.at) == ("InvalidParams", "pageToken")

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (Query("ann", ""), ["a4", "a3", "a2", "a1"]),
            (Query("bob", ""), ["b1"]),
            (Query("ann", "acme"), ["x1"]),
            (Query("eve", ""), []),
            (Query(None, ""), ["b1", "a4", "a3", "a2", "a1"]),
            (Query("ann", None), ["x1", "a4", "a3", "a2", "a1"]),
            (Query(None, None), ["x1", "b1", "a4", "a3", "a2", "a1"]),
            (Query("ann", "", agent="echo"), ["a3", "a2", "a1"]),
            (Query("ann", "", agent="other"), ["a4"]),
            (Query("ann", "", context="c2"), ["a3", "a2"]),
            (Query("bob", "", context="c2"), ["b1"]),
            (Query("ann", "", agent="echo", context="c2", state=State.WORKING), ["a3"]),
            (Query("ann", "", state=State.WORKING), ["a3"]),
            (Query("ann", "", state=State.SUBMITTED), ["a4", "a2", "a1"]),
            (Query("ann", "", state=State.COMPLETED), []),
            (Query("ann", "", since=3.0), ["a4", "a3"]),
            (Query("ann", "", since=3.5, context="c2"), []),
        ],
    )
    async def test_each_filter_gives_what_matches_and_how_many(
        self, opened: Opened, query: Query, expected: list[str]
    ):
        async with opened() as store:
            for log, at, about, state in (
                ("a1", 1.0, label(), State.SUBMITTED),
                ("a2", 2.0, label(context="c2"), State.SUBMITTED),
                ("a3", 3.0, label(context="c2"), State.WORKING),
                ("a4", 4.0, label(agent="other", context="c3"), State.SUBMITTED),
                ("b1", 5.0, label("bob", context="c2"), State.SUBMITTED),
                ("x1", 6.0, label("ann", "acme", context="c9"), State.SUBMITTED),
            ):
                await store.commit(Batch((opening(log, at, about, state),)))
            found = await store.find(query)
            assert [row.log for row in found.rows] == expected
            assert found.total == len(expected)
            paged: list[str] = []
            token = ""
            while len(paged) < len(expected):
                page = await store.find(replace(query, size=1, token=token))
                paged += [row.log for row in page.rows]
                token = page.token
            assert paged == expected

    async def test_hidden_tasks_and_other_logs_are_not_found(self, opened: Opened):
        async with opened() as store:
            hidden = replace(opening("t1"), head=Head(State.SUBMITTED, 1.0, hidden=True))
            await store.commit(Batch((hidden, Append("turn:t1:1", 0, "j", (b"j",), None, Label("turn")))))
            assert await store.find(EVERYONE) == await store.find(Query("ann", ""))
            assert (await store.find(EVERYONE)).total == 0
            row = store.row("t1")
            assert row is not None
            assert row.head.hidden
            await store.commit(Batch((growing("t1", 1, head=WORKING),)))
            assert await names(store) == ["t1"]

    # Room and upkeep.

    async def test_no_more_tasks_are_active_than_the_bound(self, opened: Opened):
        async with opened(active_tasks_max=3) as store:
            answers = await together(store, *[Batch((opening(f"t{n}"),)) for n in range(5)])
            assert [type(answer) for answer in answers] == [type(None)] * 3 + [StoreFull] * 2
            assert store.row("t3") is None
            # What is under way goes on, and other logs are not tasks.
            await store.commit(Batch((growing("t0", 1),)))
            await store.commit(Batch((Append("turn:t0:1", 0, "j", (b"j",), None, Label("turn")),)))
            await refused(store, Batch((opening("t3"),)), StoreFull)
            await store.commit(Batch((growing("t0", 2, head=COMPLETED),)))
            await begin(store, "t3")
            await refused(store, Batch((opening("t4"),)), StoreFull)

    async def test_a_closed_log_is_gone_with_all_that_was_its_own(self, opened: Opened):
        async with opened() as store:
            journal = Append("turn:t1:1", 0, "j1", (b"j",), None, Label("turn"))
            await store.commit(Batch((opening("t1"), journal)))
            await store.commit(Batch((growing("t1", 1, head=COMPLETED),), closes=("turn:t1:1", "no-such")))
            assert store.row("turn:t1:1") is None
            assert list(store.read("turn:t1:1", 0)) == []
            assert len(store.read("t1", 0)) == 2
            await refused(store, Batch((growing("turn:t1:1", 1),)), Conflict)

    async def test_a_sweep_deletes_old_tasks_that_are_over_with_all_that_is_theirs(self, opened: Opened):
        async with opened() as store:
            for n, state in enumerate((State.COMPLETED, State.FAILED, State.CANCELED, State.REJECTED)):
                log = f"over{n}"
                record = Record("key", log, b"v", log, is_new=True)
                await store.commit(Batch((opening(log, 5.0),), records=(record,)))
                await store.commit(Batch((growing(log, 1, head=Head(state, 5.0), snapshot=b"s"),)))
            hidden = Head(State.COMPLETED, 5.0, hidden=True)
            await store.commit(Batch((replace(opening("replied"), head=hidden),)))
            await store.commit(Batch((opening("active", 5.0),)))
            await store.commit(Batch((opening("fresh", 50.0, state=State.COMPLETED),)))
            assert await store.sweep(10.0, 3) == 3
            assert await store.sweep(10.0, 99) == 2
            assert await store.sweep(10.0, 99) == 0
            assert await names(store) == ["fresh", "active"]
            for n in range(4):
                assert store.row(f"over{n}") is None
                assert store.snapshot(f"over{n}") is None
                assert list(store.read(f"over{n}", 0)) == []
                assert store.record("key", f"over{n}") is None
            assert store.row("replied") is None

    async def test_a_swept_task_does_not_rise_again(self, opened: Opened):
        async with opened() as store:
            await begin(store, "t1")
            await store.commit(Batch((growing("t1", 1, head=COMPLETED),)))
            await store.sweep(99.0, 10)
            await refused(store, Batch((growing("t1", 2),)), Conflict)
            await refused(store, Batch((growing("t1", 2, label=label()),)), Conflict)
            assert store.row("t1") is None

    async def test_a_sweep_leaves_tasks_that_still_have_work(self, opened: Opened):
        async with opened() as store:
            batch = Batch((opening("t1", state=State.COMPLETED),), (turn("t1", name="delivery"),))
            await store.commit(batch)
            assert await store.sweep(99.0, 10) == 0
            await store.commit(Batch(drops=("delivery",)))
            assert await store.sweep(99.0, 10) == 1

    async def test_what_was_submitted_before_closing_is_answered(self, opened: Opened):
        answers: list[Refusal | None] = []
        async with opened() as store:
            for n in range(50):
                store.submit(Batch((opening(f"t{n}"),)), answers.append)
        assert answers == [None] * 50
