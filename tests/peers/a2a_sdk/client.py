"""a2a-sdk as the client of an agent of ours: does every case once and prints what it saw, a JSON line each.

`client.py TASKS WORDS` does the cases; `client.py TASKS reconnect COUNT` cuts and resumes streams. What is
right is not known here: the tests compare.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import traceback
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, create_client
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

TERMINAL = {
    pb.TaskState.TASK_STATE_COMPLETED,
    pb.TaskState.TASK_STATE_FAILED,
    pb.TaskState.TASK_STATE_CANCELED,
    pb.TaskState.TASK_STATE_REJECTED,
}

CASES: dict[str, Callable[[], Awaitable[Any]]] = {}
calling: Client
streaming: Client
wordy: Client
wordy_stream: Client
base = ""


def case(do: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    CASES[do.__name__] = do
    return do


def said(text: str, more: list[dict[str, Any]] | None = None, **message: Any) -> pb.SendMessageRequest:
    configuration = message.pop("configuration", {})
    spelled = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}, *(more or [])]}
    return ParseDict(
        {"message": {**spelled, **message}, "configuration": configuration}, pb.SendMessageRequest()
    )


async def send(request: pb.SendMessageRequest, client: Client | None = None) -> pb.StreamResponse:
    return [item async for item in (client or calling).send_message(request)][-1]


async def task(text: str, **message: Any) -> pb.Task:
    return (await send(said(text, **message))).task


def at_once(text: str, **message: Any) -> pb.SendMessageRequest:
    return said(text, configuration={"returnImmediately": True}, **message)


def state(of: Any) -> str:
    return pb.TaskState.Name(of.status.state).removeprefix("TASK_STATE_")


def text_of(one: pb.Task) -> str:
    return "".join(part.text for artifact in one.artifacts for part in artifact.parts)


class Seen:
    """A stream, folded the way the protocol says."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.states: list[str] = []
        self.artifacts: dict[str, list[str]] = {}
        self.task_id = ""

    def take(self, item: pb.StreamResponse) -> None:
        kind = item.WhichOneof("payload")
        self.kinds.append(kind)
        if kind == "task":
            self.task_id = item.task.id
            self.states.append(state(item.task))
            self.artifacts = {a.artifact_id: [part.text for part in a.parts] for a in item.task.artifacts}
        elif kind == "status_update":
            self.states.append(state(item.status_update))
        elif kind == "artifact_update":
            update = item.artifact_update
            parts = [part.text for part in update.artifact.parts]
            if update.append:
                self.artifacts.setdefault(update.artifact.artifact_id, []).extend(parts)
            else:
                self.artifacts[update.artifact.artifact_id] = parts

    async def all(self, items: AsyncIterator[pb.StreamResponse]) -> Seen:
        async for item in items:
            self.take(item)
        return self

    @property
    def text(self) -> str:
        return "".join(text for texts in self.artifacts.values() for text in texts)

    def told(self) -> dict[str, Any]:
        return {"first": self.kinds[0], "states": self.states, "text": self.text}


async def refused(doing: Awaitable[Any]) -> str:
    try:
        saw = await doing
    except Exception as wrong:  # the name of whatever it raises is what is looked at
        return type(wrong).__name__.removesuffix("Error")
    return f"no error but {saw}"


