"""A gateway serves somebody else's agent in every version: what goes through, what its card says, what it cannot do."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import AgentError, Client, Gateway, Node
from dragoman.app.config import load
from dragoman.app.gateway import GATEWAY_URI
from dragoman.client.errors import Unreachable
from dragoman.wire.versions import DIALECTS
from tests.app.commands import Ran, process
from tests.client.scripted import Exchange, card, serving
from tests.suite.agents import agents

Run = Callable[..., Ran]
LOOPBACK = {"node.port": 0, "node.drain_seconds": 0.0}


class Gate(NamedTuple):
    node: Node
    gateway: Gateway

    def client(self, **how: Any) -> Client:
        return Client(self.gateway.url, **how)


@asynccontextmanager
async def gate(agent: str = "clerk", **behind: Any) -> AsyncIterator[Gate]:
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(Node(agents(), load(environ={}, flags=LOOPBACK)))
        gateway = Gateway(f"{node.url}/agents/{agent}", port=0, **behind)
        yield Gate(node, await stack.enter_async_context(gateway))


async def test_the_card_is_the_agents_at_our_address_and_says_what_is_off() -> None:
    async with gate(dialect="0.1") as it, it.client() as client:
        said = await client.card()
    assert (said.name, said.description) == ("clerk", "Does as it is told.")
    assert all(one.url.startswith(it.gateway.url) for one in said.supported_interfaces)
    [about] = [one.params for one in said.capabilities.extensions if one.uri == GATEWAY_URI]
    assert about is not None
    assert (about["version"], about["binding"], about["off"]) == ("0.1", "JSONRPC", ["list"])
    assert "artifact ids" in about["lost"]
    assert said.signatures == ()


@pytest.mark.parametrize(
    ("binding", "version"), [("JSONRPC", "0.3"), ("HTTP+JSON", "0.3"), ("JSONRPC", "0.1")]
)
async def test_what_the_version_behind_cannot_do_is_refused_and_said(binding: str, version: str) -> None:
    async with gate(dialect=version, binding=binding) as it, it.client() as client:
        with pytest.raises(AgentError, match="has no way to list") as refused:
            await client.list()
    assert refused.value.name == "UnsupportedOperation"


@pytest.mark.parametrize(("binding", "version"), list(DIALECTS))
async def test_a_stream_is_resumed_by_its_cursor_through_a_gateway(binding: str, version: str) -> None:
    """The ids are the agent's own places in its log, whatever version brought them."""
    async with gate() as it, it.client(dialect=version, binding=binding) as client:
        heard = [logged async for logged in client.stream("chunks a b c d")]
        task = heard[0].event.task.id  # type: ignore[union-attr]
        at = heard[2].seq
        assert at > 0
        rest = [logged async for logged in client.subscribe(task, after=at)]
    assert [one.seq for one in rest[1:]] == [one.seq for one in heard[3:]]


async def test_tasks_keep_the_names_that_callers_of_0_1_give_them() -> None:
    """The agent behind gives ids of its own and never hears the name.

    Shows: C6
    """
    async with gate() as it, it.client(dialect="0.1") as client:
        asked = await client.send("ask who", task_id="mine")
        assert (asked.id, asked.state.word) == ("mine", "input-required")  # type: ignore[union-attr]
        told = await client.send("me", task_id="mine")
        assert (told.id, told.text) == ("mine", "me")  # type: ignore[union-attr]
        assert (await client.get("mine")).id == "mine"
        [behind] = (await Client(it.node.peers["clerk"]).list()).tasks
        assert behind.id != "mine"
        with pytest.raises(AgentError, match="TaskNotFound"):
            await client.get("other")


async def test_an_agent_that_goes_away_is_told_of_in_the_protocols_words() -> None:
    async with gate() as it, it.client() as client:
        assert (await client.send("echo hi")).text == "hi"
        await it.node.close()
        with pytest.raises(AgentError, match="the agent behind this gateway") as gone:
            await client.send("echo hi")
        assert (gone.value.name, gone.value.row.retryable) == ("Unavailable", True)


async def test_an_agent_that_breaks_the_protocol_is_told_of_as_such() -> None:
    async def rogue(exchange: Exchange) -> None:
        await exchange.answer(b'{"jsonrpc":"2.0","id":7,"result":{}}')

    async with (
        serving(rogue, card=card()) as peer,
        Gateway(peer.url, port=0) as gateway,
        Client(gateway.url) as client,
    ):
        with pytest.raises(AgentError, match="the agent behind this gateway") as wrong:
            await client.get("t")
        assert wrong.value.name == "InvalidAgentResponse"


async def test_a_gateway_to_nobody_does_not_open() -> None:
    with pytest.raises(Unreachable):
        async with Gateway("http://127.0.0.1:1", port=0):
            pass


# On the command line.


def test_a_gateway_is_one_command(home: Path, run: Run, url: str) -> None:
    behind = ("--dialect", "0.3", "--binding", "rest")
    with process(home, "gateway", f"{url}/echo", "--port", "0", *behind) as started:
        where = started.until("listening ").removeprefix("listening ")
        for words in ((), ("--dialect", "0.1"), ("--dialect", "0.2", "--stream")):
            said = run("send", where, "hello", "-q", *words)
            assert (said.code, said.out) == (0, "hello\n")
        assert started.end(signal.SIGTERM).code == 0


def test_a_version_that_is_not_spoken_is_refused_with_those_that_are(run: Run, url: str) -> None:
    ran = run("send", f"{url}/echo", "x", "--dialect", "0.9")
    assert ran.code == 2
    assert "1.0, 0.3, 0.2, 0.1" in " ".join(ran.err.split())
    ran = run("send", f"{url}/echo", "x", "--binding", "smoke")
    assert (ran.code, "neither jsonrpc nor rest" in " ".join(ran.err.split())) == (2, True)


@pytest.mark.parametrize("words", [("--dialect", "0.2"), ("--dialect", "0.3.0", "--binding", "HTTP+JSON")])
def test_any_version_can_be_insisted_on(run: Run, url: str, words: tuple[str, ...]) -> None:
    """Shows: S0-130"""
    ran = run("send", f"{url}/echo", "hello", *words, "-o", "json")
    assert json.loads(ran.out)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_card_is_checked_and_its_interfaces_are_asked(run: Run, url: str) -> None:
    ran = run("card", "check", f"{url}/echo", "-o", "json")
    assert ran.code == 0
    found = ran.value["findings"]
    assert [one["severity"] for one in found].count("note") == 4
    assert all(one["message"].endswith(" answers.") for one in found if one["severity"] == "note")
    text = run("card", "check", f"{url}/echo", "--no-calls")
    assert text.out.splitlines()[-1] == "Result: 0 errors, 1 warnings"
