"""What an author's code can do in a turn, and what becomes of the task. All of it is ours unless it says otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Turn
from dragoman.model.errors import AgentError
from dragoman.model.events import MessageAdded, Replied
from dragoman.model.operations.a2a import Send
from dragoman.model.peer import ANYONE
from dragoman.model.task import Message, Part, Role, State, Task
from dragoman.store import memory_work
from dragoman.store.store import StoreFull
from dragoman.testing.faults import FaultyStore
from tests.work.stage import DONE, on_turned_time, staged


async def outcome(take: Any, text: str = "go", **rules: Any) -> Task:
    """What becomes of one message to an agent with this code."""
    stage = staged(Agent("a", take, **rules))
    await stage.node()
    task = await stage.send(text, wait=True)
    assert isinstance(task, Task)
    return task


# The shapes of code.


@on_turned_time
async def test_what_an_async_function_returns_is_the_answer():
    async def take(turn: Turn) -> str:
        return turn.text.upper()

    task = await outcome(take, "hello")
    assert (task.state, task.text) == (State.COMPLETED, "HELLO")


@on_turned_time
async def test_a_plain_function_runs_in_a_thread_and_answers():
    def take(turn: Turn) -> str:
        return turn.text.upper()

    task = await outcome(take, "hello")
    assert (task.state, task.text) == (State.COMPLETED, "HELLO")


@on_turned_time
async def test_what_an_async_generator_yields_are_chunks_of_one_artifact():
    async def take(turn: Turn) -> Any:
        for n in range(3):
            yield f"{n} "

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go", wait=True)
    assert task.text == "0 1 2 "
    assert stage.chunks(task.id) == ["0 ", "1 ", "2 "]


@on_turned_time
async def test_what_a_plain_generator_yields_are_chunks_of_one_artifact():
    def take(turn: Turn) -> Any:
        yield "a"
        yield "b"

    assert (await outcome(take)).text == "ab"


@on_turned_time
async def test_a_function_that_returns_nothing_completes_the_task():
    async def take(turn: Turn) -> None: ...

    task = await outcome(take)
    assert (task.state, task.artifacts) == (State.COMPLETED, ())


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"a": [1]}, Part(data={"a": [1]})),
        (b"\0\1", Part(raw=b"\0\1", media_type="application/octet-stream")),
        (Part(url="http://x/"), Part(url="http://x/")),
    ],
)
@on_turned_time
async def test_what_is_returned_becomes_the_kind_of_part_it_is(value: Any, part: Part):
    async def take(turn: Turn) -> Any:
        return value

    assert (await outcome(take)).artifacts[0].parts == (part,)


# Endings.


@on_turned_time
async def test_a_task_passes_through_working_before_it_completes():
    """Shows: S4-010, S4-011, S4-014, S4-020, S2-017"""

    async def take(turn: Turn) -> str:
        await turn.say("on it")
        return "done"

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go", wait=True)
    assert stage.states(task.id)[-1] == "completed"
    assert set(stage.states(task.id)[:-1]) == {"working"}
    assert [message.text for message in task.history] == ["go", "on it"]


@on_turned_time
async def test_an_agent_that_raises_fails_its_task_without_telling_why():
    """Shows: S4-015"""

    async def take(turn: Turn) -> None:
        raise KeyError("the secret key")

    task = await outcome(take)
    assert task.state is State.FAILED
    assert task.text == "The agent failed (KeyError)."


@pytest.mark.parametrize("value", [object(), "\ud800", complex(1, 2)])
@on_turned_time
async def test_an_agent_whose_answer_cannot_be_written_down_fails_its_task(value: Any):
    """Half a surrogate pair is what a language model's broken bytes decode to."""

    async def take(turn: Turn) -> Any:
        await turn.artifact("before", "first")
        return value

    task = await outcome(take)
    assert task.state is State.FAILED
    assert [artifact.name for artifact in task.artifacts] == ["first"]


