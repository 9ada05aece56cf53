"""The floor: what reading a message and answering a finished task cost on bare ASGI, with no task behind."""

import argparse
import asyncio
import time
import uuid

import msgspec
import uvicorn


class Part(msgspec.Struct, omit_defaults=True):
    text: str = ""


class Message(msgspec.Struct, rename="camel", omit_defaults=True):
    message_id: str
    role: str
    parts: list[Part]
    context_id: str = ""


class Params(msgspec.Struct):
    message: Message


class Call(msgspec.Struct):
    id: int | str
    method: str
    params: Params


class Status(msgspec.Struct):
    state: str
    timestamp: str


class Artifact(msgspec.Struct, rename="camel"):
    artifact_id: str
    parts: list[Part]


class Task(msgspec.Struct, rename="camel"):
    id: str
    context_id: str
    status: Status
    artifacts: list[Artifact]
    history: list[Message]


class Chunk(msgspec.Struct, rename="camel"):
    task_id: str
    context_id: str
    artifact: Artifact
    append: bool


class Change(msgspec.Struct, rename="camel"):
    task_id: str
    context_id: str
    status: Status


class Reply(msgspec.Struct):
    id: int | str
    result: dict[str, Task | Chunk | Change]
    jsonrpc: str = "2.0"


decode = msgspec.json.Decoder(Call).decode
encode = msgspec.json.Encoder().encode
JSON = (b"content-type", b"application/json")
SSE = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")],
}


def timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


def card(port: int) -> bytes:
    url = f"http://127.0.0.1:{port}/"
    return encode(
        {
            "name": "floor",
            "description": "Echo without a task",
            "version": "1.0.0",
            "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "echo", "name": "echo", "description": "Echo", "tags": ["echo"]}],
        }
    )


async def answer(send, body: bytes) -> None:
    length = b"%d" % len(body)
    await send({"type": "http.response.start", "status": 200, "headers": [JSON, (b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


def finished(message: Message) -> Task:
    artifact = Artifact(str(uuid.uuid4()), message.parts)
    context = message.context_id or str(uuid.uuid4())
    return Task(
        str(uuid.uuid4()), context, Status("TASK_STATE_COMPLETED", timestamp()), [artifact], [message]
    )


async def stream(send, call: Call) -> None:
    async def tell(kind: str, value: Task | Chunk | Change) -> None:
        await send(
            {
                "type": "http.response.body",
                "body": b"data: %b\n\n" % encode(Reply(call.id, {kind: value})),
                "more_body": True,
            }
        )

    await send(SSE)
    task = finished(call.params.message)
    done, artifact_id = task.status, task.artifacts[0].artifact_id
    task.status, task.artifacts = Status("TASK_STATE_SUBMITTED", done.timestamp), []
    await tell("task", task)
    for number in range(int(call.params.message.parts[0].text)):
        artifact = Artifact(artifact_id, [Part(f"chunk {number} ")])
        await tell("artifactUpdate", Chunk(task.id, task.context_id, artifact, number > 0))
        await asyncio.sleep(0)
    await tell("statusUpdate", Change(task.id, task.context_id, done))
    await send({"type": "http.response.body", "body": b""})


def application(port: int):
    described = card(port)

    async def app(scope, receive, send) -> None:
        if scope["method"] == "GET":
            return await answer(send, described)
        body, more = b"", True
        while more:
            piece = await receive()
            body += piece.get("body", b"")
            more = piece.get("more_body", False)
        call = decode(body)
        if call.method == "SendStreamingMessage":
            return await stream(send, call)
        await answer(send, encode(Reply(call.id, {"task": finished(call.params.message)})))

    return app


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, required=True)
    port = flags.parse_args().port
    uvicorn.run(
        application(port),
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
