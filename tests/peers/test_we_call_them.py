"""Our client talks to agents that other parties serve, and finds in them what the protocol promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import (
    AgentError,
    ArtifactChanged,
    Client,
    Logged,
    Message,
    Part,
    Role,
    State,
    Task,
    TaskCreated,
)
from dragoman.core.tasks import TERMINAL, Fold
from tests.peers.environments import shows

EVERY_KIND = (
    Part(text="plain", media_type="text/plain"),
    Part(raw=bytes(range(256)), filename="all.bin", media_type="application/octet-stream"),
    Part(url="https://example.com/a.png", filename="a.png", media_type="image/png"),
    Part(data={"nested": [1, 2.5, True, None, {"a": ""}]}),
    Part(data=[1, "two"]),
    Part(data="bare"),
    Part(data=0),
    Part(data=False),
    Part(text="noted", metadata={"k": {"n": 1}}),
)


def truth(chunks: int) -> str:
    return "".join(f"{number} " for number in range(chunks))


async def folded(events: AsyncIterator[Logged]) -> tuple[Task, list[Any]]:
    """A stream to its end: the task it amounts to, and the events."""
    fold, seen = Fold(), []
    async for logged in events:
        fold.apply(logged.event)
        seen.append(logged.event)
    return fold.task(), seen


async def task(client: Client, words: str | Message, **more: Any) -> Task:
    answer = await client.send(words, **more)
    assert isinstance(answer, Task)
    return answer


def mirror(*parts: Part) -> Message:
    return Message("mirror-1", Role.USER, (Part(text="mirror"), *parts))


@shows("card")
async def test_the_card_is_found_and_read(theirs: str) -> None:
    async with Client(theirs) as client:
        card = await client.card()
        assert (card.name, card.streams) == ("peer", True)
        assert [way.protocol_binding for way in card.supported_interfaces] == ["JSONRPC"]


@shows("SendMessage")
async def test_a_send_waits_for_the_task_and_brings_its_artifacts(theirs: str) -> None:
    async with Client(theirs) as client:
        answer = await task(client, "echo Grüße, 世界 🌍")
        assert (answer.state, answer.text) == (State.COMPLETED, "Grüße, 世界 🌍")
        assert not client.faults


@shows("SendMessage")
async def test_a_send_that_does_not_wait_brings_an_open_task(theirs: str) -> None:
    async with Client(theirs) as client:
        open_ = await task(client, "slow", wait=False)
        assert open_.state not in TERMINAL
        await client.cancel(open_.id)


@shows("SendStreamingMessage")
async def test_a_stream_brings_the_task_its_states_and_every_chunk(theirs: str) -> None:
    async with Client(theirs) as client:
        now, events = await folded(client.stream("chunks 20"))
        assert isinstance(events[0], TaskCreated)
        assert sum(isinstance(event, ArtifactChanged) for event in events) == 20
        assert (now.state, now.text) == (State.COMPLETED, truth(20))
        assert not client.faults


@shows("GetTask")
async def test_a_task_is_read_as_it_ended(theirs: str) -> None:
    async with Client(theirs) as client:
        said = await task(client, "echo again")
        read = await client.get(said.id)
        assert (read.state, read.text, read.context_id) == (State.COMPLETED, "again", said.context_id)


@shows("GetTask")
async def test_the_history_has_the_length_that_was_asked_for(theirs: str) -> None:
    async with Client(theirs) as client:
        asked = await task(client, "ask")
        await task(client, "blue", task_id=asked.id)
        for length in (0, 1, 2):
            assert len((await client.get(asked.id, history_length=length)).history) == length
        whole = await client.get(asked.id)
        assert [message.text for message in whole.history] == ["ask", "Which?", "blue"]


@shows("ListTasks")
async def test_tasks_are_listed_by_page_and_context(theirs: str) -> None:
    async with Client(theirs) as client:
        first = await task(client, "echo 0")
        context = first.context_id
        made = [first.id, *[(await task(client, f"echo {n}", context_id=context)).id for n in range(1, 5)]]
        found, sizes, token = [], [], ""
        while True:
            page = await client.list(context_id=context, page_size=2, page_token=token)
            found += [one.id for one in page.tasks]
            sizes.append(len(page.tasks))
            token = page.next_page_token
            if not token:
                break
        assert (sizes, sorted(found), page.total_size) == ([2, 2, 1], sorted(made), 5)


@shows("ListTasks")
async def test_listed_tasks_have_artifacts_when_asked_for(theirs: str) -> None:
    async with Client(theirs) as client:
        said = await task(client, "echo listed")
        bare = await client.list(context_id=said.context_id)
        full = await client.list(context_id=said.context_id, include_artifacts=True)
        assert [one.artifacts for one in bare.tasks] == [()]
        assert [one.text for one in full.tasks] == ["listed"]


@shows("CancelTask")
async def test_a_task_is_canceled(theirs: str) -> None:
    async with Client(theirs) as client:
        open_ = await task(client, "slow", wait=False)
        assert (await client.cancel(open_.id)).state is State.CANCELED
        assert (await client.get(open_.id)).state is State.CANCELED


@shows("SubscribeToTask")
async def test_two_subscribers_both_get_the_task_and_the_true_artifact(theirs: str) -> None:
    async with Client(theirs) as client:
        open_ = await task(client, "chunks 100", wait=False)
        both = await asyncio.gather(*(folded(client.subscribe(open_.id)) for _ in range(2)))
        for now, events in both:
            assert isinstance(events[0], TaskCreated)
            assert (now.state, now.text) == (State.COMPLETED, truth(100))


@shows("SubscribeToTask")
async def test_a_stream_that_is_left_is_taken_up_again(theirs: str) -> None:
    async with Client(theirs) as client:
        async with aclosing(client.stream("chunks 100")) as events:
            first = await anext(events)
            assert isinstance(first.event, TaskCreated)
            async for logged in events:
                if isinstance(logged.event, ArtifactChanged):
                    break
        now, _ = await folded(client.subscribe(first.event.task.id))
        assert (now.state, now.text) == (State.COMPLETED, truth(100))


@shows("SendMessage")
async def test_a_question_is_asked_answered_and_the_task_goes_on(theirs: str) -> None:
    async with Client(theirs) as client:
        asked = await task(client, "ask")
        assert asked.state is State.INPUT_REQUIRED
        assert asked.status.message is not None
        assert asked.status.message.text == "Which?"
        answer = await task(client, "blue", task_id=asked.id)
        assert (answer.id, answer.state, answer.text) == (asked.id, State.COMPLETED, "you said: blue")


@shows("SendStreamingMessage")
async def test_a_stream_ends_at_a_question_and_the_answer_opens_the_next(theirs: str) -> None:
    async with Client(theirs) as client:
        asked, _ = await folded(client.stream("ask"))
        assert asked.state is State.INPUT_REQUIRED
        answer, _ = await folded(client.stream("green", task_id=asked.id))
        assert (answer.state, answer.text) == (State.COMPLETED, "you said: green")


@shows("SendMessage")
async def test_an_agent_answers_with_a_message_alone(theirs: str) -> None:
    async with Client(theirs) as client:
        answer = await client.send("message")
        assert isinstance(answer, Message)
        assert answer.text == "just a message"
        seen = [logged.event async for logged in client.stream("message")]
        assert len(seen) == 1


@shows("SendMessage")
async def test_parts_of_every_kind_go_there_and_back_unchanged(theirs: str) -> None:
    async with Client(theirs) as client:
        answer = await task(client, mirror(*EVERY_KIND))
        assert answer.artifacts[0].parts == EVERY_KIND


@shows("SendMessage")
async def test_an_empty_text_goes_there_and_back_unchanged(theirs: str) -> None:
    async with Client(theirs) as client:
        assert (await task(client, mirror(Part(text="")))).artifacts[0].parts == (Part(text=""),)


@shows("SendMessage")
async def test_an_empty_file_goes_there_and_back_unchanged(theirs: str) -> None:
    async with Client(theirs) as client:
        empty = Part(raw=b"", filename="empty.bin")
        assert (await task(client, mirror(empty))).artifacts[0].parts == (empty,)


@shows("SendMessage")
async def test_a_part_may_be_null(theirs: str) -> None:
    async with Client(theirs) as client:
        assert (await task(client, mirror(Part(data=None)))).artifacts[0].parts == (Part(data=None),)


@shows("SendMessage")
async def test_a_megabyte_goes_there_and_back(theirs: str) -> None:
    async with Client(theirs) as client:
        words = "x" * 1_000_000
        assert (await task(client, f"echo {words}")).text == words


@shows("SendMessage")
async def test_fifty_sends_at_once_each_get_their_own_answer(theirs: str) -> None:
    async with Client(theirs) as client:
        answers = await asyncio.gather(*(task(client, f"echo {number}") for number in range(50)))
        assert [answer.text for answer in answers] == [str(number) for number in range(50)]


@shows("SendMessage")
async def test_a_failure_a_rejection_and_a_crash_are_told(theirs: str) -> None:
    async with Client(theirs) as client:
        failed, rejected = await task(client, "fail"), await task(client, "reject")
        assert (failed.state, failed.text) == (State.FAILED, "it broke")
        assert (rejected.state, rejected.text) == (State.REJECTED, "not for me")
        crashed, _ = await folded(client.stream("crash"))
        assert crashed.state is State.FAILED


WRONG: dict[str, tuple[str, Callable[[Client, str], Any]]] = {
    "a task that is not there cannot be read": ("TaskNotFound", lambda client, over: client.get("nobody")),
    "a task that is not there cannot be canceled": (
        "TaskNotFound",
        lambda client, over: client.cancel("nobody"),
    ),
    "a task that is over cannot be canceled": ("TaskNotCancelable", lambda client, over: client.cancel(over)),
    "a task that is not there takes no message": (
        "TaskNotFound",
        lambda client, over: client.send("echo", task_id="nobody"),
    ),
    "a task that is over takes no message": (
        "UnsupportedOperation",
        lambda client, over: client.send("echo", task_id=over),
    ),
    "a page has at most a hundred tasks": ("InvalidParams", lambda client, over: client.list(page_size=101)),
}


@shows("every")
async def test_every_error_arrives_by_its_name(theirs: str) -> None:
    async with Client(theirs) as client:
        over = (await task(client, "echo done")).id
        seen = {}
        for behaviour, (_, ask) in WRONG.items():
            with pytest.raises(AgentError) as wrong:
                await ask(client, over)
            seen[behaviour] = wrong.value.name
        assert seen == {behaviour: name for behaviour, (name, _) in WRONG.items()}


@shows("SubscribeToTask")
async def test_a_task_that_is_over_cannot_be_subscribed_to(theirs: str) -> None:
    async with Client(theirs) as client:
        over = await task(client, "echo done")
        with pytest.raises(AgentError) as wrong:
            await folded(client.subscribe(over.id))
        assert wrong.value.name == "UnsupportedOperation"
