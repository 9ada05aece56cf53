"""What callers of a local agent get: every operation, asked through the node's own peer. Ours, by A2A 1.0's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Agent, Turn
from dragoman.app.config import Config, StoreConfig
from dragoman.model.agent import IDEMPOTENCY_URI
from dragoman.model.card import Extension
from dragoman.model.errors import AgentError
from dragoman.model.events import ArtifactChanged, Logged, StatusChanged, TaskCreated
from dragoman.model.operations.a2a import Cancel, Configuration, Get, List, Page, Send, Subscribe
from dragoman.model.peer import ANYONE, Caller, Peer
from dragoman.model.task import Message, Part, Role, State, Task
from dragoman.testing import local_node
from dragoman.testing.clock import run
from dragoman.testing.faults import Cut, FaultyPeer

ANN, BOB = Caller("ann"), Caller("bob")
NOW = Configuration(return_immediately=True)


class Gate:
    """An agent that goes on when the test says so."""

    def __init__(self) -> None:
        self.opened = asyncio.Semaphore(0)

    def open(self, times: int = 1) -> None:
        for _ in range(times):
            self.opened.release()

    async def take(self, turn: Turn) -> None:
        match turn.text.split():
            case ["echo", *words]:
                await turn.artifact(" ".join(words))
            case ["ask"]:
                await turn.artifact(f"got {(await turn.ask('which?')).text}")
            case ["chunks", count]:
                async with turn.stream() as out:
                    for n in range(int(count)):
                        await self.opened.acquire()
                        await out.write(f"{n},")
            case ["burst", count]:
                await self.opened.acquire()
                async with turn.stream() as out:
                    for n in range(int(count)):
                        await out.write(f"{n},")
                await self.opened.acquire()
            case ["fail"]:
                await turn.fail("no")
            case _:
                await self.opened.acquire()


class Place:
    """One node with the gated agent, and plain words to ask it with."""

    def __init__(self, peers: dict[str, Any], gate: Gate) -> None:
        self.peers = peers
        self.peer: Peer = peers["a"]
        self.gate = gate
        self._said = 0

    def message(self, text: str, **more: Any) -> Message:
        self._said += 1
        return Message(more.pop("name", f"m{self._said}"), Role.USER, (Part(text=text),), **more)

    async def send(
        self, text: str, configuration: Configuration = NOW, caller: Caller = ANN, **more: Any
    ) -> Any:
        return (await self.peer.call(caller, Send(self.message(text, **more), configuration))).value

    async def get(self, task_id: str, length: int | None = None, caller: Caller = ANN) -> Task:
        task = (await self.peer.call(caller, Get(task_id, length))).value
        assert isinstance(task, Task)
        return task

    async def until(self, task_id: str, state: State) -> Task:
        while (task := await self.get(task_id)).state is not state:
            await asyncio.sleep(0)
        return task

    async def page(self, caller: Caller = ANN, **filters: Any) -> Page:
        page = (await self.peer.call(caller, List(**filters))).value
        assert isinstance(page, Page)
        return page

    def watch(self, request: Any, after: int | None = None, caller: Caller = ANN) -> Any:
        return self.peer.watch(caller, request, after)

    async def refused(self, name: str, request: Any, caller: Caller = ANN) -> AgentError:
        with pytest.raises(AgentError) as wrong:
            await self.peer.call(caller, request)
        assert wrong.value.name == name
        return wrong.value


@asynccontextmanager
async def place(config: Config | None = None, **rules: Any) -> AsyncIterator[Place]:
    gate = Gate()
    async with local_node(Agent("a", gate.take, **rules), Agent("b", gate.take), config=config) as node:
        yield Place(node.peers, gate)


async def all_of(stream: Any) -> list[Logged]:
    return [logged async for run in stream for logged in run]


def texts(seen: Sequence[Logged]) -> list[str]:
    """A stream in short: states by their words, artifacts by their text, the task as `task`."""
    short = []
    for logged in seen:
        match logged.event:
            case TaskCreated():
                short.append("task")
            case StatusChanged(status_update=update):
                short.append(update.status.state.word)
            case ArtifactChanged(artifact_update=update):
                short.append(update.artifact.text)
            case other:
                short.append(type(other).__name__)
    return short


# Send.


async def test_a_send_waits_until_the_task_is_over():
    async with place() as here:
        task = await here.send("echo hello", Configuration())
        assert (task.state, task.text) == (State.COMPLETED, "hello")


async def test_a_send_waits_until_the_task_asks():
    """Shows: S4-012"""
    async with place() as here:
        assert (await here.send("ask", Configuration())).state is State.INPUT_REQUIRED


async def test_a_send_that_returns_immediately_does_not_wait():
    async with place() as here:
        task = await here.send("wait")
        assert task.state in (State.SUBMITTED, State.WORKING)
        here.gate.open()
        await here.until(task.id, State.COMPLETED)


async def test_an_answer_waits_for_what_comes_of_it():
    """Shows: S4-013"""
    async with place() as here:
        asked = await here.send("ask", Configuration())
        task = await here.send("this", Configuration(), task_id=asked.id)
        assert (task.id, task.state, task.text) == (asked.id, State.COMPLETED, "got this")


async def test_a_send_to_a_working_task_waits_for_that_task():
    async with place() as here:
        task = await here.send("wait")
        more = asyncio.create_task(here.send("more", Configuration(), task_id=task.id))
        await asyncio.sleep(0)
        assert not more.done()
        here.gate.open()
        assert (await more).state is State.COMPLETED
        assert [message.text for message in (await more).history] == ["wait", "more"]


async def test_a_send_to_a_task_that_is_over_is_refused():
    """Shows: S4-019"""
    async with place() as here:
        task = await here.send("echo x", Configuration())
        await here.refused("UnsupportedOperation", Send(here.message("more", task_id=task.id)))


@pytest.mark.parametrize(("length", "left"), [(None, 3), (0, 0), (1, 1), (2, 2), (9, 3)])
async def test_history_is_cut_to_the_newest_messages_asked_for(length: int | None, left: int):
    async with place() as here:
        asked = await here.send("ask", Configuration())
        task = await here.send("this", Configuration(history_length=length), task_id=asked.id)
        whole = ["ask", "which?", "this"]
        assert [message.text for message in task.history] == whole[3 - left :]
        assert (await here.get(task.id, length)).history == task.history
        [listed] = (await here.page(history_length=length)).tasks
        assert listed.history == task.history


# Context.


async def test_a_context_is_made_when_none_is_given_and_kept_when_one_is():
    async with place() as here:
        made = await here.send("echo x")
        assert made.context_id
        given = await here.send("echo x", context_id="ours")
        assert given.context_id == "ours"
        assert (await here.get(given.id)).history[0].context_id == "ours"


async def test_a_message_to_a_task_needs_no_context_and_may_not_name_another():
    async with place() as here:
        task = await here.send("wait", context_id="c1")
        await here.send("more", task_id=task.id)
        await here.send("more", task_id=task.id, context_id="c1")
        wrong = await here.refused(
            "InvalidParams", Send(here.message("more", task_id=task.id, context_id="c2"), NOW)
        )
        assert wrong.at == "message.contextId"
        here.gate.open()


# Whose task it is.


@pytest.mark.parametrize(
    "caller", [BOB, Caller("ann", "t2"), ANYONE], ids=["another owner", "another tenant", "anyone"]
)
async def test_a_foreign_task_is_answered_as_if_it_were_not_there(caller: Caller):
    async with place() as here:
        task = await here.send("ask", Configuration())
        for request in (Get(task.id), Cancel(task.id), Send(here.message("x", task_id=task.id))):
            foreign = await here.refused("TaskNotFound", request, caller)
            gone = type(request)(**{**as_members(request), **renamed(request, "f" * len(task.id))})
            missing = await here.refused("TaskNotFound", gone, caller)
            assert str(foreign).replace(task.id, "?") == str(missing).replace("f" * len(task.id), "?")
            assert (foreign.at, foreign.metadata) == (missing.at, missing.metadata)
        with pytest.raises(AgentError, match="TaskNotFound"):
            await all_of(here.watch(Subscribe(task.id), caller=caller))
        assert (await here.page(caller)).tasks == ()
        assert (await here.get(task.id)).state is State.INPUT_REQUIRED


def as_members(request: Any) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


def renamed(request: Any, task_id: str) -> dict[str, Any]:
    if isinstance(request, Send):
        return {"message": Message("m", Role.USER, (Part(text="x"),), task_id=task_id)}
    return {"id": task_id}


async def test_another_agents_task_is_not_there():
    async with place() as here:
        task = await here.send("ask", Configuration())
        with pytest.raises(AgentError, match="TaskNotFound"):
            await here.peers["b"].call(ANN, Get(task.id))
        assert (await here.peers["b"].call(ANN, List())).value.tasks == ()


async def test_the_log_of_a_turn_cannot_be_asked_for():
    async with place() as here:
        task = await here.send("ask", Configuration())
        await here.refused("TaskNotFound", Get(f"turn:{task.id}:1"))


# Sending again.


async def test_the_same_key_and_message_give_the_same_task():
    async with place() as here:
        caller = Caller("ann", key="k1")
        message = here.message("echo x")
        first = (await here.peer.call(caller, Send(message, Configuration()))).value
        again = (await here.peer.call(caller, Send(message, Configuration()))).value
        assert again == first
        assert (await here.page()).total_size == 1


async def test_the_same_key_with_another_message_is_a_conflict():
    async with place() as here:
        caller = Caller("ann", key="k1")
        await here.peer.call(caller, Send(here.message("echo x"), Configuration()))
        await here.refused("IdempotencyConflict", Send(here.message("echo y"), Configuration()), caller)
        assert (await here.page()).total_size == 1


async def test_a_key_may_ride_in_the_message():
    async with place() as here:
        message = here.message("echo x", metadata={IDEMPOTENCY_URI: "k1"})
        first, again = [(await here.peer.call(ANN, Send(message))).value for _ in range(2)]
        assert first.id == again.id


async def test_a_key_is_its_owners_and_its_agents_alone():
    async with place() as here:
        message = here.message("echo x")
        ids = {
            (await peer.call(caller, Send(message))).value.id
            for caller in (Caller("ann", key="k"), Caller("bob", key="k"), Caller("ann", "t2", key="k"))
            for peer in here.peers.values()
        }
        assert len(ids) == 6


async def test_without_a_key_the_same_message_opens_another_task():
    async with place() as here:
        message = here.message("echo x")
        ids = {(await here.peer.call(ANN, Send(message))).value.id for _ in range(2)}
        assert len(ids) == 2


async def test_an_answer_sent_twice_with_a_key_is_said_once():
    async with place() as here:
        asked = await here.send("ask", Configuration())
        caller = Caller("ann", key="k2")
        answer = Send(here.message("this", task_id=asked.id), Configuration())
        first = (await here.peer.call(caller, answer)).value
        again = (await here.peer.call(caller, answer)).value
        assert again == first
        assert [message.text for message in again.history] == ["ask", "which?", "this"]


async def test_an_answer_sent_twice_with_a_key_but_in_other_words_is_a_conflict():
    async with place() as here:
        asked = await here.send("ask", Configuration())
        caller = Caller("ann", key="k2")
        await here.peer.call(caller, Send(here.message("this", task_id=asked.id, name="m")))
        other = here.message("that", task_id=asked.id, name="m")
        await here.refused("IdempotencyConflict", Send(other), caller)


@pytest.mark.parametrize("key", [5, None, ["k"], "k" * 257])
async def test_a_key_in_the_message_that_is_none_is_refused_rather_than_ignored(key: Any):
    async with place() as here:
        await here.refused("InvalidParams", Send(here.message("echo x", metadata={IDEMPOTENCY_URI: key})))


async def test_many_sends_of_one_key_at_once_open_one_task():
    async with place() as here:
        message, caller = here.message("echo x"), Caller("ann", key="k")
        answers = await asyncio.gather(*(here.peer.call(caller, Send(message)) for _ in range(20)))
        assert len({answer.value.id for answer in answers}) == 1


# What may be sent.


@pytest.mark.parametrize("name", ["name", "context_id"])
async def test_an_id_of_a_callers_has_a_bound(name: str):
    """It is kept with each event of the task: a long one would be multiplied."""
    async with place() as here:
        assert (await here.send("echo x", Configuration(), **{name: "i" * 512})).state is State.COMPLETED
        wrong = await here.refused("InvalidParams", Send(here.message("echo x", **{name: "i" * 513})))
        assert wrong.at == ("message.messageId" if name == "name" else "message.contextId")


async def test_a_refusal_does_not_send_all_back_that_was_said():
    async with place() as here:
        wrong = await here.refused("TaskNotFound", Get("x" * 1_000_000))
        assert len(wrong.message) < 2000


async def test_a_part_of_a_kind_the_agent_does_not_take_is_refused_and_named():
    async with place() as here:
        part = Part(raw=b"x", media_type="image/png")
        message = Message("m", Role.USER, (Part(text="x"), part))
        wrong = await here.refused("ContentTypeNotSupported", Send(message))
        assert wrong.at == "message.parts[1].mediaType"


async def test_a_required_extension_must_be_named_by_the_caller():
    async with place(extensions=[Extension("urn:x", required=True)]) as here:
        wrong = await here.refused("ExtensionSupportRequired", Send(here.message("echo x")))
        assert wrong.metadata == {"extension": "urn:x"}
        assert await here.send("echo x", caller=Caller("ann", extensions=("urn:x",)))


async def test_a_full_store_says_so_and_when_to_try_again():
    """Shows: S2-012, F16"""
    async with place(Config(store=StoreConfig(tasks_max=2))) as here:
        sent = [await here.send("wait") for _ in range(2)]
        wrong = await here.refused("StoreFull", Send(here.message("wait")))
        assert wrong.retry_seconds
        await here.peer.call(ANN, Cancel(sent[0].id))
        assert await here.send("echo x")
        here.gate.open(2)


# Cancel.


async def test_cancel_answers_with_the_canceled_task_and_may_be_repeated():
    """Shows: S4-017, S4-022"""
    async with place() as here:
        sent = await here.send("wait")
        await here.until(sent.id, State.WORKING)
        first = (await here.peer.call(ANN, Cancel(sent.id))).value
        assert first.state is State.CANCELED
        assert (await here.peer.call(ANN, Cancel(sent.id))).value == first


@pytest.mark.parametrize("text", ["echo x", "fail"])
async def test_cancel_of_a_task_that_is_over_is_refused_and_changes_nothing(text: str):
    """Shows: S4-022"""
    async with place() as here:
        task = await here.send(text, Configuration())
        await here.refused("TaskNotCancelable", Cancel(task.id))
        assert await here.get(task.id) == task


async def test_cancel_ends_a_send_that_waits():
    async with place() as here:
        waiting = asyncio.create_task(here.send("wait", Configuration()))
        while not (page := await here.page(status=State.WORKING)).tasks:
            await asyncio.sleep(0)
        await here.peer.call(ANN, Cancel(page.tasks[0].id))
        assert (await waiting).state is State.CANCELED


# List.


async def test_a_page_is_newest_first_without_artifacts_unless_asked():
    async with place() as here:
        ids = [(await here.send(f"echo {n}", Configuration())).id for n in range(3)]
        page = await here.page()
        assert [task.id for task in page.tasks] == ids[::-1]
        assert (page.total_size, page.page_size, page.next_page_token) == (3, 50, "")
        assert all(task.artifacts == () for task in page.tasks)
        assert [task.text for task in (await here.page(include_artifacts=True)).tasks] == ["2", "1", "0"]


async def test_a_list_is_filtered_by_context_state_and_time():
    async with place() as here:
        one = await here.send("echo x", Configuration(), context_id="c1")
        two = await here.send("ask", Configuration(), context_id="c1")
        await here.send("echo x", Configuration(), context_id="c2")
        assert {task.id for task in (await here.page(context_id="c1")).tasks} == {one.id, two.id}
        assert [task.id for task in (await here.page(status=State.INPUT_REQUIRED)).tasks] == [two.id]
        assert (await here.page(context_id="c1", status=State.COMPLETED)).total_size == 1
        assert (await here.page(context_id="none")).tasks == ()
        assert (await here.page(status_timestamp_after="2000-01-01T00:00:00Z")).total_size == 3
        assert (await here.page(status_timestamp_after="2999-01-01T00:00:00+01:00")).total_size == 0


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00"])
async def test_a_time_that_is_none_is_refused(text: str):
    async with place() as here:
        await here.refused("InvalidParams", List(status_timestamp_after=text))


async def test_pages_hold_each_task_once_though_tasks_come_meanwhile():
    async with place() as here:
        ids = {(await here.send(f"echo {n}", Configuration())).id for n in range(10)}
        seen: list[str] = []
        token = ""
        while True:
            page = await here.page(page_size=3, page_token=token)
            seen += [task.id for task in page.tasks]
            await here.send("echo later", Configuration())
            if not (token := page.next_page_token):
                break
        assert len(seen) == len(set(seen))
        assert set(seen) == ids


async def test_a_list_goes_by_when_the_status_changed_and_not_by_chunks_or_further_messages():
    """What is listed after a time has a status of that time or later: A2A 1.0, 3.1.4."""
    async with place() as here:
        first = await here.send("chunks 2")
        await here.until(first.id, State.WORKING)
        await asyncio.sleep(0.01)
        second = await here.send("chunks 2")
        begun = await here.until(second.id, State.WORKING)
        here.gate.open()
        while not (await here.get(first.id)).artifacts:
            await asyncio.sleep(0)
        await here.send("more", task_id=first.id)
        assert [task.id for task in (await here.page()).tasks] == [second.id, first.id]
        since = await here.page(status_timestamp_after=begun.status.timestamp)
        assert [task.id for task in since.tasks] == [second.id]
        here.gate.open(3)


@pytest.mark.parametrize("token", ["x", "-1", "1e3", "９", "9" * 5000])
async def test_a_page_token_that_was_not_made_here_is_refused(token: str):
    async with place() as here:
        await here.refused("InvalidParams", List(page_token=token))


# Streams.


async def test_a_streamed_send_begins_with_the_task_and_ends_when_it_is_over():
    """Shows: S4-020"""
    async with place() as here:
        seen = await all_of(here.watch(Send(here.message("echo hello"))))
        assert texts(seen) == ["task", "working", "hello", "completed"]
        assert [logged.seq for logged in seen] == [1, 2, 3, 4]


async def test_a_streamed_send_ends_at_a_question_and_the_answer_streams_on():
    """Shows: S4-012, S4-013"""
    async with place() as here:
        seen = await all_of(here.watch(Send(here.message("ask"))))
        assert texts(seen) == ["task", "working", "input-required"]
        task_id = seen[0].event.task.id
        more = await all_of(here.watch(Send(here.message("this", task_id=task_id))))
        assert texts(more) == ["task", "got this", "completed"]
        assert more[0].event.task.state is State.WORKING
        assert [message.text for message in more[0].event.task.history] == ["ask", "which?", "this"]


async def test_a_subscription_stays_through_questions_to_the_end():
    """Shows: S4-020, S4-021"""
    async with place() as here:
        asked = await here.send("ask", Configuration())
        stream = here.watch(Subscribe(asked.id))
        assert texts(await anext(stream)) == ["task"]
        await here.send("this", task_id=asked.id)
        assert texts(await all_of(stream)) == ["working", "got this", "completed"]


async def test_what_callers_say_is_not_in_streams_and_ids_skip_it():
    async with place() as here:
        sent = await here.send("chunks 2")
        await here.until(sent.id, State.WORKING)
        stream = here.watch(Subscribe(sent.id))
        [first] = await anext(stream)
        await here.send("more", task_id=sent.id)
        here.gate.open(2)
        seen = await all_of(stream)
        assert texts(seen) == ["0,", "1,", "completed"]
        assert [logged.seq - first.seq for logged in seen] == [2, 3, 4]


async def test_a_subscription_without_a_cursor_begins_with_the_task_as_it_is_now():
    """Shows: F05"""
    async with place() as here:
        sent = await here.send("chunks 4")
        here.gate.open(2)
        while (await here.get(sent.id)).text != "0,1,":
            await asyncio.sleep(0)
        stream = here.watch(Subscribe(sent.id))
        [first] = await anext(stream)
        assert first.event.task.text == "0,1,"
        here.gate.open(2)
        assert texts(await all_of(stream)) == ["2,", "3,", "completed"]


async def test_a_subscription_with_any_cursor_misses_nothing_and_repeats_nothing():
    """Shows: F04"""
    async with place() as here:
        whole = asyncio.create_task(all_of(here.watch(Send(here.message("chunks 5", name="m0")))))
        here.gate.open(5)
        seen = await whole
        task_id = seen[0].event.task.id
        for cut in range(len(seen)):
            after = seen[cut].seq
            again = await all_of(here.watch(Subscribe(task_id), after))
            assert isinstance(again[0].event, TaskCreated)
            assert again[0].seq == after
            said = "".join(text for text in texts(seen[: cut + 1]) if text.endswith(","))
            assert again[0].event.task.text == said
            assert [one.data for one in again[1:]] == [one.data for one in seen[cut + 1 :]]
        assert [one.data for one in await all_of(here.watch(Subscribe(task_id), 0))] == [
            one.data for one in seen
        ]


async def test_a_cursor_of_the_future_or_the_past_of_time_is_refused():
    async with place() as here:
        sent = await here.send("echo x", Configuration())
        for after in (99, -1):
            with pytest.raises(AgentError, match="InvalidParams") as wrong:
                await all_of(here.watch(Subscribe(sent.id), after))
            assert wrong.value.at == "Last-Event-ID"


async def test_a_task_that_is_over_is_not_subscribed_to_but_its_rest_may_be_read():
    """Shows: S4-021, S4-040"""
    async with place() as here:
        task = await here.send("echo x", Configuration())
        with pytest.raises(AgentError, match="UnsupportedOperation"):
            await all_of(here.watch(Subscribe(task.id)))
        assert texts(await all_of(here.watch(Subscribe(task.id), 2))) == ["task", "x", "completed"]
        assert texts(await all_of(here.watch(Subscribe(task.id), 4))) == ["task"]


async def test_who_is_too_far_behind_gets_the_task_as_it_is_marked_as_a_gap():
    async with place() as here:
        sent = await here.send("burst 1500")
        here.gate.open()
        while not (await here.get(sent.id)).text.endswith("1499,"):
            await asyncio.sleep(0)
        stream = here.watch(Subscribe(sent.id), 3)
        [first] = await anext(stream)
        assert first.event.task.metadata == {"gap": True}
        assert first.event.task.text == "".join(f"{n}," for n in range(1500))
        assert first.seq == 1502
        here.gate.open()
        assert texts(await all_of(stream)) == ["completed"]


async def test_all_subscribers_see_the_same_and_one_that_leaves_disturbs_nobody():
    """Shows: F04"""
    async with place() as here:
        sent = await here.send("chunks 6")
        streams = [here.watch(Subscribe(sent.id), 0) for _ in range(8)]
        leaver = here.watch(Subscribe(sent.id))
        await anext(leaver)
        readers = [asyncio.create_task(all_of(stream)) for stream in streams]
        here.gate.open(3)
        await asyncio.sleep(0)
        await leaver.aclose()
        here.gate.open(3)
        seen = [[(one.seq, one.data) for one in await reader] for reader in readers]
        assert all(one == seen[0] for one in seen)
        assert len(seen[0]) == 1 + 1 + 6 + 1


async def test_a_reader_slower_than_the_writer_still_sees_everything_in_order():
    """Shows: F04"""
    async with place() as here:
        sent = await here.send("burst 600")
        stream = here.watch(Subscribe(sent.id), 0)
        got: list[Logged] = list(await anext(stream))
        here.gate.open(2)
        await here.until(sent.id, State.COMPLETED)
        async for run in stream:
            got += run
            await asyncio.sleep(0)
        assert texts(got)[-602:] == ["working", *(f"{n}," for n in range(600)), "completed"]
        assert [one.seq for one in got] == list(range(1, len(got) + 1))


async def test_a_stream_whose_task_made_room_for_another_does_not_end_as_if_all_had_been_said():
    async with place(Config(store=StoreConfig(tasks_max=1))) as here:
        stream = here.watch(Send(here.message("chunks 1")))
        assert texts(await anext(stream)) == ["task"]
        here.gate.open()
        while (await here.page()).tasks[0].state is not State.COMPLETED:
            await asyncio.sleep(0)
        await here.send("echo x", Configuration())
        with pytest.raises(AgentError, match="removed while it was followed"):
            await all_of(stream)


async def test_who_stops_watching_leaves_nobody_waiting_at_the_store():
    async with place() as here:
        asked = await here.send("ask", Configuration())
        for _ in range(50):
            stream = here.watch(Subscribe(asked.id))
            await anext(stream)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await stream.aclose()
        assert (await here.send("this", Configuration(), task_id=asked.id)).text == "got this"


async def test_an_agent_that_does_not_stream_refuses_to():
    async with place(streaming=False) as here:
        task = await here.send("ask", Configuration())
        for request in (Send(here.message("echo x")), Subscribe(task.id)):
            with pytest.raises(AgentError, match="UnsupportedOperation"):
                await all_of(here.watch(request))


async def test_operations_are_called_or_watched_as_the_table_says():
    async with place() as here:
        task = await here.send("ask", Configuration())
        await here.refused("InvalidRequest", Subscribe(task.id))
        for request in (Get(task.id), List(), Cancel(task.id)):
            with pytest.raises(AgentError, match="InvalidRequest"):
                await all_of(here.watch(request))
        assert (await here.get(task.id)).state is State.INPUT_REQUIRED


# What the memory store's bound means for callers.


async def test_at_its_bound_the_task_that_has_been_over_longest_makes_room():
    """Shows: S2-011, S2-012, S2-015"""
    async with place(Config(store=StoreConfig(tasks_max=3))) as here:
        asked = await here.send("ask", Configuration())
        first = await here.send("echo 1", Configuration())
        second = await here.send("echo 2", Configuration())
        third = await here.send("echo 3", Configuration())
        await here.refused("TaskNotFound", Get(first.id))
        for task in (asked, second, third):
            assert (await here.get(task.id)).id == task.id


async def test_many_callers_use_the_store_at_once():
    """Shows: S2-013"""
    async with place() as here:
        tasks = await asyncio.gather(
            *(here.send(f"echo {n}", Configuration(), Caller(f"owner{n % 5}")) for n in range(200))
        )
        assert [task.text for task in tasks] == [str(n) for n in range(200)]
        for n in range(5):
            assert (await here.page(Caller(f"owner{n}"), page_size=100)).total_size == 40


async def test_the_store_is_there_to_be_read_and_bounded_by_default():
    """Shows: S2-010, S2-014, S2-016, X5"""
    gate = Gate()
    async with local_node(Agent("a", gate.take)) as node:
        here = Place(node.peers, gate)
        task = await here.send("echo x", Configuration())
        row = node.store.row(task.id)
        assert row is not None
        assert (row.head.state, row.label.owner, row.label.agent) == (State.COMPLETED, "ann", "a")
        assert node.config.store.tasks_max == 1000
        assert node.config.store.retention_seconds == 30 * 24 * 3600


# The kit that makes faults.


async def test_a_call_that_failed_or_whose_answer_was_lost_is_safe_to_repeat_with_a_key():
    """Shows: F01"""
    async with place() as here:
        line = FaultyPeer(here.peer)
        line.fail(1)
        line.lose_reply(2)
        caller, request = Caller("ann", key="k"), Send(here.message("echo x"), Configuration())
        for _ in range(2):
            with pytest.raises(Cut):
                await line.call(caller, request)
        assert (await line.call(caller, request)).value.text == "x"
        assert line.calls == 3
        assert (await here.page()).total_size == 1


async def test_a_stream_that_breaks_after_any_run_goes_on_from_its_cursor():
    """Shows: F04"""
    async with place() as here:
        for runs in range(4):
            line = FaultyPeer(here.peer)
            line.cut_stream(1, runs)
            task_id, seen = "", []
            here.gate.open(3)
            with pytest.raises(Cut):
                async for run_of in line.watch(ANN, Send(here.message("chunks 3", name="m0"))):
                    seen += run_of
            if not seen:
                task_id = (await here.page()).tasks[0].id
                await here.until(task_id, State.COMPLETED)
                seen = await all_of(line.watch(ANN, Subscribe(task_id), 0))
            else:
                task_id = seen[0].event.task.id
                seen += (await all_of(line.watch(ANN, Subscribe(task_id), seen[-1].seq)))[1:]
            assert texts(seen) == ["task", "working", "0,", "1,", "2,", "completed"]


def test_on_turned_time_a_week_passes_at_once_and_waiting_for_nothing_is_noticed():
    async def week() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(7 * 24 * 3600)
        assert await asyncio.to_thread(lambda: 5) == 5
        return asyncio.get_running_loop().time() - began

    assert run(week(), seconds_max=1e6) == pytest.approx(7 * 24 * 3600)

    async def for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(TimeoutError):
        run(for_ever())


async def test_what_a_caller_says_is_said_by_a_user_in_a_bounded_number_of_parts() -> None:
    async with local_node(Agent("echo", _says_back)) as node:
        peer = node.peers["echo"]
        for message, at in (
            (Message("m1", Role.AGENT, (Part(text="I am you"),)), "message.role"),
            (Message("m2", Role.USER, (Part(text="x"),) * 1001), "message.parts"),
        ):
            with pytest.raises(AgentError) as refused:
                await peer.call(ANYONE, Send(message))
            assert (refused.value.name, refused.value.at) == ("InvalidParams", at)


async def _says_back(turn: Turn) -> str:
    return turn.text