@on_turned_time
async def test_an_artifact_whose_id_is_no_text_fails_its_task():
    async def take(turn: Turn) -> None:
        await turn.artifact("words", 5)  # type: ignore[arg-type]

    assert (await outcome(take)).state is State.FAILED


@on_turned_time
async def test_a_log_that_cannot_be_read_back_does_not_stop_the_deadlines_of_others():
    async def take(turn: Turn) -> None:
        await turn.ask("which?")

    stage = staged(Agent("a", take, input_deadline_seconds=60.0))
    node = await stage.node()
    broken, whole = [await stage.send("go", wait=True) for _ in range(2)]
    log = stage.store._log(broken.id)
    log.events[-1] = b'{"statusUpdate":5}'
    log.snapshot = None
    await asyncio.sleep(62)
    assert (await stage.get(whole.id)).state is State.FAILED
    assert node.executor.running == 1


@on_turned_time
async def test_an_agent_whose_own_code_is_cancelled_fails_its_task():
    async def take(turn: Turn) -> None:
        raise asyncio.CancelledError

    assert (await outcome(take)).state is State.FAILED


@on_turned_time
async def test_an_agent_may_fail_reject_or_complete_with_words():
    """Shows: S2-018, S2-019"""

    async def take(turn: Turn) -> None:
        await getattr(turn, turn.text)("because")

    for word, state in (("fail", "failed"), ("reject", "rejected"), ("complete", "completed")):
        task = await outcome(take, word)
        assert (task.state.word, task.text) == (state, "because")


@on_turned_time
async def test_what_is_said_after_the_end_is_refused_and_not_in_the_log():
    """Shows: S4-019, S4-024"""
    heard: list[str] = []

    async def take(turn: Turn) -> None:
        await turn.complete("bye")
        for more in (turn.say("x"), turn.artifact("x"), turn.fail("x"), turn.complete()):
            try:
                await more
            except Exception as lost:
                heard.append(type(lost).__name__)

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go", wait=True)
    await asyncio.sleep(1)
    assert heard == ["Lost"] * 4
    assert stage.states(task.id)[-1] == "completed"
    assert stage.chunks(task.id) == []


@on_turned_time
async def test_a_turn_may_complete_and_clean_up_afterwards():
    after = asyncio.Event()

    async def take(turn: Turn) -> None:
        await turn.complete("bye")
        await asyncio.sleep(5)
        after.set()

    task = await outcome(take)
    assert task.state is State.COMPLETED
    assert not after.is_set()


@on_turned_time
async def test_many_words_without_a_pause_arrive_in_order_once():
    async def take(turn: Turn) -> None:
        async with turn.stream() as out:
            for n in range(1000):
                await out.write(f"{n},")

    stage = staged(Agent("a", take))
    await stage.node(slow=(0.01,))
    task = await stage.send("go", wait=True)
    assert task.text == "".join(f"{n}," for n in range(1000))
    assert len(stage.chunks(task.id)) == 1000


# Message or task.


@on_turned_time
async def test_an_agent_that_answers_with_messages_leaves_no_task_to_see():
    async def take(turn: Turn) -> str:
        return "hi"

    stage = staged(Agent("a", take, answers="message"))
    await stage.node()
    reply = await stage.send("hello", wait=True)
    assert isinstance(reply, Message)
    assert (reply.role, reply.text) == (Role.AGENT, "hi")
    assert reply.task_id == ""
    with pytest.raises(AgentError, match="TaskNotFound"):
        await stage.get(stage.only_task())


@on_turned_time
async def test_returning_immediately_still_waits_for_the_first_word_of_who_may_reply():
    async def take(turn: Turn) -> None:
        await asyncio.sleep(1)
        await turn.reply("hi")

    stage = staged(Agent("a", take, answers="either"))
    await stage.node()
    assert isinstance(await stage.send("hello"), Message)


