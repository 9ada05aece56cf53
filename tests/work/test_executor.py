"""Who runs what: slots, claims of what others left, parked questions, drain, deadlines. All of it is ours."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import Agent, Turn
from dragoman.model.task import State
from dragoman.work import executor as executors
from tests.work.stage import DONE, on_turned_time, staged


@on_turned_time
async def test_no_more_turns_run_than_the_agent_allows_and_the_rest_waits():
    most: list[int] = [0, 0]

    async def take(turn: Turn) -> None:
        most[0] += 1
        most[1] = max(most)
        await asyncio.sleep(1)
        most[0] -= 1

    stage = staged(Agent("a", take, turns_max=2))
    await stage.node()
    sent = [await stage.send(f"{n}") for n in range(7)]
    for task in sent:
        assert (await stage.until(task.id, *DONE)).state is State.COMPLETED
    assert most[1] == 2
    assert stage.live.executor.free["a"] == 2


@on_turned_time
async def test_slots_are_counted_for_each_agent_by_itself():
    async def slow(turn: Turn) -> None:
        await asyncio.sleep(100)

    async def quick(turn: Turn) -> str:
        return "done"

    stage = staged(Agent("slow", slow, turns_max=1), Agent("quick", quick, turns_max=1))
    await stage.node()
    await stage.send("1", agent="slow")
    await stage.send("2", agent="slow")
    assert (await stage.send("go", agent="quick", wait=True)).text == "done"


@on_turned_time
async def test_work_that_waits_for_a_slot_is_taken_by_a_node_that_has_one():
    async def take(turn: Turn) -> None:
        await asyncio.sleep(50)

    stage = staged(Agent("a", take, turns_max=1))
    await stage.node()
    sent = [await stage.send(f"{n}") for n in range(2)]
    await asyncio.sleep(5)
    assert (await stage.get(sent[1].id)).state is State.SUBMITTED
    second = await stage.node()
    await asyncio.sleep(3)
    assert second.executor.running == 1
    assert (await stage.get(sent[1].id)).state is State.WORKING


@on_turned_time
async def test_the_work_of_a_dead_node_is_taken_over_when_its_lease_ends():
    """Shows: F01"""

    async def take(turn: Turn) -> str:
        await asyncio.sleep(10)
        return f"epoch {turn.claim.epoch}"

    stage = staged(Agent("a", take))
    first = await stage.node()
    await stage.node()
    sent = await stage.send("go")
    await asyncio.sleep(1)
    first.kill()
    died = stage.clock.now()
    assert (await stage.until(sent.id, *DONE)).text == "epoch 2"
    assert stage.clock.now() - died < 30 + 5 + 2 + 10


@on_turned_time
async def test_a_task_accepted_by_a_node_that_only_answers_is_worked_on_by_another():
    async def take(turn: Turn) -> str:
        return "done"

    stage = staged(Agent("a", take))
    answers = await stage.node()
    answers.executor.free["a"] = 0
    sent = await stage.send("go")
    await asyncio.sleep(3)
    assert (await stage.get(sent.id)).state is State.SUBMITTED
    await stage.node()
    assert (await stage.until(sent.id, *DONE, seconds=5)).text == "done"


@on_turned_time
async def test_of_many_parked_questions_the_oldest_code_is_dropped_and_run_again_when_answered(
    monkeypatch: pytest.MonkeyPatch,
):
    """Shows: S4-041"""
    monkeypatch.setattr(executors, "PARKED_MAX", 3)
    runs: list[str] = []

    async def take(turn: Turn) -> str:
        runs.append(turn.text)
        name = turn.text
        return f"{name} {(await turn.ask('which?')).text}"

    stage = staged(Agent("a", take))
    node = await stage.node()
    asked = [await stage.send(f"t{n}", wait=True) for n in range(6)]
    await asyncio.sleep(1)
    assert node.executor.running == 3
    for n, task in enumerate(asked):
        assert (await stage.get(task.id)).state is State.INPUT_REQUIRED
        assert (await stage.send(f"a{n}", task.id, wait=True)).text == f"t{n} a{n}"
    assert len(runs) == 6 + 3
    assert node.executor.free["a"] == 1000


@on_turned_time
async def test_drain_lets_turns_end_and_the_rest_is_taken_over():
    async def take(turn: Turn) -> str:
        await asyncio.sleep(float(turn.text))
        return "done"

    stage = staged(Agent("a", take))
    first = await stage.node()
    short = await stage.send("2")
    long = await stage.send("20")
    await asyncio.sleep(0.1)
    await first.executor.drain(5.0)
    assert (await stage.get(short.id)).state is State.COMPLETED
    assert (await stage.get(long.id)).state is State.WORKING
    assert first.executor.running == 0
    first.kill()
    await stage.node()
    assert (await stage.until(long.id, *DONE)).state is State.COMPLETED


@on_turned_time
async def test_a_draining_node_keeps_its_questions_for_the_next():
    async def take(turn: Turn) -> str:
        return (await turn.ask("which?")).text

    stage = staged(Agent("a", take))
    first = await stage.node()
    asked = await stage.send("go", wait=True)
    await first.executor.drain(5.0)
    first.kill()
    await stage.node()
    assert (await stage.get(asked.id)).state is State.INPUT_REQUIRED
    assert (await stage.send("this", asked.id, wait=True)).text == "this"


@on_turned_time
async def test_a_deadline_passes_though_the_node_that_asked_is_gone():
    """Shows: S4-041"""

    async def take(turn: Turn) -> None:
        await turn.ask("which?", deadline_seconds=60)

    stage = staged(Agent("a", take))
    first = await stage.node()
    asked = await stage.send("go", wait=True)
    first.kill()
    await stage.node()
    assert (await stage.until(asked.id, *DONE)).state is State.FAILED


@on_turned_time
async def test_an_answer_and_a_deadline_at_the_same_time_end_in_one_way():
    """Shows: S4-024"""

    async def take(turn: Turn) -> str:
        return (await turn.ask("which?", deadline_seconds=10)).text

    stage = staged(Agent("a", take))
    await stage.node(slow=(0.5,))
    ends = set()
    for n in range(40):
        asked = await stage.send("go", wait=True)
        await asyncio.sleep(9 + n * 0.05)
        try:
            await stage.send("this", asked.id)
        except Exception as late:
            assert "UnsupportedOperation" in str(late)
        task = await stage.until(asked.id, *DONE)
        states = stage.states(task.id)
        assert sum(state in ("completed", "failed") for state in states) == 1, states
        ends.add(task.state.word)
    assert ends == {"completed", "failed"}


@on_turned_time
async def test_a_cancel_and_an_ending_at_the_same_time_end_in_one_way():
    """Shows: S4-022, S4-024"""

    async def take(turn: Turn) -> str:
        await asyncio.sleep(1)
        return "done"

    stage = staged(Agent("a", take))
    await stage.node(slow=(0.05,))
    ends = set()
    for n in range(40):
        sent = await stage.send("go")
        await asyncio.sleep(0.8 + n * 0.01)
        try:
            await stage.cancel(sent.id)
        except Exception as late:
            assert "TaskNotCancelable" in str(late)
        task = await stage.until(sent.id, *DONE)
        states = stage.states(task.id)
        assert sum(state in ("completed", "canceled") for state in states) == 1, states
        ends.add(task.state.word)
    assert ends == {"completed", "canceled"}


@on_turned_time
async def test_waits_that_wake_for_nothing_change_nothing():
    async def take(turn: Turn) -> str:
        await asyncio.sleep(1)
        return "done"

    stage = staged(Agent("a", take))
    await stage.node(wake_early=())
    assert (await stage.send("go", wait=True)).text == "done"


@on_turned_time
async def test_a_finished_task_that_made_room_takes_no_late_word_of_its_turn():
    """Shows: S2-011"""

    async def take(turn: Turn) -> None:
        if turn.text == "late":
            await asyncio.sleep(20)
            await turn.artifact("late word")

    stage = staged(Agent("a", take), tasks_max=2)
    first = await stage.node()
    await stage.node()
    late = await stage.send("late")
    await asyncio.sleep(1)
    first.store.cut()
    stage.nodes.reverse()
    await stage.cancel(late.id)
    for n in range(3):
        await stage.send(f"{n}", wait=True)
    assert stage.store.row(late.id) is None
    first.store.heal()
    await asyncio.sleep(60)
    assert stage.store.row(late.id) is None
    assert first.executor.running == 0
