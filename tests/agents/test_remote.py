"""A remote agent as one of ours: whatever becomes of us in the middle, the work there is done once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Client, Message, Node, Part, RemoteAgent, Role, State, Task, Turn
from dragoman.app.config import load
from dragoman.app.remote import slug
from dragoman.client.errors import Unreachable
from dragoman.work import executor
from tests.suite.agents import agents

DIALECTS = [
    ("1.0", "JSONRPC"),
    ("1.0", "HTTP+JSON"),
    ("0.3", "JSONRPC"),
    ("0.3", "HTTP+JSON"),
    ("0.1", "JSONRPC"),
]


def config(folder: Path, name: str, port: int = 0) -> Any:
    store = f"sqlite:{folder / name}.db"
    return load(environ={}, flags={"node.port": port, "node.drain_seconds": 0.0, "store.url": store})


class There:
    """The agent elsewhere. It counts how often it is asked to work, and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.go_on = asyncio.Event()
        self.is_at_work = asyncio.Event()

    async def work(self, turn: Turn) -> None:
        self.begun += 1
        try:
            async with turn.stream("report") as out:
                await out.write("one ")
                await out.write("two ")
                self.is_at_work.set()
                await self.go_on.wait()
                if turn.text == "ask":
                    answer = await turn.ask("which?")
                    await out.write(f"{answer.text} ")
                await out.write("three")
            self.ended.append("completed")
        except asyncio.CancelledError:
            self.ended.append("canceled")
            raise


@asynccontextmanager
async def hub(url: str, folder: Path, dialect: str, binding: str) -> AsyncIterator[Client]:
    """A node of ours with the remote agent as its own; closing it stops whatever turn is under way."""
    async with AsyncExitStack() as stack:
        found = await RemoteAgent.found(url, name="theirs", dialect=dialect, binding=binding)
        stack.push_async_callback(found.aclose)
        node = await stack.enter_async_context(Node([found], config(folder, "hub")))
        yield await stack.enter_async_context(Client(node.url))


async def seen(client: Client, task_id: str, *texts: str) -> Task:
    """The task, once its artifact holds all of these."""
    async with asyncio.timeout(10):
        while True:
            task = await client.get(task_id)
            if all(text in task.text for text in texts):
                return task
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("dialect", "binding"), DIALECTS)
async def test_a_task_is_taken_up_after_a_restart_and_the_work_is_done_once(
    dialect: str, binding: str, tmp_path: Path
) -> None:
    there = There()
    async with Node([Agent("there", there.work)], config(tmp_path, "there")) as node:
        async with hub(node.url, tmp_path, dialect, binding) as client:
            begun = await client.send("go", wait=False)
            assert isinstance(begun, Task)
            await there.is_at_work.wait()
            await seen(client, begun.id, "one two ")
        there.go_on.set()
        async with hub(node.url, tmp_path, dialect, binding) as client:
            heard = [logged async for logged in client.subscribe(begun.id, after=0)]
            task = await client.get(begun.id)
    assert (task.state.word, task.text) == ("completed", "one two three")
    assert there.begun == 1
    # The log of ours is whole: its places follow each other, and what is folded from it is the truth.
    places = [logged.seq for logged in heard]
    assert places == sorted(set(places))


@pytest.mark.parametrize(("dialect", "binding"), DIALECTS)
async def test_a_question_there_is_a_question_here_and_outlives_a_restart(
    dialect: str, binding: str, tmp_path: Path
) -> None:
    there = There()
    there.go_on.set()
    async with Node([Agent("there", there.work)], config(tmp_path, "there")) as node:
        async with hub(node.url, tmp_path, dialect, binding) as client:
            asked = await client.send("ask")
            assert isinstance(asked, Task) and asked.status.message is not None
            assert (asked.state.word, asked.status.message.text) == ("input-required", "which?")
        async with hub(node.url, tmp_path, dialect, binding) as client:
            told = await client.send("blue", task_id=asked.id)
    assert isinstance(told, Task)
    assert (told.id, told.state.word, told.text) == (asked.id, "completed", "one two blue three")


async def test_a_task_that_is_canceled_here_is_canceled_there(tmp_path: Path) -> None:
    there = There()
    async with (
        Node([Agent("there", there.work)], config(tmp_path, "there")) as node,
        hub(node.url, tmp_path, "1.0", "JSONRPC") as client,
    ):
        begun = await client.send("go", wait=False)
        assert isinstance(begun, Task)
        await there.is_at_work.wait()
        await seen(client, begun.id, "one two ")
        assert (await client.cancel(begun.id)).state.word == "canceled"
        async with asyncio.timeout(10):
            while there.ended != ["canceled"]:
                await asyncio.sleep(0.01)


async def test_a_cancel_is_asked_for_again_until_the_agent_there_has_heard_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "RETRY_SECONDS", 0.05)
    there = There()
    node = Node([Agent("there", there.work)], config(tmp_path, "there"))
    await node.open()
    await node.listen()
    port = int(node.url.rpartition(":")[2])
    async with hub(node.url, tmp_path, "1.0", "JSONRPC") as client:
        begun = await client.send("go", wait=False)
        assert isinstance(begun, Task)
        await there.is_at_work.wait()
        await seen(client, begun.id, "one two ")
        await node.close()
        # It is canceled here at once, though there is nobody to tell.
        assert (await client.cancel(begun.id)).state.word == "canceled"
        async with (
            Node([Agent("there", there.work)], config(tmp_path, "there", port)) as again,
            Client(again.peers["there"]) as direct,
            asyncio.timeout(20),
        ):
            while not (await direct.list(state=State.CANCELED)).tasks:
                await asyncio.sleep(0.01)


async def test_an_agent_is_named_and_described_as_its_card_says() -> None:
    async with (
        Node(agents(), load(environ={}, flags={"node.port": 0})) as node,
        Client(f"{node.url}/agents/clerk") as direct,
    ):
        found = await RemoteAgent.found(f"{node.url}/agents/clerk")
        try:
            theirs = await direct.card()
            ours = found.card(theirs.supported_interfaces)
            assert (found.name, ours.description, ours.skills) == ("clerk", theirs.description, theirs.skills)
            assert ours.default_input_modes == theirs.default_input_modes
        finally:
            await found.aclose()
    assert [slug(name) for name in ("KYC Check!", "ünï", "a_b", "")] == ["kyc-check", "n", "a-b", "agent"]


async def test_an_agent_that_is_not_there_is_none() -> None:
    with pytest.raises(Unreachable):
        await RemoteAgent.found("http://127.0.0.1:1")


async def test_an_agent_that_refuses_fails_the_task_with_its_reason() -> None:
    async def off(turn: Turn) -> None:
        raise AssertionError("never asked")

    flags = {"node.port": 0, "node.drain_seconds": 0.0}
    async with Node([Agent("strict", off, input_modes=["image/png"])], load(environ={}, flags=flags)) as node:
        found = await RemoteAgent.found(node.url)
        # The card may have changed since it was read: then it is the agent there that refuses.
        found.conduct = found.conduct.__class__(found.name, answers="either")
        async with Node([found], load(environ={}, flags=flags)) as ours, Client(ours.url) as client:
            task = await client.send(Message("m", Role.USER, (Part(text="x", media_type="text/plain"),)))
        await found.aclose()
    assert isinstance(task, Task) and task.status.message is not None
    assert task.state.word == "failed"
    assert task.status.message.text.startswith("The agent behind this one refused: ")
    assert task.metadata == {"reason": "CONTENT_TYPE_NOT_SUPPORTED"}