async def run_out(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


@case
async def card() -> Any:
    async with httpx.AsyncClient() as http:
        found = await A2ACardResolver(http, base).get_agent_card()
    [way] = found.supported_interfaces
    return {
        "name": found.name,
        "binding": way.protocol_binding,
        "version": way.protocol_version,
        "streaming": found.capabilities.streaming,
        "skills": len(found.skills),
    }


@case
async def send_waits() -> Any:
    answer = await task("echo Grüße, 世界 🌍")
    return {"state": state(answer), "text": text_of(answer)}


@case
async def send_at_once() -> Any:
    answer = (await send(at_once("slow"))).task
    then = await calling.cancel_task(pb.CancelTaskRequest(id=answer.id))
    return {"open": answer.status.state not in TERMINAL, "then": state(then)}


@case
async def stream() -> Any:
    return (await Seen().all(streaming.send_message(said("chunks 20")))).told()


@case
async def get() -> Any:
    answer = await task("echo again")
    read = await calling.get_task(pb.GetTaskRequest(id=answer.id))
    return {"state": state(read), "text": text_of(read), "same": read.context_id == answer.context_id}


@case
async def history() -> Any:
    asked = await task("ask")
    await task("blue", taskId=asked.id)
    lengths = {}
    for length in (0, 1, 2, 100):
        read = await calling.get_task(pb.GetTaskRequest(id=asked.id, history_length=length))
        lengths[str(length)] = [message.parts[0].text for message in read.history]
    without = (await send(said("echo x", configuration={"historyLength": 0}))).task
    return {"lengths": lengths, "send 0": len(without.history)}


@case
async def list_pages() -> Any:
    context = str(uuid.uuid4())
    made = [(await task(f"echo {number}", contextId=context)).id for number in range(5)]
    sizes, found, totals, token = [], [], set(), ""
    while True:
        page = await calling.list_tasks(
            pb.ListTasksRequest(context_id=context, page_size=2, page_token=token)
        )
        sizes.append(len(page.tasks))
        totals.add(page.total_size)
        found += [one.id for one in page.tasks]
        bare = all(not one.artifacts for one in page.tasks)
        token = page.next_page_token
        if not token:
            break
    full = await calling.list_tasks(pb.ListTasksRequest(context_id=context, include_artifacts=True))
    failed = await calling.list_tasks(
        pb.ListTasksRequest(context_id=context, status=pb.TaskState.TASK_STATE_FAILED)
    )
    return {
        "sizes": sizes,
        "totals": sorted(totals),
        "newest first": found == made[::-1],
        "bare": bare,
        "texts": sorted(text_of(one) for one in full.tasks),
        "failed": len(failed.tasks),
    }


@case
async def cancel() -> Any:
    open_ = (await send(at_once("slow"))).task
    stopped = await calling.cancel_task(pb.CancelTaskRequest(id=open_.id))
    again = await calling.cancel_task(pb.CancelTaskRequest(id=open_.id))
    return {"state": state(stopped), "again": state(again)}


@case
async def subscribe() -> Any:
    open_ = (await send(at_once("chunks 60"))).task
    follow = pb.SubscribeToTaskRequest(id=open_.id)
    one, two = await asyncio.gather(
        Seen().all(streaming.subscribe(follow)), Seen().all(streaming.subscribe(follow))
    )
    return {
        "first": [one.kinds[0], two.kinds[0]],
        "last": [one.states[-1], two.states[-1]],
        "true": [seen.text == "".join(f"{number} " for number in range(60)) for seen in (one, two)],
    }


@case
async def ask() -> Any:
    asked = await task("ask")
    question = asked.status.message.parts[0].text
    answer = await task("blue", taskId=asked.id)
    return {
        "state": state(asked),
        "question": question,
        "then": state(answer),
        "text": text_of(answer),
        "same": (answer.id, answer.context_id) == (asked.id, asked.context_id),
    }


@case
async def ask_in_a_stream() -> Any:
    seen = await Seen().all(streaming.send_message(said("ask")))
    answer = await Seen().all(streaming.send_message(said("green", taskId=seen.task_id)))
    return {"asked": seen.states[-1], "then": answer.states[-1], "text": answer.text}


@case
async def message() -> Any:
    answer = await send(said("message"), wordy)
    seen = [item async for item in wordy_stream.send_message(said("message"))]
    return {
        "kind": answer.WhichOneof("payload"),
        "text": answer.message.parts[0].text,
        "stream": [item.WhichOneof("payload") for item in seen],
    }


@case
async def parts() -> Any:
    more: list[dict[str, Any]] = [
        {"text": "plain", "mediaType": "text/plain"},
        {"text": ""},
        {
            "raw": base64.b64encode(bytes(range(256))).decode(),
            "filename": "all.bin",
            "mediaType": "application/octet-stream",
        },
        {"raw": "", "filename": "empty.bin"},
        {"url": "https://example.com/a.png", "filename": "a.png", "mediaType": "image/png"},
        {"data": {"nested": [1, 2.5, True, None, {"a": ""}]}},
        {"data": [1, "two"]},
        {"data": "bare"},
        {"data": 0},
        {"data": False},
        {"text": "noted", "metadata": {"k": {"n": 1}}},
    ]
    answer = (await send(said("mirror", more))).task
    return {
        "parts": [MessageToDict(part) for part in answer.artifacts[0].parts] == more,
        "state": state(answer),
    }


@case
async def null_part() -> Any:
    answer = await task("mirror", more=[{"data": None}])
    return {"parts": [part.WhichOneof("content") for part in answer.artifacts[0].parts]}


@case
async def large() -> Any:
    words = "x" * 1_000_000
    return {"same": text_of(await task(f"echo {words}")) == words}


@case
async def many_at_once() -> Any:
    answers = await asyncio.gather(*(task(f"echo {number}") for number in range(50)))
    return {"own": [text_of(one) for one in answers] == [str(number) for number in range(50)]}


@case
async def ends() -> Any:
    seen = {}
    for word in ("fail", "reject", "crash"):
        answer = await task(word)
        spoken = answer.status.message.parts[0].text if answer.status.message.parts else ""
        seen[word] = [state(answer), spoken if word != "crash" else "secret" in spoken]
    return seen


@case
async def contexts() -> Any:
    one = await task("ask", contextId="a-room")
    wrong = await refused(task("blue", taskId=one.id, contextId="another-room"))
    right = await task("blue", taskId=one.id, contextId="a-room")
    return {"kept": one.context_id, "mismatch": wrong, "match": state(right)}


@case
async def errors() -> Any:
    over = await task("echo done")
    nobody = str(uuid.uuid4())
    return {
        "get": await refused(calling.get_task(pb.GetTaskRequest(id=nobody))),
        "cancel": await refused(calling.cancel_task(pb.CancelTaskRequest(id=nobody))),
        "cancel over": await refused(calling.cancel_task(pb.CancelTaskRequest(id=over.id))),
        "send to nobody": await refused(task("echo", taskId=nobody)),
        "send to over": await refused(task("echo", taskId=over.id)),
        "subscribe": await refused(run_out(streaming.subscribe(pb.SubscribeToTaskRequest(id=nobody)))),
        "subscribe over": await refused(run_out(streaming.subscribe(pb.SubscribeToTaskRequest(id=over.id)))),
        "media type": await refused(send(said("mirror", [{"text": "x", "mediaType": "video/mp4"}]))),
        "page size": await refused(calling.list_tasks(pb.ListTasksRequest(page_size=101))),
        "page token": await refused(calling.list_tasks(pb.ListTasksRequest(page_token="nonsense"))),
        "no parts": await refused(
            send(pb.SendMessageRequest(message=pb.Message(message_id="m", role=pb.Role.ROLE_USER)))
        ),
        "push": await refused(
            calling.create_task_push_notification_config(
                pb.TaskPushNotificationConfig(task_id=over.id, url="https://example.com/hook")
            )
        ),
    }


@case
async def versions() -> Any:
    seen = {}
    for version in ("1.0", "0.3", "1.7", "99.0"):
        context = ClientCallContext(service_parameters={"A2A-Version": version})
        items = calling.send_message(said("echo x"), context=context)
        try:
            seen[version] = [item.WhichOneof("payload") async for item in items][-1]
        except Exception as wrong:
            seen[version] = type(wrong).__name__.removesuffix("Error")
    return seen


async def cut_and_resumed(number: int) -> dict[str, Any]:
    """A stream that is left in its middle and subscribed to again, twice, with no cursor."""
    chunks = 150
    seen = Seen()
    items = streaming.send_message(said(f"chunks {chunks}"))
    firsts = []
    for cut in (1 + number % 50, 2 + number % 5):
        async for item in items:
            seen.take(item)
            if len(seen.kinds) > cut:
                break
        await items.aclose()
        try:
            resumed = Seen()
            items = streaming.subscribe(pb.SubscribeToTaskRequest(id=seen.task_id))
            resumed.take(await anext(items))
        except Exception as wrong:
            # It ended meanwhile: then reading it tells all.
            firsts.append(type(wrong).__name__)
            read = await calling.get_task(pb.GetTaskRequest(id=seen.task_id))
            return {"firsts": firsts, "last": state(read), "true": text_of(read) == truth(chunks)}
        seen = resumed
        firsts.append(seen.kinds[0])
    await seen.all(items)
    return {"firsts": firsts, "last": seen.states[-1], "true": seen.text == truth(chunks)}


def truth(chunks: int) -> str:
    return "".join(f"{number} " for number in range(chunks))


async def main(tasks: str, what: str, count: int) -> None:
    global base, calling, streaming, wordy, wordy_stream
    base = tasks
    timeout = httpx.Timeout(30)
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(timeout=timeout, limits=limits) as http:
        calling = await create_client(tasks, ClientConfig(streaming=False, httpx_client=http))
        streaming = await create_client(tasks, ClientConfig(streaming=True, httpx_client=http))
        if what == "reconnect":
            for start in range(0, count, 10):
                numbers = range(start, min(count, start + 10))
                for one in await asyncio.gather(*map(cut_and_resumed, numbers)):
                    print(json.dumps(one), flush=True)
            return
        wordy = await create_client(what, ClientConfig(streaming=False, httpx_client=http))
        wordy_stream = await create_client(what, ClientConfig(streaming=True, httpx_client=http))
        for name, do in CASES.items():
            try:
                print(json.dumps({"case": name, "saw": await do()}), flush=True)
            except Exception:
                print(json.dumps({"case": name, "broke": traceback.format_exc()}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))