@on_turned_time
async def test_who_says_no_word_in_time_answers_with_a_task():
    async def take(turn: Turn) -> None:
        await asyncio.sleep(10)
        try:
            await turn.reply("too late")
        except AgentError:
            await turn.complete("as a task")

    stage = staged(Agent("a", take, answers="either", first_word_seconds=2.0))
    await stage.node()
    began = stage.clock.now()
    task = await stage.send("hello")
    assert isinstance(task, Task)
    assert stage.clock.now() - began == pytest.approx(2.0, abs=0.1)
    assert (await stage.until(task.id, *DONE)).text == "as a task"


@on_turned_time
async def test_who_speaks_first_of_progress_answers_with_a_task():
    async def take(turn: Turn) -> str:
        await turn.say("working on it")
        return "result"

    stage = staged(Agent("a", take, answers="either"))
    await stage.node()
    task = await stage.send("hello", wait=True)
    assert isinstance(task, Task)
    assert task.text == "result"


@on_turned_time
async def test_an_agent_of_tasks_that_replies_is_told_how_to_declare_it():
    async def take(turn: Turn) -> None:
        with pytest.raises(ValueError, match="answers='either'"):
            await turn.reply("hi")

    assert (await outcome(take)).state is State.COMPLETED


@on_turned_time
async def test_a_stream_of_a_bare_message_holds_nothing_else():
    async def take(turn: Turn) -> str:
        return "hi"

    stage = staged(Agent("a", take, answers="message"))
    node = await stage.node()
    runs = [list(run) async for run in node.peers["a"].watch(ANYONE, Send(stage.message("hello")))]
    assert [type(logged.event) for run in runs for logged in run] == [Replied]


# Questions.


@on_turned_time
async def test_a_question_waits_and_its_answer_goes_on():
    """Shows: S4-012, S4-013"""

    async def take(turn: Turn) -> str:
        answer = await turn.ask("which?")
        assert turn.text == answer.text
        return f"got {answer.text}"

    stage = staged(Agent("a", take, turns_max=1))
    await stage.node()
    asked = await stage.send("go", wait=True)
    assert asked.state is State.INPUT_REQUIRED
    assert asked.status.message.text == "which?"
    assert stage.live.executor.free["a"] == 1, "a question holds no slot"
    task = await stage.send("this", asked.id, wait=True)
    assert (task.state, task.text) == (State.COMPLETED, "got this")
    assert stage.states(task.id) == ["working", "input-required", "working", "completed"]
    assert stage.live.executor.free["a"] == 1


@on_turned_time
async def test_a_question_may_ask_for_credentials():
    async def take(turn: Turn) -> str:
        return (await turn.ask("log in", auth=True)).text

    stage = staged(Agent("a", take))
    await stage.node()
    asked = await stage.send("go", wait=True)
    assert asked.state is State.AUTH_REQUIRED
    assert (await stage.send("in", asked.id, wait=True)).text == "in"


@on_turned_time
async def test_a_question_nobody_answers_fails_the_task_at_its_deadline():
    """Shows: S4-016, S4-041, S4-042"""

    async def take(turn: Turn) -> None:
        await turn.ask("which?")

    stage = staged(Agent("a", take, input_deadline_seconds=120.0))
    node = await stage.node()
    asked = await stage.send("go", wait=True)
    await asyncio.sleep(119)
    assert (await stage.get(asked.id)).state is State.INPUT_REQUIRED
    await asyncio.sleep(2)
    task = await stage.get(asked.id)
    assert task.state is State.FAILED
    assert "not answered in time" in task.text
    assert task.metadata == {"reason": "input-deadline"}
    await asyncio.sleep(2)
    assert node.executor.running == 0
    assert stage.store.next_due() is None
    assert stage.store.row(f"turn:{asked.id}:1") is None


