"""The client's own operations on the wire, and whose fault it is when an answer is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

import pytest

from dragoman.client import Client, Cut, Refused, TimedOut
from dragoman.model.errors import AgentError, Fault
from dragoman.model.events import Logged, MessageAdded, Replied, TaskCreated, encode
from dragoman.model.operations.a2a import Page, Request, Send
from dragoman.model.peer import Answer, Caller
from dragoman.model.task import Message, Part, Role, State, Task
from tests.client.scripted import ROOM, TASK, Exchange, card, folded, moved, opened, serving, task_bytes

DONE = folded([opened(), moved(State.WORKING), moved(State.COMPLETED)])
REPLY = Message("m-9", Role.AGENT, (Part(text="hi"),))


async def test_a_message_travels_as_the_protocol_spells_it() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.result(TaskCreated(DONE))

    interfaces = [
        {"url": "$URL/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0.1", "tenant": "a/B "}
    ]
    async with (
        serving(script, card=card(interfaces=interfaces)) as peer,
        Client(peer.url, headers={"X-Key": "s3"}, caller=Caller(extensions=("urn:a", "urn:b"))) as agent,
    ):
        answer = await agent.send(
            "grüße", context_id=ROOM, wait=False, history_length=2, key="k-1", metadata={"a": 1},
            accepted_output_modes=["text/plain"],
        )  # fmt: skip
        assert answer == DONE
        sent = peer.asked[-1]
        assert sent.path == "/rpc"
        wanted = {
            "a2a-version": "1.0",
            "content-type": "application/json",
            "idempotency-key": "k-1",
            "a2a-extensions": "urn:a, urn:b",
            "x-key": "s3",
        }
        assert {name: sent.headers[name] for name in wanted} == wanted
        assert sent.asked["jsonrpc"] == "2.0"
        assert sent.asked["method"] == "SendMessage"
        params = sent.asked["params"]
        message_id = params["message"].pop("messageId")
        assert len(message_id) == 36
        assert params == {
            "tenant": "a/B ",
            "message": {"role": "ROLE_USER", "parts": [{"text": "grüße"}], "contextId": ROOM},
            "configuration": {
                "acceptedOutputModes": ["text/plain"],
                "historyLength": 2,
                "returnImmediately": True,
            },
            "metadata": {"a": 1},
        }


async def test_each_send_has_a_key_of_its_own() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.result(Replied(REPLY))

    async with serving(script) as peer, Client(peer.url) as agent:
        assert await agent.send("a") == REPLY
        assert await agent.send("b") == REPLY
        await agent.call(Caller(), Send(REPLY))
        assert len({one.headers["idempotency-key"] for one in peer.asked[1:]}) == 3


async def test_tasks_are_read_listed_and_canceled() -> None:
    page = Page((DONE,), "next", 1, 5)

    async def script(exchange: Exchange) -> None:
        if exchange.method == "ListTasks":
            said = b'{"tasks":[%b],"nextPageToken":"next","pageSize":1,"totalSize":5}' % task_bytes(DONE)
            await exchange.result(said)
        else:
            await exchange.result(task_bytes(DONE))

    async with serving(script) as peer, Client(peer.url) as agent:
        assert await agent.get(TASK, history_length=0) == DONE
        assert await agent.cancel(TASK, metadata={"why": "x"}) == DONE
        listed = await agent.list(context_id=ROOM, state=State.COMPLETED, page_size=1, include_artifacts=True)
        assert listed == page
        assert [(one.method, one.asked["params"]) for one in peer.asked[1:]] == [
            ("GetTask", {"id": TASK, "historyLength": 0}),
            ("CancelTask", {"id": TASK, "metadata": {"why": "x"}}),
            (
                "ListTasks",
                {
                    "contextId": ROOM,
                    "status": "TASK_STATE_COMPLETED",
                    "pageSize": 1,
                    "includeArtifacts": True,
                },
            ),
        ]


async def test_waiting_goes_on_when_the_agent_did_not_wait() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.method == "SendMessage":
            await exchange.result(opened())
        elif exchange.method == "GetTask":
            await exchange.result(task_bytes(DONE))
        else:
            await exchange.stream()
            for event in (opened(), moved(State.WORKING), moved(State.COMPLETED)):
                await exchange.frame(event)
            await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        assert await agent.send("go") == DONE
        assert [one.method for one in peer.asked[1:]] == ["SendMessage", "SubscribeToTask", "GetTask"]


OK = b'{"jsonrpc":"2.0","id":1,"result":%b}' % task_bytes(DONE)


@pytest.mark.parametrize(
    ("body", "kind", "seen"),
    [
        (OK.replace(b'"id":1', b'"id":2', 1), "application/json", "with id 2"),
        (OK.replace(b'"id":1', b'"id":"1"', 1), "application/json", 'with id "1"'),
        (OK.replace(b'"id":1', b'"id":1.0', 1), "application/json", "with id 1.0"),
        (OK.replace(b'"id":1', b'"id":null', 1), "application/json", "with id null"),
        (OK.replace(b'"id":1', b'"id":' + b"9" * 500, 1), "application/json", "with id 999"),
        (OK.replace(b'"id":1,', b"", 1), "application/json", "with id missing"),
        (OK.replace(b'"2.0"', b'"1.0"'), "application/json", "jsonrpc '1.0'"),
        (b"[" + OK + b"]", "application/json", "a batch"),
        (OK[:-1] + b',"error":{"code":1,"message":"x"}}', "application/json", "at once"),
        (b'{"jsonrpc":"2.0","id":1}', "application/json", "neither"),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}', "application/json", "none"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"id":7}}', "application/json", "not valid"),
        (b'{"jsonrpc":"2.0","id":1,"result":null}', "application/json", "not valid"),
        (OK.replace(b'"t-1"', b'"t-2"'), "application/json", "about task 't-2'"),
        (b"<html>hello</html>", "text/html", "text/html"),
        (OK, "text/event-stream", "text/event-stream"),
        (b"{" * 100_000, "application/json", "no JSON-RPC answer"),
        (b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5_000, "application/json", "no JSON-RPC answer"),
        (b"\xff\xfe", "application/json", "no JSON-RPC answer"),
        (b" " * 200_001, "application/json", "more than 200000 bytes"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
async def test_an_answer_that_is_none_is_the_peers_fault(body: bytes, kind: str, seen: str) -> None:
    """Shows: F23, F24"""

    async def script(exchange: Exchange) -> None:
        await exchange.answer(body, kind)

    async with serving(script) as peer, Client(peer.url, body_bytes_max=200_000) as agent:
        with pytest.raises(Fault, match=seen):
            await agent.get(TASK)
        assert len(agent.faults) == 1


async def test_a_body_without_a_length_is_read_only_up_to_the_cap() -> None:
    """Shows: F23"""

    async def script(exchange: Exchange) -> None:
        await exchange.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        while True:
            await exchange.piece(b" " * 65536)

    async with serving(script) as peer, Client(peer.url, body_bytes_max=1_000_000) as agent:
        with pytest.raises(Fault, match="more than 1000000 bytes"):
            await agent.get(TASK)


async def test_a_head_without_end_is_the_peers_fault() -> None:
    """Shows: F23"""

    async def script(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")

    async with serving(script) as peer, Client(peer.url) as agent:
        with pytest.raises(Fault, match="proper HTTP"):
            await agent.get(TASK)


@pytest.mark.parametrize(
    ("status", "body", "kind", "name"),
    [
        (200, {"code": -32001, "message": "gone"}, AgentError, "TaskNotFound: gone"),
        (404, {"code": -32001, "message": "gone"}, AgentError, "TaskNotFound: gone"),
        (401, None, Refused, "missing.*It asks for: Bearer"),
        (403, None, Refused, "not enough"),
        (307, None, Refused, "points to http://elsewhere"),
        (413, None, AgentError, "TooLarge"),
        (429, None, AgentError, "Unavailable"),
        (500, None, Fault, "HTTP 500"),
        (502, None, Cut, "answered 502"),
    ],
)
async def test_each_refusal_arrives_as_what_it_is(status: int, body: object, kind: type, name: str) -> None:
    async def script(exchange: Exchange) -> None:
        said = {"jsonrpc": "2.0", "id": None, "error": body} if body else "<html>"
        more = "WWW-Authenticate: Bearer\r\nLocation: http://elsewhere/\r\nRetry-After: 7\r\n"
        mime = "application/json" if body else "text/html"
        await exchange.answer(json.dumps(said).encode(), mime, status=status, more=more)

    async with serving(script) as peer, Client(peer.url, resume_attempts=1) as agent:
        with pytest.raises(kind, match=name) as caught:
            await agent.get(TASK)
        if status == 429:
            assert caught.value.retry_seconds == 7


async def test_a_send_that_takes_too_long_says_what_may_be_going_on() -> None:
    async def script(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async with serving(script) as peer, Client(peer.url) as agent:
        with pytest.raises(
            TimedOut, match=r"No answer in 0\.\d s.*may be working.*subscribe\('t-1'\)"
        ) as caught:
            await agent.send("go", task_id=TASK, timeout_seconds=0.05)
        assert caught.value.seen["task_id"] == TASK
        with pytest.raises(TimedOut, match=r"find its task with list\(\)"):
            await agent.send("go", timeout_seconds=0.05)


class Here:
    """A peer in this process."""

    def __init__(self) -> None:
        self.asked: list[tuple[Caller, Request]] = []

    async def call(self, caller: Caller, request: Request) -> Answer:
        self.asked.append((caller, request))
        return Answer(Task, DONE)

    async def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        self.asked.append((caller, request))
        yield [Logged(seq, encode(event)) for seq, event in enumerate((opened(), MessageAdded(REPLY)), 1)]
        yield [Logged(3, encode(moved(State.COMPLETED)))]


async def test_a_peer_in_this_process_is_called_without_a_socket() -> None:
    here = Here()
    async with Client(here, caller=Caller("me")) as agent, Client(agent) as outer:
        assert await outer.send("go") == DONE
        assert await agent.get(TASK) == DONE
        # What callers never see in a stream is not passed on either.
        assert [one.seq async for one in agent.stream("go")] == [1, 3]
        assert [caller.owner for caller, _ in here.asked] == ["anyone", "me", "me"]
        assert all(caller.key for caller, request in here.asked if isinstance(request, Send))


async def test_a_closed_client_can_be_used_again() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.result(task_bytes(DONE))

    async with serving(script) as peer:
        agent = Client(peer.url)
        assert await agent.get(TASK) == DONE
        await agent.aclose()
        await agent.aclose()
        assert await agent.get(TASK) == DONE
        await agent.aclose()
