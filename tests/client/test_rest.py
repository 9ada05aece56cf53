"""Our client over REST, against peers that do it by the text, by the proto, or by habits of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import AgentError, Fault, Task
from dragoman.client import Client
from dragoman.model.errors import ERRORS
from dragoman.model.events import TaskCreated, encode
from dragoman.model.task import State
from tests.client.scripted import TASK, Exchange, card, folded, moved, opened, serving, task_bytes

REST = [{"url": "$URL/api", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]
ELDER = {
    "name": "E",
    "url": "$URL/api",
    "preferredTransport": "HTTP+JSON",
    "protocolVersion": "0.3.0",
    "capabilities": {"streaming": True},
    "skills": [],
}


def refusal(status: int, name: str, reason: str) -> bytes:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
    }
    return json.dumps(
        {"error": {"code": status, "status": name, "message": "no", "details": [info]}}
    ).encode()


async def test_each_operation_goes_where_the_table_says() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.path.startswith("/api/tasks?"):
            await exchange.answer(b'{"tasks":[],"nextPageToken":"","pageSize":2,"totalSize":0}')
        elif "message" in exchange.path:
            await exchange.answer(encode(TaskCreated(opened(State.INPUT_REQUIRED).task)), status=201)
        else:
            await exchange.answer(task_bytes(opened(State.INPUT_REQUIRED).task), status=202)

    said = []

    async def telling(exchange: Exchange) -> None:
        if exchange.path == "/.well-known/agent-card.json":
            await exchange.answer(json.dumps(card(interfaces=REST)).replace("$URL", peer.url).encode())
            return
        said.append((exchange.verb, exchange.path, exchange.body))
        await script(exchange)

    async with serving(telling, card=None) as peer, Client(peer.url) as agent:
        assert isinstance(await agent.send("go"), Task)
        await agent.get(TASK, history_length=0)
        await agent.list(state=State.WORKING, page_size=2, include_artifacts=True)
        await agent.cancel(TASK)
    assert [(verb, path) for verb, path, _ in said] == [
        ("POST", "/api/message:send"),
        ("GET", f"/api/tasks/{TASK}?historyLength=0"),
        ("GET", "/api/tasks?status=TASK_STATE_WORKING&pageSize=2&includeArtifacts=true"),
        ("POST", f"/api/tasks/{TASK}:cancel"),
    ]


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_subscription_that_is_not_to_be_had_by_post_is_opened_by_get_from_then_on(
    status: int,
) -> None:
    verbs: list[str] = []

    async def script(exchange: Exchange) -> None:
        if exchange.path == "/.well-known/agent-card.json":
            await exchange.answer(json.dumps(card(interfaces=REST)).replace("$URL", peer.url).encode())
            return
        verbs.append(exchange.verb)
        if exchange.verb == "POST":
            await exchange.answer(b"no", kind="text/plain", status=status)
            return
        await exchange.stream()
        for event in (opened(), moved(State.FAILED)):
            await exchange.piece(b"data: " + encode(event) + b"\n\n")
        await exchange.end()

    async with serving(script, card=None) as peer, Client(peer.url) as agent:
        for _ in range(2):
            heard = [logged.event async for logged in agent.subscribe(TASK)]
            assert folded(heard).state is State.FAILED
    assert verbs == ["POST", "GET", "GET"]


@pytest.mark.parametrize(
    "name", ["TaskNotCancelable", "ContentTypeNotSupported", "VersionNotSupported", "TaskNotFound"]
)
@pytest.mark.parametrize("edition", ["1.0.0", "1.0.1"])
async def test_errors_are_told_by_their_reason_under_either_editions_statuses(
    name: str, edition: str
) -> None:
    row = ERRORS[name]
    status = row.http_1_0 or row.http if edition == "1.0.0" else row.http
    grpc = row.grpc_1_0 or row.grpc if edition == "1.0.0" else row.grpc

    async def script(exchange: Exchange) -> None:
        await exchange.answer(refusal(status, grpc, row.reason), status=status)

    async with (
        serving(script, card=card(interfaces=REST)) as peer,
        Client(peer.url, binding="HTTP+JSON") as agent,
    ):
        with pytest.raises(AgentError) as refused:
            await agent.cancel(TASK)
        assert refused.value.row is row


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({"code": -32001, "message": "gone"}, 404, "TaskNotFound"),
        ({"type": "TaskNotCancelableError", "message": "over"}, 409, "TaskNotCancelable"),
        ({"error": {"code": 404, "status": "NOT_FOUND", "message": "gone"}}, 404, "TaskNotFound"),
        ({"code": 5, "message": "gone", "details": []}, 404, "TaskNotFound"),
        ({"message": "odd", "code": 1}, 400, "InvalidRequest"),
    ],
)
async def test_an_error_of_0_3_is_understood_in_each_of_its_forms(body: Any, status: int, name: str) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.answer(json.dumps(body).encode(), status=status)

    async with serving(script, card=ELDER) as peer, Client(peer.url) as agent:
        with pytest.raises(AgentError) as refused:
            await agent.cancel(TASK)
        assert refused.value.name == name


async def test_an_error_in_a_stream_of_0_3_is_understood_by_the_name_of_its_event() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.piece(b'event: error\ndata: {"code":-32004,"message":"no"}\n\n')
        await exchange.end()

    async with serving(script, card=ELDER) as peer, Client(peer.url) as agent:
        with pytest.raises(AgentError, match="UnsupportedOperation"):
            _ = [one async for one in agent.stream("go")]


async def test_an_answer_of_no_kind_is_the_peers_fault() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.answer(b"<html>", kind="text/html")

    async with serving(script, card=ELDER) as peer, Client(peer.url) as agent:
        with pytest.raises(Fault, match="not an agent's answer"):
            await agent.cancel(TASK)


# Huge values: what fits is taken, what does not is refused before it is all here.


def many_parts(count: int) -> bytes:
    parts = [{"text": "x"}] * count
    return json.dumps(
        {
            "id": TASK,
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": parts}],
        }
    ).encode()


@pytest.mark.parametrize(
    "body",
    [
        many_parts(10_000),
        b'{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},'
        b'"metadata":{"m":"' + b"x" * 1_000_000 + b'"}}',
    ],
    ids=["parts", "metadata"],
)
async def test_a_large_answer_that_fits_is_taken(body: bytes) -> None:
    """Shows: F25"""

    async def script(exchange: Exchange) -> None:
        if exchange.verb == "GET":
            await exchange.answer(
                json.dumps(card(interfaces=REST)).replace("$URL", peer.url).encode()
                if "card" in exchange.path
                else body
            )

    async with serving(script, card=None) as peer, Client(peer.url) as agent:
        assert (await agent.get(TASK)).state is State.COMPLETED


@pytest.mark.parametrize("size", [10_000_000, 100_000_000])
async def test_an_answer_beyond_the_cap_is_the_peers_fault_and_is_not_read_to_its_end(size: int) -> None:
    """Shows: F25"""
    written = 0

    async def script(exchange: Exchange) -> None:
        nonlocal written
        await exchange.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b" " * 64 * 1024
        while written < size:
            await exchange.piece(chunk)
            written += len(chunk)

    async with serving(script, card=ELDER) as peer, Client(peer.url, body_bytes_max=1_000_000) as agent:
        with pytest.raises(Fault, match="more than 1000000 bytes"):
            await agent.cancel(TASK)
    assert written < size
