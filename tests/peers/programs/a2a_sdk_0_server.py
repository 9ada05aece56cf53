"""a2a-sdk 0.2 and 0.3 as the server of an agent that our client talks to: what to do is the first word of a message.

It serves on a free port, prints its address, and ends when told to. The two lines have one way to write agents;
REST came with 0.3.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket

import uvicorn
from a2a import types
from a2a.server import apps
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.utils import new_agent_text_message, new_task
from a2a.utils.errors import ServerError

BEAT_SECONDS = 0.003


def text(words: str) -> types.Part:
    return types.Part(root=types.TextPart(text=words))


class Peer(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        words = getattr(context.message.parts[0].root, "text", "")
        word, _, rest = words.partition(" ")
        if word == "message":
            await event_queue.enqueue_event(new_agent_text_message("just a message"))
            return
        task = context.current_task
        is_answer = task is not None
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if is_answer:
            await updater.add_artifact([text(f"you said: {words}")], artifact_id="answer")
            await updater.complete()
            return
        await self.do(word, rest, context, updater)

    async def do(self, word: str, rest: str, context: RequestContext, updater: TaskUpdater) -> None:
        match word:
            case "echo":
                await updater.add_artifact([text(rest)], artifact_id="answer")
            case "mirror":
                await updater.add_artifact(list(context.message.parts)[1:], artifact_id="mirror")
            case "size":
                size = len(base64.b64decode(context.message.parts[1].root.file.bytes))
                await updater.add_artifact([text(str(size))], artifact_id="answer")
            case "file":
                encoded = base64.b64encode(bytes(range(256))).decode()
                file = types.FileWithBytes(bytes=encoded, mime_type="application/octet-stream")
                await updater.add_artifact([types.Part(root=types.FilePart(file=file))], artifact_id="file")
            case "chunks":
                last = int(rest) - 1
                for number in range(last + 1):
                    part = text(f"{number} ")
                    await updater.add_artifact(
                        [part], artifact_id="count", append=number > 0, last_chunk=number == last
                    )
                    await asyncio.sleep(BEAT_SECONDS)
            case "ask":
                await updater.update_status(
                    types.TaskState.input_required, updater.new_agent_message([text("Which?")]), final=True
                )
                return
            case "fail":
                await updater.failed(updater.new_agent_message([text("it broke")]))
                return
            case "reject":
                await updater.reject(updater.new_agent_message([text("not for me")]))
                return
            case "crash":
                raise RuntimeError("a secret of the inside")
            case "slow":
                await asyncio.Event().wait()
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            raise ServerError(error=types.TaskNotFoundError())
        await TaskUpdater(event_queue, task.id, task.context_id).cancel()


def main() -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    rest = getattr(apps, "A2ARESTFastAPIApplication", None)
    card = types.AgentCard(
        name="peer",
        description="Does what the first word says.",
        version="1.0.0",
        url=f"{url}/",
        additional_interfaces=[types.AgentInterface(url=url, transport="HTTP+JSON")] if rest else None,
        capabilities=types.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[types.AgentSkill(id="peer", name="peer", description="peer", tags=["peer"])],
    )
    answering = DefaultRequestHandler(Peer(), InMemoryTaskStore())
    json_rpc = apps.A2AStarletteApplication(card, answering)
    app = json_rpc.build()
    if rest is not None:
        app = rest(card, answering).build()
        json_rpc.add_routes_to_app(app)
    listener.listen(1024)
    print(json.dumps({"tasks": url}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
