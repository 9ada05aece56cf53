"""A turn that is run again: a crash anywhere leaves the same result as no crash, and no step is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from dragoman import Agent, Turn
from dragoman.model.errors import AgentError
from dragoman.model.task import State, Task
from dragoman.store.store import StoreFull
from dragoman.testing.faults import Cut
from dragoman.work.journal import journal_log
from tests.work.stage import DONE, Stage, here, on_turned_time, staged

WHOLE = "one two three four five"
# Commits of the turn below: open, working+one, two, step, three, ask, answer, four, step, five+end: and some spare.
POINTS = range(1, 13)


class Counted:
    """Code with two chunks, a step, a chunk, an ask, a chunk: what it did, and when it was journalled."""

    def __init__(self, plan: dict[str, Any] | None = None) -> None:
        self.ran: Counter[str] = Counter()
        self.stage: Stage
        self.agent = Agent("a", self.take, **(plan or {}))

    async def once(self, name: str, value: str) -> str:
        """A step that is never run when its result is already remembered."""
        entries = b"".join(self.stage.store.read(journal_log(self.stage.only_task()), 0))
        assert f'"key":"{name}"'.encode() not in entries, f"step {name} ran again after it was remembered"
        self.ran[name] += 1
        await asyncio.sleep(0.1)
        return value

    async def take(self, turn: Turn) -> None:
        async with turn.stream() as out:
            await out.write("one ")
            await asyncio.sleep(0.1)
            await out.write("two ")
            await asyncio.sleep(0.1)
            await out.write(await turn.step("three", self.once, "three", "three "))
            await asyncio.sleep(0.1)
            answer = await turn.ask("four?")
            await out.write(answer.text + " ")
            await asyncio.sleep(0.1)
            await out.write(await turn.step("five", self.once, "five", "five"))


async def through(stage: Stage, text: str = "go", answer: str = "four") -> Task:
    """Say it, answer the question, try again on another node whenever the line is cut; how it ended."""
    task_id = ""
    for _ in range(50):
        try:
            if not task_id:
                feed = stage.store.feed(0)
                task_id = feed[0].log if feed else (await stage.send(text)).id
            task = await stage.until(task_id, State.INPUT_REQUIRED, *DONE)
            if task.state is State.INPUT_REQUIRED:
                await stage.send(answer, task_id)
                await asyncio.sleep(0.01)
            else:
                return task
        except Cut:
            await asyncio.sleep(1)
        except AgentError as wrong:
            # The answer had arrived before the line was cut, and is not needed a second time.
            assert wrong.name == "UnsupportedOperation"
    raise AssertionError("the task did not end")


async def crashed(counted: Counted, nth: int, *, after: bool) -> Task:
    """What becomes of the task when the first node dies at its nth commit and a second is there."""
    counted.stage = stage = staged(counted.agent)
    first = await stage.node()
    first.store.crash(nth, after=after)
    await stage.node()
    return await through(stage)


@on_turned_time
async def test_without_a_crash_the_result_is_this():
    counted = Counted()
    counted.stage = stage = staged(counted.agent)
    await stage.node()
    task = await through(stage)
    assert (task.state, task.text) == (State.COMPLETED, WHOLE)
    assert counted.ran == {"three": 1, "five": 1}
    assert stage.chunks(task.id) == ["one ", "two ", "three ", "four ", "five"]
    assert 8 <= stage.nodes[0].store.commits <= len(POINTS), "the crash points below cover every commit"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", POINTS)
@on_turned_time
async def test_a_crash_at_any_commit_changes_nothing_of_the_result(nth: int, after: bool):
    """Shows: F01, F02, S4-024"""
    counted = Counted()
    task = await crashed(counted, nth, after=after)
    assert (task.state, task.text) == (State.COMPLETED, WHOLE)
    assert [artifact.artifact_id for artifact in task.artifacts] == ["answer"]
    assert all(times <= 2 for times in counted.ran.values())
    assert counted.stage.states(task.id)[-1] == "completed"
    assert counted.stage.states(task.id).count("completed") == 1
    assert counted.stage.store.row(journal_log(task.id)) is None


@pytest.mark.parametrize("words", range(1, 6))
@on_turned_time
async def test_a_crash_right_after_any_output_changes_nothing_of_the_result(words: int):
    """Shows: F01"""
    counted = Counted()
    counted.stage = stage = staged(counted.agent)
    first = await stage.node()
    await stage.node()

    async def executioner() -> None:
        while sum(map(len, map(stage.chunks, {fed.log for fed in stage.store.feed(0)})), 0) < words:
            await asyncio.sleep(0.01)
        first.kill()

    killer = asyncio.create_task(executioner())
    task = await through(stage)
    await killer
    assert (task.state, task.text) == (State.COMPLETED, WHOLE)


@pytest.mark.parametrize("nth", range(1, 9))
@on_turned_time
async def test_a_crash_of_every_node_in_turn_changes_nothing_of_the_result(nth: int):
    """Shows: F01"""
    counted = Counted({"attempts_max": 100})
    counted.stage = stage = staged(counted.agent)
    for _ in range(4):
        (await stage.node()).store.crash(nth, after=bool(nth % 2))
    await stage.node()
    task = await through(stage)
    assert (task.state, task.text) == (State.COMPLETED, WHOLE)


@on_turned_time
async def test_a_question_is_answered_after_a_restart():
    """Shows: F01, S4-013"""
    counted = Counted()
    counted.stage = stage = staged(counted.agent)
    first = await stage.node()
    asked = await stage.send("go", wait=True)
    first.kill()
    await stage.node()
    task = await stage.send("four", asked.id, wait=True)
    assert task.text == WHOLE
    assert counted.ran == {"three": 1, "five": 1}


@on_turned_time
async def test_code_that_still_waits_for_an_older_question_is_not_woken_by_a_newer_ones_answer():
    async def take(turn: Turn) -> str:
        first = (await turn.ask("first?")).text
        await asyncio.sleep(1)
        second = (await turn.ask("second?")).text
        return f"{first} {second}"

    stage = staged(Agent("a", take))
    one, two = await stage.node(), await stage.node()
    asked = await stage.send("go", wait=True)
    one.store.cut()
    stage.nodes.reverse()
    asked = await stage.send("f", asked.id, wait=True)
    assert asked.status.message.text == "second?"
    one.store.heal()
    two.kill()
    stage.nodes.reverse()
    await stage.send("s", asked.id)
    assert (await stage.until(asked.id, *DONE)).text == "f s"


@on_turned_time
async def test_an_answer_is_the_first_message_after_its_question_on_every_path():
    async def take(turn: Turn) -> str:
        answer = await turn.ask("which?")
        await asyncio.sleep(5)
        return answer.text

    for is_killed in (False, True):
        stage = staged(Agent("a", take))
        first = await stage.node()
        asked = await stage.send("go", wait=True)
        await stage.send("first", asked.id)
        await stage.send("second", asked.id)
        await stage.node()
        if is_killed:
            first.kill()
        assert (await stage.until(asked.id, *DONE)).text == "first"


@on_turned_time
async def test_a_turn_run_again_begins_with_the_message_it_began_with():
    """Shows: F01"""
    seen: list[str] = []

    async def take(turn: Turn) -> str:
        seen.append(turn.text)
        await asyncio.sleep(5)
        answer = await turn.ask("which?")
        seen.append(turn.text)
        return answer.text

    stage = staged(Agent("a", take))
    first = await stage.node()
    sent = await stage.send("go")
    await stage.send("and this", sent.id)
    await stage.until(sent.id, State.INPUT_REQUIRED)
    first.kill()
    await stage.node()
    await stage.send("answer", sent.id, wait=True)
    assert seen == ["go", "go", "answer"]


# The trap of `gather`: what is concurrent must come back in the order it had.


async def replayed(take: Any, kill_after: str, **rules: Any) -> tuple[Stage, Task]:
    """Run it, kill the node as soon as an artifact says this, run it again elsewhere."""
    stage = staged(Agent("a", take, **rules))
    first = await stage.node()
    await stage.node()
    sent = await stage.send("go")
    async with asyncio.timeout(100):
        while kill_after not in stage.chunks(sent.id):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    first.kill()
    return stage, await stage.until(sent.id, *DONE)


@on_turned_time
async def test_concurrent_steps_that_end_in_another_order_are_replayed_in_that_order():
    """Shows: F01"""
    ran: Counter[str] = Counter()

    async def take(turn: Turn) -> None:
        async def branch(name: str, seconds: float) -> None:
            async def work() -> str:
                ran[name] += 1
                await asyncio.sleep(seconds)
                return name

            word = await turn.step(name, work)
            await turn.artifact(word, name=f"by-{word}")

        await asyncio.gather(branch("slow", 3), branch("quick", 1), branch("middle", 2))
        await turn.artifact("tick")
        await asyncio.sleep(5)

    stage, task = await replayed(take, "tick")
    assert ran == {"slow": 1, "quick": 1, "middle": 1}
    assert [artifact.text for artifact in task.artifacts] == ["quick", "middle", "slow", "tick"]
    assert stage.chunks(task.id) == ["quick", "middle", "slow", "tick", "slow", "tick"]


@on_turned_time
async def test_a_branch_that_speaks_some_time_after_its_step_keeps_its_place():
    """Shows: F01"""

    async def take(turn: Turn) -> None:
        async def step(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        async def first() -> None:
            await turn.step("one", step, 1.0)
            await asyncio.sleep(0.5)
            await turn.artifact("by one", name="one")

        async def second() -> None:
            await turn.step("two", step, 10.0)
            await turn.artifact("by two", name="two")
            await asyncio.sleep(5)

        await asyncio.gather(first(), second())

    stage, task = await replayed(take, "by two")
    assert [artifact.text for artifact in task.artifacts] == ["by one", "by two"]
    assert stage.chunks(task.id).count("by one") == 1


@on_turned_time
async def test_a_branch_may_come_late_to_its_step_when_it_is_run_again():
    """Shows: F01"""

    async def take(turn: Turn) -> str:
        async def step(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        async def first() -> None:
            await asyncio.sleep(20)
            await turn.step("one", step, 1.0)

        await asyncio.gather(first(), turn.step("two", step, 30.0))
        await turn.artifact("tick", name="tick")
        await asyncio.sleep(5)
        return "done"

    _, task = await replayed(take, "tick")
    assert (task.state, task.artifacts[-1].text) == (State.COMPLETED, "done")


# Agents that changed their ways.


@on_turned_time
async def test_a_step_with_other_arguments_than_before_fails_the_turn_and_names_both():
    runs: list[int] = []

    async def take(turn: Turn) -> str:
        runs.append(1)
        value = await turn.step("double", lambda n: n * 2, len(runs))
        await turn.artifact("tick")
        await asyncio.sleep(5)
        return str(value)

    _, task = await replayed(take, "tick")
    assert task.state is State.FAILED
    assert task.status.message is not None
    words = task.status.message.text
    assert "step 'double'" in words
    then, now = words.partition("(then ")[2].partition(", now ")[::2]
    assert len(then) == 24
    assert then != now[:24]


@on_turned_time
async def test_a_step_that_is_not_come_to_again_fails_the_turn_and_is_named():
    runs: list[int] = []

    async def take(turn: Turn) -> None:
        runs.append(1)
        if len(runs) == 1:
            await turn.step("gone", lambda: 1)
        await turn.step("kept", lambda: 2)
        await turn.artifact("tick")
        await asyncio.sleep(5)

    _, task = await replayed(take, "tick")
    assert task.state is State.FAILED
    assert task.status.message is not None
    assert "step 'gone'" in task.status.message.text


@on_turned_time
async def test_a_step_name_is_used_once_in_a_turn_unless_it_has_a_key():
    async def take(turn: Turn) -> str:
        await turn.step("one", lambda: 1)
        with pytest.raises(ValueError, match="key="):
            await turn.step("one", lambda: 1)
        return str(await turn.step("one", lambda: 2, key="one again"))

    stage = staged(Agent("a", take))
    await stage.node()
    assert (await stage.send("go", wait=True)).text == "2"


@on_turned_time
async def test_a_step_takes_arguments_that_are_json_only():
    async def take(turn: Turn) -> None:
        with pytest.raises(TypeError, match="close over"):
            await turn.step("one", print, object())

    stage = staged(Agent("a", take))
    await stage.node()
    assert (await stage.send("go", wait=True)).state is State.COMPLETED


@on_turned_time
async def test_a_step_that_raises_is_not_remembered_and_may_be_tried_again():
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError
        return "ok"

    async def take(turn: Turn) -> str:
        for n in range(3):
            try:
                return str(await turn.step("flaky", flaky, key=f"flaky {n}"))
            except OSError:
                pass
        return "gave up"

    stage = staged(Agent("a", take))
    await stage.node()
    assert (await stage.send("go", wait=True)).text == "ok"


# Interruptions.


@on_turned_time
async def test_an_agent_that_must_not_be_run_again_fails_when_interrupted():
    runs: list[int] = []

    async def take(turn: Turn) -> None:
        runs.append(1)
        await turn.artifact("tick")
        await asyncio.sleep(10)

    _, task = await replayed(take, "tick", on_interrupt="fail")
    assert task.state is State.FAILED
    assert task.metadata == {"reason": "interrupted"}
    assert len(runs) == 1


@on_turned_time
async def test_a_turn_that_kills_its_node_each_time_is_given_up_in_the_end():
    """Shows: F01"""
    runs: list[int] = []
    stage = staged()

    async def take(turn: Turn) -> None:
        runs.append(1)
        await asyncio.sleep(1)
        here().kill()
        await asyncio.sleep(1)

    stage.agents = (Agent("a", take, attempts_max=3),)
    for _ in range(6):
        await stage.node()
    sent = await stage.send("go")
    task = await stage.until(sent.id, *DONE, seconds=1000)
    assert task.state is State.FAILED
    assert task.metadata == {"reason": "interrupted"}
    assert len(runs) == 3


@on_turned_time
async def test_a_turn_that_gets_a_little_further_each_time_is_not_given_up():
    """Shows: F01"""
    stage = staged()
    runs: list[int] = []

    async def take(turn: Turn) -> str:
        runs.append(1)
        for n in range(6):

            async def number(n: int = n) -> int:
                return n

            if await turn.step(f"step {n}", number) == len(runs) - 1 < 5:
                await asyncio.sleep(1)
                here().kill()
                await asyncio.sleep(1)
        return "done"

    stage.agents = (Agent("a", take, attempts_max=3),)
    for _ in range(8):
        await stage.node()
    sent = await stage.send("go")
    assert (await stage.until(sent.id, *DONE, seconds=1000)).text == "done"
    assert len(runs) == 6


@on_turned_time
async def test_a_full_disk_in_the_middle_is_waited_for_and_no_step_is_done_twice():
    """Shows: F16"""
    counted = Counted()
    counted.stage = stage = staged(counted.agent)
    node = await stage.node()
    for nth in (5, 6):
        node.store.fail(nth, StoreFull("the disk is full"))
    task = await through(stage)
    assert (task.state, task.text) == (State.COMPLETED, WHOLE)