@on_turned_time
async def test_a_question_may_have_a_deadline_of_its_own_and_the_default_is_a_week():
    """Shows: S4-042"""

    async def take(turn: Turn) -> None:
        await turn.ask("which?", deadline_seconds=10 if turn.text == "soon" else None)

    stage = staged(Agent("a", take))
    await stage.node()
    soon = await stage.send("soon", wait=True)
    late = await stage.send("late", wait=True)
    await asyncio.sleep(11)
    assert (await stage.get(soon.id)).state is State.FAILED
    await asyncio.sleep(5000)
    assert (await stage.get(late.id)).state is State.INPUT_REQUIRED
    assert stage.agents[0].conduct.input_deadline_seconds == 7 * 24 * 3600


@on_turned_time
async def test_an_answer_in_time_takes_the_deadline_away():
    """Shows: S4-041"""

    async def take(turn: Turn) -> str:
        answer = await turn.ask("which?", deadline_seconds=10)
        await asyncio.sleep(100)
        return answer.text

    stage = staged(Agent("a", take))
    await stage.node()
    asked = await stage.send("go", wait=True)
    await asyncio.sleep(9)
    assert (await stage.send("this", asked.id, wait=True)).text == "this"


@on_turned_time
async def test_questions_come_one_after_another():
    async def take(turn: Turn) -> str:
        return " ".join([(await turn.ask(f"{n}?")).text for n in range(3)])

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go", wait=True)
    for n in range(3):
        assert task.status.message.text == f"{n}?"
        task = await stage.send(f"a{n}", task.id, wait=True)
    assert task.text == "a0 a1 a2"


@on_turned_time
async def test_a_branch_that_speaks_while_another_asks_does_not_lose_the_task():
    async def take(turn: Turn) -> str:
        async def chatter() -> None:
            await asyncio.sleep(1)
            await turn.say("meanwhile")

        answer, _ = await asyncio.gather(turn.ask("which?"), chatter(), return_exceptions=True)
        return answer.text if isinstance(answer, Message) else repr(answer)

    stage = staged(Agent("a", take))
    await stage.node()
    asked = await stage.send("go", wait=True)
    await asyncio.sleep(3)
    assert (await stage.get(asked.id)).state is State.INPUT_REQUIRED
    await stage.send("this", asked.id)
    task = await stage.until(asked.id, *DONE)
    assert task.text == "this"
    assert [message.text for message in task.history] == ["go", "which?", "this", "meanwhile"]


@on_turned_time
async def test_a_step_that_ends_while_another_branch_asks_is_remembered_after_the_answer():
    async def take(turn: Turn) -> str:
        async def count() -> int:
            await asyncio.sleep(1)
            return 7

        answer, number = await asyncio.gather(turn.ask("which?"), turn.step("count", count))
        return f"{answer.text} {number}"

    stage = staged(Agent("a", take))
    await stage.node()
    asked = await stage.send("go", wait=True)
    await asyncio.sleep(3)
    await stage.send("this", asked.id)
    assert (await stage.until(asked.id, *DONE)).text == "this 7"


@on_turned_time
async def test_an_answer_that_comes_while_the_question_is_being_stored_leaves_no_slot_taken():
    async def take(turn: Turn) -> str:
        return (await turn.ask("which?")).text

    stage = staged(Agent("a", take, turns_max=2))
    node = await stage.node(slow=(1.0,))
    for n in range(3):
        first = await stage.send("go")
        while (await stage.get(first.id)).state is not State.INPUT_REQUIRED:
            await asyncio.sleep(0.01)
        await stage.send(f"a{n}", first.id)
        assert (await stage.until(first.id, *DONE)).text == f"a{n}"
    await asyncio.sleep(5)
    assert node.executor.free["a"] == 2


# What callers do meanwhile.


@on_turned_time
async def test_a_message_to_a_working_task_is_in_its_history_and_the_turn_goes_on():
    seen: list[int] = []

    async def take(turn: Turn) -> str:
        await asyncio.sleep(10)
        await turn.say("still here")
        await asyncio.sleep(1)
        seen.append(len(turn.history))
        return "done"

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(5)
    await stage.send("one more thing", task.id)
    task = await stage.until(task.id, *DONE)
    assert task.text == "done"
    assert [message.text for message in task.history] == ["go", "one more thing", "still here"]
    assert seen == [2]
    assert any(isinstance(event, MessageAdded) for event in stage.log(task.id))


