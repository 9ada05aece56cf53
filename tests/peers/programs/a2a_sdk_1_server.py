"""a2a-sdk 1 as the server of an agent that our client talks to; the first word of a message says what to do.

It serves on a free port, in 1.0 and in its compatibility mode for 0.3, prints its address, and ends when told to.
"""

from __future__ import annotations

import asyncio
import json
import socket

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette

BEAT_SECONDS = 0.003


class Peer(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.message.parts[0].text
        word, _, rest = text.partition(" ")
        if word == "message":
            await event_queue.enqueue_event(new_text_message("just a message", role=pb.Role.ROLE_AGENT))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            is_answer = False
        else:
            is_answer = True
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if is_answer:
            await updater.add_artifact([new_text_part(f"you said: {text}")], artifact_id="answer")
            await updater.complete()
            return
        await self.do(word, rest, context, updater)

    async def do(self, word: str, rest: str, context: RequestContext, updater: TaskUpdater) -> None:
        match word:
            case "echo":
                await updater.add_artifact([new_text_part(rest)], artifact_id="answer")
            case "mirror":
                await updater.add_artifact(list(context.message.parts)[1:], artifact_id="mirror")
            case "size":
                size = len(context.message.parts[1].raw)
                await updater.add_artifact([new_text_part(str(size))], artifact_id="answer")
            case "file":
                part = pb.Part(raw=bytes(range(256)), media_type="application/octet-stream")
                await updater.add_artifact([part], artifact_id="file")
            case "chunks":
                last = int(rest) - 1
                for number in range(last + 1):
                    part = new_text_part(f"{number} ")
                    await updater.add_artifact(
                        [part], artifact_id="count", append=number > 0, last_chunk=number == last
                    )
                    await asyncio.sleep(BEAT_SECONDS)
            case "ask":
                await updater.requires_input(updater.new_agent_message([new_text_part("Which?")]))
                return
            case "fail":
                await updater.failed(updater.new_agent_message([new_text_part("it broke")]))
                return
            case "reject":
                await updater.reject(updater.new_agent_message([new_text_part("not for me")]))
                return
            case "crash":
                raise RuntimeError("a secret of the inside")
            case "slow":
                await asyncio.Event().wait()
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.current_task.context_id).cancel()


def main() -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = pb.AgentCard(
        name="peer",
        description="Does what the first word says.",
        version="1.0.0",
        supported_interfaces=[
            pb.AgentInterface(url=f"{url}/", protocol_binding=binding, protocol_version=version)
            for version in ("1.0", "0.3")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        capabilities=pb.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="peer", name="peer", description="peer", tags=["peer"])],
    )
    answering = DefaultRequestHandler(Peer(), InMemoryTaskStore(), card)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(answering, "/", enable_v0_3_compat=True),
        *create_rest_routes(answering, enable_v0_3_compat=True),
    ]
    listener.listen(1024)
    print(json.dumps({"tasks": url}), flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
