"""fasta2a as the server of an agent that our client talks to; the first word of a message says what to do.

It serves on a free port, prints its address, and ends when told to. Its workers take one thing at a time, runs and
cancels alike, so there are several.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvicorn
from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Message, Part, Skill, TaskIdParams, TaskSendParams
from fasta2a.storage import InMemoryStorage

BEAT_SECONDS = 0.003
WORKERS = 64


class Peer(Worker[Any]):
    """What it says with `publish_…` is only for who listens now; what it gives to its storage is kept."""

    stopped: set[str]

    async def run_task(self, params: TaskSendParams) -> None:
        message, task_id = params["message"], params["id"]
        word, _, rest = message["parts"][0].get("text", "").partition(" ")
        await self.storage.update_task(task_id, state="working")
        await self.publish_status(task_id, params["context_id"], "working")
        match word:
            case "echo":
                await self.give(params, "answer", [Part(text=rest)])
            case "mirror":
                await self.give(params, "mirror", message["parts"][1:])
            case "size":
                size = len(base64.b64decode(message["parts"][1]["raw"]))
                await self.give(params, "answer", [Part(text=str(size))])
            case "file":
                raw = base64.b64encode(bytes(range(256))).decode()
                await self.give(params, "file", [Part(raw=raw, media_type="application/octet-stream")])
            case "chunks":
                await self.give(params, "count", [Part(text=f"{number} ") for number in range(int(rest))])
            case "ask":
                question = Message(role="agent", parts=[Part(text="Which?")], message_id=str(uuid.uuid4()))
                await self.storage.update_task(task_id, state="input-required", new_messages=[question])
                return
            case "fail":
                await self.storage.update_task(task_id, state="failed")
                return
            case "reject":
                await self.storage.update_task(task_id, state="rejected")
                return
            case "crash":
                raise RuntimeError("a secret of the inside")
            case "slow":
                while task_id not in self.stopped:
                    await asyncio.sleep(BEAT_SECONDS)
                return
        await self.storage.update_task(task_id, state="completed")

    async def give(self, params: TaskSendParams, name: str, parts: list[Part]) -> None:
        """An artifact, part by part to who listens and whole to the storage."""
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            chunk = Artifact(artifact_id=name, parts=[part])
            await self.publish_artifact(
                params["id"], params["context_id"], chunk, append=number > 0, last_chunk=last
            )
            await asyncio.sleep(BEAT_SECONDS)
        whole = Artifact(artifact_id=name, parts=parts)
        await self.storage.update_task(params["id"], state="working", new_artifacts=[whole])

    async def cancel_task(self, params: TaskIdParams) -> None:
        # What raises here for a task that is not there takes the whole server with it.
        if await self.storage.load_task(params["id"]) is None:
            return
        self.stopped.add(params["id"])
        await self.storage.update_task(params["id"], state="canceled")

    def build_message_history(self, history: list[Message]) -> list[Any]:
        return history

    def build_artifacts(self, result: Any) -> list[Artifact]:
        return [result]


def main() -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    broker, storage = InMemoryBroker(), InMemoryStorage[Any]()
    worker = Peer(broker, storage)
    worker.stopped = set()

    @asynccontextmanager
    async def lifespan(app: FastA2A) -> AsyncIterator[None]:
        async with app.task_manager, AsyncExitStack() as stack:
            for _ in range(WORKERS):
                await stack.enter_async_context(worker.run())
            yield

    skill = Skill(
        id="peer",
        name="peer",
        description="peer",
        tags=["peer"],
        input_modes=["text/plain"],
        output_modes=["text/plain"],
    )
    app = FastA2A(
        storage=storage, broker=broker, name="peer", url=f"{url}/", skills=[skill], lifespan=lifespan
    )
    listener.listen(1024)
    print(json.dumps({"tasks": url}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