@on_turned_time
async def test_a_message_to_a_task_that_is_over_is_refused():
    """Shows: S4-019"""

    async def take(turn: Turn) -> None: ...

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go", wait=True)
    with pytest.raises(AgentError, match="UnsupportedOperation"):
        await stage.send("more", task.id)


@on_turned_time
async def test_cancel_stops_the_code_of_a_working_task():
    """Shows: S4-017, S2-020"""
    ended = asyncio.Event()

    async def take(turn: Turn) -> None:
        try:
            await asyncio.sleep(10_000)
        finally:
            ended.set()

    stage = staged(Agent("a", take, turns_max=1))
    node = await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(1)
    assert (await stage.cancel(task.id)).state is State.CANCELED
    async with asyncio.timeout(2):
        await ended.wait()
    assert (await stage.cancel(task.id)).state is State.CANCELED
    await asyncio.sleep(1)
    assert (node.executor.running, node.executor.free["a"]) == (0, 1)
    assert stage.states(task.id) == ["working", "canceled"]


@on_turned_time
async def test_what_code_still_says_when_it_is_stopped_is_dropped():
    """Shows: S4-019, S4-024"""

    async def take(turn: Turn) -> None:
        try:
            await asyncio.sleep(10_000)
        finally:
            await turn.artifact("last words")

    stage = staged(Agent("a", take))
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(1)
    await stage.cancel(task.id)
    await asyncio.sleep(10)
    assert stage.states(task.id) == ["working", "canceled"]
    assert stage.chunks(task.id) == []


@on_turned_time
async def test_cancel_ends_a_question():
    """Shows: S4-017"""

    async def take(turn: Turn) -> None:
        await turn.ask("which?")

    stage = staged(Agent("a", take, turns_max=1))
    node = await stage.node()
    asked = await stage.send("go", wait=True)
    assert (await stage.cancel(asked.id)).state is State.CANCELED
    await asyncio.sleep(2)
    assert (node.executor.running, node.executor.free["a"]) == (0, 1)
    assert stage.store.next_due() is None
    with pytest.raises(AgentError, match="UnsupportedOperation"):
        await stage.send("too late", asked.id)


@on_turned_time
async def test_with_a_grace_the_agent_winds_up_by_itself():
    async def take(turn: Turn) -> None:
        for _ in range(100):
            await asyncio.sleep(0.5)
            await turn.say("tick")
            if turn.cancelled:
                await turn.artifact("half of it")
                await turn.cancel("stopped tidily")
                return

    stage = staged(Agent("a", take, cancel_grace_seconds=10.0))
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(2)
    assert (await stage.cancel(task.id)).state is State.WORKING
    await stage.cancel(task.id)
    task = await stage.until(task.id, *DONE)
    assert task.state is State.CANCELED
    assert task.status.message is not None
    assert task.status.message.text == "stopped tidily"
    assert task.artifacts[0].text == "half of it"


@on_turned_time
async def test_when_the_grace_is_over_the_task_is_canceled_anyway():
    """Shows: S4-017"""

    async def take(turn: Turn) -> None:
        await asyncio.sleep(10_000)

    stage = staged(Agent("a", take, cancel_grace_seconds=10.0))
    node = await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(1)
    await stage.cancel(task.id)
    await asyncio.sleep(9)
    assert (await stage.get(task.id)).state is State.WORKING
    await asyncio.sleep(2)
    assert (await stage.get(task.id)).state is State.CANCELED
    await asyncio.sleep(2)
    assert node.executor.running == 0


@on_turned_time
async def test_a_question_asked_during_the_grace_does_not_prolong_it():
    async def take(turn: Turn) -> None:
        await asyncio.sleep(3)
        await turn.ask("really?")

    stage = staged(Agent("a", take, cancel_grace_seconds=10.0))
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(1)
    await stage.cancel(task.id)
    await asyncio.sleep(15)
    assert (await stage.get(task.id)).state is State.CANCELED


