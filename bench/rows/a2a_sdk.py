"""The a2a-sdk row: the same two agents on that SDK as its own documentation sets a server up."""

import argparse
import asyncio
from contextlib import asynccontextmanager

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


async def echo(updater: TaskUpdater, text: str) -> None:
    await updater.add_artifact([new_text_part(text)], artifact_id="answer")


async def chunks(updater: TaskUpdater, text: str) -> None:
    for number in range(int(text)):
        part = new_text_part(f"chunk {number} ")
        await updater.add_artifact([part], artifact_id="answer", append=number > 0)
        await asyncio.sleep(0)


class Turns(AgentExecutor):
    def __init__(self, say) -> None:
        self.say = say

    async def execute(self, context, event_queue) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self.say(updater, context.get_user_input())
        await updater.complete()

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(port: int) -> AgentCard:
    url = f"http://127.0.0.1:{port}/"
    return AgentCard(
        name="echo",
        description="Says the message again.",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="Echo", tags=["echo"])],
    )


def store(name: str):
    if name == "memory:":
        return InMemoryTaskStore()
    from sqlalchemy.ext.asyncio import create_async_engine

    # By default a writer gives up after five seconds, and at 64 connections some requests fail with it.
    url = name.replace("sqlite:", "sqlite+aiosqlite:///", 1)
    return DatabaseTaskStore(create_async_engine(url, connect_args={"timeout": 60}))


def application(port: int, store_name: str, agent: str) -> Starlette:
    described = card(port)
    turns = Turns({"echo": echo, "chunks": chunks}[agent])
    kept = store(store_name)

    @asynccontextmanager
    async def lifespan(app):
        # Without this the first concurrent requests race to create the table, and some of them fail.
        if isinstance(kept, DatabaseTaskStore):
            await kept.initialize()
        yield

    answering = DefaultRequestHandler(agent_executor=turns, task_store=kept, agent_card=described)
    routes = [*create_agent_card_routes(described), *create_jsonrpc_routes(answering, "/")]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, required=True)
    flags.add_argument("--store", default="memory:")
    flags.add_argument("--agent", default="echo")
    asked = flags.parse_args()
    uvicorn.run(
        application(asked.port, asked.store, asked.agent),
        host="127.0.0.1",
        port=asked.port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
