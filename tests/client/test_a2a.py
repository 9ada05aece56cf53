"""The thin client in the words of agent-relay: what it sends, what it takes for the answer, and how it fails."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

import dragoman
import dragoman.a2a
from dragoman import A2AClient, A2AFailed
from dragoman.a2a import TIMEOUT_MS
from dragoman.client import TimedOut
from tests.client.scripted import Exchange, reply, serving

# A card as that document prints it: no version, one address.
CARD = {
    "name": "data-processor",
    "description": "Processes data",
    "url": "$URL/rpc",
    "version": "1.0.0",
    "capabilities": {"streaming": True},
    "skills": [{"id": "s", "name": "S", "description": "does"}],
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
}


def task(state: str = "completed", **more: Any) -> dict[str, Any]:
    return {"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": state}, **more}


def text(*words: str) -> dict[str, Any]:
    return {"artifactId": "a", "parts": [{"kind": "text", "text": word} for word in words]}


class Remote:
    """An agent of 0.2 that answers sends with a task and streams what it is given."""

    def __init__(self, answer: dict[str, Any], *items: dict[str, Any]) -> None:
        self.answer, self.items = answer, items

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.method == "message/stream":
            await exchange.stream()
            for item in self.items:
                await exchange.frame(reply(exchange.number, json.dumps(item).encode()))
            await exchange.end()
        else:
            await exchange.result(json.dumps(self.answer).encode())


def test_it_is_a_module_of_its_own_and_at_the_root() -> None:
    """Shows: S0-070, S0-111"""
    assert dragoman.A2AClient is dragoman.a2a.A2AClient
    assert A2AClient("http://x").timeout_ms == TIMEOUT_MS == 60_000


async def test_a_message_is_sent_as_it_is_printed() -> None:
    """Shows: S0-010, S0-015, S0-019, S0-020, S0-024, C3"""
    remote = Remote(task(artifacts=[text("rows")]))
    async with (
        serving(remote, card=CARD) as peer,
        A2AClient(peer.url, headers={"Authorization": "Bearer k"}) as client,
    ):
        result = await client.send_message("Pull the dataset", "chat-7")
        await client.send_message("again")
    [*cards, first, second] = peer.asked
    assert all(one.headers["authorization"] == "Bearer k" for one in peer.asked) and cards
    asked = first.asked
    assert asked.keys() == {"jsonrpc", "id", "method", "params"}
    assert (asked["jsonrpc"], asked["method"]) == ("2.0", "message/send")
    message = asked["params"]["message"]
    assert asked["params"].keys() == {"message"}
    assert (message["role"], message["contextId"]) == ("user", "chat-7")
    [part] = message["parts"]
    # Both marks, because the card does not say which of the two its agent looks for.
    assert part == {"type": "text", "kind": "text", "text": "Pull the dataset"}
    ids = [
        asked["id"],
        message["messageId"],
        second.asked["id"],
        second.asked["params"]["message"]["messageId"],
    ]
    assert len({uuid.UUID(one) for one in ids}) == 4
    assert "contextId" not in second.asked["params"]["message"]
    # Afterwards what the agent's own parts show.
    assert second.asked["params"]["message"]["parts"] == [{"kind": "text", "text": "again"}]
    assert (result.task_id, result.status, result.text) == ("t-1", "completed", "rows")
    assert result.raw == task(artifacts=[text("rows")])


async def test_the_card_is_read_in_the_documents_words() -> None:
    """Shows: S0-011, S0-012, S0-014"""
    async with serving(Remote(task()), card=CARD) as peer, A2AClient(peer.url) as client:
        card = await client.get_agent_card()
    assert (card.name, card.description, card.version) == ("data-processor", "Processes data", "1.0.0")
    assert card.capabilities == {"streaming": True, "pushNotifications": False}
    assert [(skill.id, skill.tags) for skill in card.skills] == [("s", ())]
    assert (card.default_input_modes, card.default_output_modes) == (("text",), ("text",))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (task(artifacts=[text("first", "second")]), "first"),
        (
            task(
                artifacts=[
                    {"artifactId": "a", "parts": [{"kind": "data", "data": {}}, *text("b", "c")["parts"]]}
                ]
            ),
            "bc",
        ),
        (
            task(
                status={
                    "state": "completed",
                    "message": {
                        "kind": "message",
                        "messageId": "m",
                        "role": "agent",
                        "parts": [{"kind": "text", "text": "words"}],
                    },
                }
            ),
            "words",
        ),
        (
            {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "hi"}]},
            "hi",
        ),
        (task(), ""),
    ],
)
async def test_the_text_is_that_of_the_first_part_else_what_there_is(
    answer: dict[str, Any], said: str
) -> None:
    """Shows: S0-021, S0-026"""
    async with serving(Remote(answer), card=CARD) as peer, A2AClient(peer.url) as client:
        assert (await client.send_message("go")).text == said


@pytest.mark.parametrize(
    ("state", "status"), [("failed", "failed"), ("rejected", "failed"), ("canceled", "canceled")]
)
async def test_how_a_task_ended_is_told(state: str, status: str) -> None:
    """Shows: S0-013, S0-022"""
    async with serving(Remote(task(state)), card=CARD) as peer, A2AClient(peer.url) as client:
        result = await client.send_message("go")
        assert (result.status, result.state) == (status, state)


def status(state: str, final: bool = False) -> dict[str, Any]:
    return {
        "kind": "status-update",
        "taskId": "t-1",
        "contextId": "c-1",
        "status": {"state": state},
        "final": final,
    }


def chunk(word: str) -> dict[str, Any]:
    return {
        "kind": "artifact-update",
        "taskId": "t-1",
        "contextId": "c-1",
        "append": True,
        "artifact": text(word),
    }


async def test_a_stream_is_heard_in_chunks_as_they_come() -> None:
    """Shows: S0-016"""
    remote = Remote(task(), task("working"), chunk("a"), chunk("b"), chunk("c"), status("completed", True))
    async with serving(remote, card=CARD) as peer, A2AClient(peer.url) as client:
        assert [word async for word in client.stream_message("go", "ctx")] == ["a", "b", "c"]
        assert client.task_id == "t-1"
        [asked] = [one for one in peer.asked if one.method == "message/stream"]
        assert asked.asked["params"]["message"]["contextId"] == "ctx"


async def test_an_agent_that_does_not_stream_is_asked_to_wait() -> None:
    """Shows: S0-017"""
    card = {**CARD, "capabilities": {"streaming": False}}
    async with (
        serving(Remote(task(artifacts=[text("all")])), card=card) as peer,
        A2AClient(peer.url) as client,
    ):
        assert [word async for word in client.stream_message("go")] == ["all"]
        assert (peer.count("message/send"), peer.count("message/stream")) == (1, 0)


async def test_a_failure_told_in_a_stream_is_raised_and_nothing_is_sent_again() -> None:
    failed = status("failed", True)
    failed["status"]["message"] = {
        "kind": "message",
        "messageId": "m",
        "role": "agent",
        "parts": [{"kind": "text", "text": "no disk"}],
    }
    ended = task("failed", status=failed["status"])
    async with (
        serving(Remote(ended, task("working"), chunk("a"), failed), card=CARD) as peer,
        A2AClient(peer.url) as client,
    ):
        words = []
        with pytest.raises(A2AFailed, match="no disk"):
            async for word in client.stream_message("go"):
                words.append(word)  # noqa: PERF401 (what came before it raised)
        assert words == ["a"]
        assert peer.count("message/send") == 0


async def test_a_task_is_canceled_by_its_id() -> None:
    """Shows: S0-018"""
    async with serving(Remote(task("canceled")), card=CARD) as peer, A2AClient(peer.url) as client:
        await client.cancel_task("t-1")
        assert peer.asked[-1].asked["params"] == {"id": "t-1"}
        assert peer.asked[-1].method == "tasks/cancel"


async def test_an_agent_that_never_answers_is_not_waited_for_for_ever() -> None:
    """Shows: S0-023"""

    async def silent(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async with serving(silent, card=CARD) as peer, A2AClient(peer.url, timeout_ms=50) as client:
        with pytest.raises(TimedOut):
            await client.send_message("go")


async def test_an_agent_of_0_1_is_found_out_and_remembered() -> None:
    """Shows: C29"""

    async def elder(exchange: Exchange) -> None:
        if exchange.method != "tasks/send":
            await exchange.error(-32601)
            return
        said = {
            "id": exchange.asked["params"]["id"],
            "status": {"state": "completed"},
            "artifacts": [{"parts": [{"type": "text", "text": "old"}]}],
        }
        await exchange.result(json.dumps(said).encode())

    async with serving(elder, card=CARD) as peer, A2AClient(peer.url) as client:
        assert (await client.send_message("go")).text == "old"
        assert (await client.send_message("go")).text == "old"
    assert [one.method for one in peer.asked if one.body] == ["message/send", "tasks/send", "tasks/send"]
    assert peer.asked[-1].asked["params"]["message"]["parts"] == [{"type": "text", "text": "go"}]