@on_turned_time
async def test_an_answer_given_during_the_grace_does_not_end_it():
    async def take(turn: Turn) -> None:
        await asyncio.sleep(3)
        await turn.ask("really?")
        await asyncio.sleep(10_000)

    stage = staged(Agent("a", take, cancel_grace_seconds=10.0))
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(1)
    await stage.cancel(task.id)
    await asyncio.sleep(5)
    assert (await stage.get(task.id)).state is State.INPUT_REQUIRED
    await stage.send("yes", task.id)
    await asyncio.sleep(15)
    assert (await stage.get(task.id)).state is State.CANCELED


# What the store says to a turn.


@on_turned_time
async def test_a_turn_that_the_store_refuses_for_want_of_room_is_taken_up_again():
    """Shows: F16"""
    runs: list[int] = []

    async def take(turn: Turn) -> None:
        runs.append(1)
        async with turn.stream() as out:
            await out.write("one ")
            await asyncio.sleep(0.1)
            await out.write("two")

    stage = staged(Agent("a", take))
    await stage.node(fail=(3, StoreFull("the disk is full")))
    task = await stage.send("go", wait=True)
    assert (task.state, task.text) == (State.COMPLETED, "one two")
    assert len(runs) == 2


@on_turned_time
async def test_a_turn_that_lost_its_claim_says_nothing_more():
    said: list[str] = []

    async def take(turn: Turn) -> None:
        async with turn.stream() as out:
            for n in range(6):
                await out.write(f"{n} ")
                said.append(f"{turn.claim.epoch}:{n}")
                await asyncio.sleep(10)

    stage = staged(Agent("a", take))
    first = await stage.node()
    await stage.node()
    task = await stage.send("go")
    await asyncio.sleep(15)
    # The first node is stopped for a minute: it beats no more, and its code goes on when it is back.
    first.store.cut()
    await asyncio.sleep(60)
    first.store.heal()
    stage.nodes.reverse()
    done = await stage.until(task.id, *DONE)
    await asyncio.sleep(60)
    assert done.text == "0 1 2 3 4 5 "
    assert (await stage.get(task.id)) == done
    assert any(word.startswith("2:") for word in said)


@pytest.mark.parametrize("nth", range(1, 9))
@on_turned_time
async def test_a_commit_whose_answer_is_lost_is_not_done_twice(nth: int):
    """Shows: F02"""

    async def take(turn: Turn) -> None:
        async with turn.stream() as out:
            await out.write("one ")
            await asyncio.sleep(0.1)
            await out.write(await turn.step("two", lambda: "two "))
            answer = await turn.ask("three?")
            await out.write(answer.text)

    stage = staged(Agent("a", take))
    view = FaultyStore(stage.store)
    await stage.node(lose_reply=(nth, StoreFull("nobody knows")))
    assert view.commits == 0
    with_answer = None
    try:
        task_id = (await stage.send("go")).id
    except AgentError as wrong:
        # Even the caller may not know; the task is there all the same.
        assert wrong.name == "StoreFull"
        task_id = stage.only_task()
    task = await stage.until(task_id, State.INPUT_REQUIRED, *DONE)
    if task.state is State.INPUT_REQUIRED:
        try:
            with_answer = await stage.send("three", task_id)
        except AgentError as wrong:
            assert wrong.name == "StoreFull"
        task = await stage.until(task_id, *DONE)
    assert (task.state, task.text) == (State.COMPLETED, "one two three"), with_answer


@on_turned_time
async def test_answered_questions_leave_no_deadlines_behind_in_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory_work, "STALE_DUES", 10)

    async def take(turn: Turn) -> None:
        while (await turn.ask("more?")).text != "no":
            pass

    stage = staged(Agent("a", take))
    await stage.node()
    asked = await stage.send("go", wait=True)
    for _ in range(50):
        await stage.send("yes", asked.id, wait=True)
    assert len(stage.store._work._due) < 20
