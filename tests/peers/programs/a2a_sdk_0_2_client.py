"""a2a-sdk 0.2 as the client of agents of ours: `a2a_sdk_0_2_client.py BINDING VERSION AGENTS`, then see `driving`."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a import types
from a2a.client import A2ACardResolver, A2AClient
from driving import drive, plainly, spelled

AGENTS = json.loads(sys.argv[3])


class Told(Exception):
    """An error that this SDK gives back instead of raising it."""


def result(answer: Any) -> Any:
    if isinstance(answer.root, types.JSONRPCErrorResponse):
        raise Told(f"code {answer.root.error.code}")
    return spelled(answer.root.result)


def request(kind: Any, params: Any) -> Any:
    return kind.model_validate({"id": str(uuid.uuid4()), "params": params})


async def main() -> None:
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100)) as http:
        cards = {
            name: await A2ACardResolver(http, address).get_agent_card() for name, address in AGENTS.items()
        }
        clients = {name: A2AClient(http, agent_card=card) for name, card in cards.items()}

        async def card() -> Any:
            return spelled(cards["tasks"])

        async def send(agent: str, params: Any) -> Any:
            return result(await clients[agent].send_message(request(types.SendMessageRequest, params)))

        async def stream(agent: str, params: Any) -> AsyncIterator[Any]:
            asked = request(types.SendStreamingMessageRequest, params)
            async for answer in clients[agent].send_message_streaming(asked):
                yield result(answer)

        async def get(params: Any) -> Any:
            return result(await clients["tasks"].get_task(request(types.GetTaskRequest, params)))

        async def cancel(params: Any) -> Any:
            return result(await clients["tasks"].cancel_task(request(types.CancelTaskRequest, params)))

        async def hook(params: Any) -> Any:
            inner = {"taskId": params.pop("taskId"), "pushNotificationConfig": params}
            asked = request(types.SetTaskPushNotificationConfigRequest, inner)
            return result(await clients["tasks"].set_task_callback(asked))

        operations = {"card": card, "send": send, "stream": stream, "get": get}
        await drive({**operations, "cancel": cancel, "hook": hook}, named)


def named(wrong: Exception) -> str:
    return str(wrong) if isinstance(wrong, Told) else plainly(wrong)


if __name__ == "__main__":
    asyncio.run(main())
