"""The conversations that the protocol's textbooks print, held over a raw socket: what is printed is what is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dragoman import Agent, Node, Turn
from dragoman.app.cli.loading import load_agents
from dragoman.app.config import load

KYC = Path(__file__).parents[2] / "examples" / "kyc.py"
# What may stand beside what is printed (C3).
BESIDE = {"timestamp", "sessionId", "history"}


class Raw:
    """An HTTP client of a few lines, so that nothing is understood that was not said."""

    def __init__(self, url: str) -> None:
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port

    @asynccontextmanager
    async def posting(self, body: str, path: str = "/") -> AsyncIterator[asyncio.StreamReader]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode())
        try:
            status = await reader.readline()
            assert b" 200 " in status, status
            while await reader.readline() != b"\r\n":
                pass
            yield reader
        finally:
            writer.close()

    async def post(self, body: str, path: str = "/") -> Any:
        async with self.posting(body, path) as reader:
            return json.loads(await reader.read())


async def events(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """The data of each event, as it comes."""
    while line := await reader.readline():
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").decode().rstrip("\n")


def bare(tree: Any) -> Any:
    """Without what may be added."""
    match tree:
        case dict():
            return {name: bare(value) for name, value in tree.items() if name not in BESIDE}
        case list():
            return [bare(item) for item in tree]
        case _:
            return tree


@asynccontextmanager
async def served(*agents: Agent) -> AsyncIterator[Raw]:
    async with Node(agents, load(environ={}, flags={"node.port": 0})) as node:
        yield Raw(node.url)


OPENING = """{
 "jsonrpc": "2.0",
 "id": 1,
 "method": "tasks/sendSubscribe",
 "params": {
  "id": "task-kyc-7f3a",
  "message": {
   "role": "user",
   "parts": [{"type": "text", "text": "Run a KYC check on applicant 88412."}]
  }
 }
}"""
ANSWER = """{"jsonrpc": "2.0", "id": 2, "method": "tasks/send",
 "params": {"id": "task-kyc-7f3a",
  "message": {"role": "user",
   "parts": [{"type": "file", "file": {"name": "passport.png", "uri": "https://files.example.com/88412/passport.png"}}]}}}"""
TOLD = [
    {"jsonrpc": "2.0", "id": 1, "result": {"id": "task-kyc-7f3a", "status": {"state": "submitted"}}},
    {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"id": "task-kyc-7f3a", "status": {"state": "working"}, "final": False},
    },
    {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "id": "task-kyc-7f3a",
            "status": {
                "state": "input-required",
                "message": {
                    "role": "agent",
                    "parts": [{"type": "text", "text": "Provide a passport scan for applicant 88412."}],
                },
            },
            "final": False,
        },
    },
]
# The answer makes the agent work again, which the text says and its trace leaves out.
RESUMED = TOLD[1]
ENDED = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {
        "id": "task-kyc-7f3a",
        "status": {"state": "completed"},
        "artifacts": [
            {
                "name": "kyc_result",
                "parts": [{"type": "text", "text": "KYC PASS: identity verified, no sanctions match."}],
            }
        ],
        "final": True,
    },
}


@asynccontextmanager
async def compliance() -> AsyncIterator[Raw]:
    async with served(*load_agents([str(KYC)])) as raw:
        yield raw


async def test_the_kyc_walk_through_goes_as_it_is_printed() -> None:
    """Shows: S4-030, S4-031, S4-032, S4-033, S4-034, S4-035, S4-037, S4-020, X9, X10, C3, C15"""
    async with compliance() as raw, raw.posting(OPENING) as stream:
        told = events(stream)
        for expected in TOLD:
            assert bare(json.loads(await anext(told))) == expected
        answered = await raw.post(ANSWER)
        assert bare(json.loads(await anext(told))) == RESUMED
        last = await anext(told)
        assert bare(json.loads(last)) == ENDED
        assert [more async for more in told] == []
    # Byte by byte: a JSON-RPC result under the first request's id, and `final` as a boolean.
    assert last.startswith('{"jsonrpc":"2.0","id":1,"result":{"id":"task-kyc-7f3a",')
    assert last.endswith('"final":true}}')
    assert (answered["id"], answered["result"]["id"]) == (2, "task-kyc-7f3a")
    assert answered["result"]["status"]["state"] == "completed"
    assert "kind" not in json.dumps(answered)


async def test_a_stream_that_was_cut_before_the_end_is_reconciled_by_the_tasks_state() -> None:
    """Shows: S4-040, S4-036"""
    async with compliance() as raw:
        async with raw.posting(OPENING) as stream:
            told = events(stream)
            for _ in TOLD:
                await anext(told)
        await raw.post(ANSWER)
        found = await raw.post(
            '{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"id":"task-kyc-7f3a"}}'
        )
        assert bare(found["result"]) == {
            "id": "task-kyc-7f3a",
            "status": {"state": "completed"},
            "artifacts": ENDED["result"]["artifacts"],  # type: ignore[index]
        }


async def test_a_cancel_that_comes_too_late_changes_nothing_and_is_no_error() -> None:
    """Shows: S4-022, C8"""
    cancel = '{"jsonrpc":"2.0","id":%d,"method":"tasks/cancel","params":{"id":"task-kyc-7f3a"}}'
    async with compliance() as raw:
        await raw.post(OPENING.replace("tasks/sendSubscribe", "tasks/send"))
        await raw.post(ANSWER)
        late = await raw.post(cancel % 3)
        assert late["result"]["status"]["state"] == "completed"
        # A task that is not over is canceled, and to say so twice is no error either.
        other = OPENING.replace("task-kyc-7f3a", "b").replace("tasks/sendSubscribe", "tasks/send")
        await raw.post(other)
        for number in (4, 5):
            said = await raw.post((cancel % number).replace("task-kyc-7f3a", "b"))
            assert said["result"]["status"]["state"] == "canceled"


async def test_a_task_of_a_used_name_is_the_same_task_and_what_it_is_told_decides() -> None:
    """Said again as it was said, it is a retry; another message to a task that is over is refused.

    Shows: C6
    """
    send = OPENING.replace("tasks/sendSubscribe", "tasks/send")
    async with compliance() as raw:
        first = await raw.post(send)
        again = await raw.post(send)
        assert again["result"]["history"] == first["result"]["history"]
        await raw.post(ANSWER)
        over = await raw.post(send.replace("88412", "1"))
        assert over["error"]["code"] == -32009


async def test_names_of_tasks_are_each_callers_own_and_no_name_is_given_one() -> None:
    """Shows: C6"""
    async with compliance() as raw:
        named = await raw.post(OPENING.replace("tasks/sendSubscribe", "tasks/send"))
        assert named["result"]["id"] == "task-kyc-7f3a"
        nameless = OPENING.replace("tasks/sendSubscribe", "tasks/send").replace('"id": "task-kyc-7f3a",', "")
        given = await raw.post(nameless)
        assert len(given["result"]["id"]) == 36
        # Later versions take no names of callers: the name means nothing to them.
        newer = (
            '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m",'
            '"role":"user","taskId":"task-kyc-7f3a","parts":[{"kind":"text","text":"x"}]}}}'
        )
        assert (await raw.post(newer))["error"]["code"] == -32001
        # The task that got its name here is asked for in the words in which it was opened.
        asked = {"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": {"id": given["result"]["id"]}}
        got = await raw.post(json.dumps(asked))
        assert "kind" not in json.dumps(got) and got["result"]["id"] == given["result"]["id"]


REQUEST_001 = {
    "jsonrpc": "2.0",
    "id": "req-1",
    "method": "message/send",
    "params": {
        "message": {
            "kind": "message",
            "messageId": "6dbc13b5-bd57-4c2b-b503-24e381b6c8d6",
            "role": "user",
            "parts": [{"kind": "text", "text": "Plan and execute tasks for onboarding."}],
            "contextId": "2f7a3a1c-5c2c-4f14-9d1e-7c9f9e6b1f2a",
        },
        "configuration": {"acceptedOutputModes": ["text/plain", "application/json"], "blocking": False},
    },
}


async def test_a_request_that_does_not_wait_is_acknowledged_as_it_is_printed() -> None:
    """Shows: S1-071, S1-072, S1-075"""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def plan(turn: Turn) -> str:
        begun.set()
        await go_on.wait()
        return "planned"

    async with served(Agent("planner", plan)) as raw:
        said = await raw.post(json.dumps(REQUEST_001))
        await begun.wait()
        go_on.set()
    result = said["result"]
    assert said.keys() == {"jsonrpc", "id", "result"}
    assert (said["jsonrpc"], said["id"], result["kind"]) == ("2.0", "req-1", "task")
    assert result["contextId"] == "2f7a3a1c-5c2c-4f14-9d1e-7c9f9e6b1f2a"
    assert result["id"]
    assert result["status"]["state"] in ("submitted", "working")
    assert result["status"]["timestamp"].endswith("Z")
    assert "artifacts" not in result
