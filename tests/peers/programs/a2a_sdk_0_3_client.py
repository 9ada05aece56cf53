"""a2a-sdk 0.3 as the client of agents of ours: `a2a_sdk_0_3_client.py BINDING VERSION AGENTS`, then see `driving`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a.client import A2ACardResolver, A2AClientHTTPError, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    Message,
    MessageSendConfiguration,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from driving import drive, plainly, spelled

BINDING, _, AGENTS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


async def main() -> None:
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100)) as http:
        cards = {
            name: await A2ACardResolver(http, address).get_agent_card() for name, address in AGENTS.items()
        }

        def client(agent: str = "tasks", streaming: bool = False) -> Client:
            config = ClientConfig(streaming=streaming, httpx_client=http, supported_transports=[BINDING])
            return ClientFactory(config).create(cards[agent])

        async def heard(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
            # An event is a message, or the task so far and what has just changed it.
            async for event in events:
                yield spelled(event[1] or event[0] if isinstance(event, tuple) else event)

        def said(agent: str, params: Any, streaming: bool) -> AsyncIterator[Any]:
            wishes = MessageSendConfiguration.model_validate(params.get("configuration", {}))
            message = Message.model_validate(params["message"])
            return heard(client(agent, streaming).send_message(message, configuration=wishes))

        async def card() -> Any:
            return spelled(cards["tasks"])

        async def send(agent: str, params: Any) -> Any:
            return [item async for item in said(agent, params, False)][-1]

        def stream(agent: str, params: Any) -> AsyncIterator[Any]:
            return said(agent, params, True)

        def subscribe(params: Any) -> AsyncIterator[Any]:
            return heard(client(streaming=True).resubscribe(TaskIdParams.model_validate(params)))

        async def get(params: Any) -> Any:
            return spelled(await client().get_task(TaskQueryParams.model_validate(params)))

        async def cancel(params: Any) -> Any:
            return spelled(await client().cancel_task(TaskIdParams.model_validate(params)))

        async def hook(params: Any) -> Any:
            inner = {"taskId": params.pop("taskId"), "pushNotificationConfig": params}
            config = TaskPushNotificationConfig.model_validate(inner)
            return spelled(await client().set_task_callback(config))

        operations = {"card": card, "send": send, "stream": stream, "get": get, "cancel": cancel}
        await drive({**operations, "subscribe": subscribe, "hook": hook}, named)


def named(wrong: Exception) -> str:
    """By the code, which is all that tells its errors apart; over REST this client knows only the status."""
    if isinstance(wrong, A2AClientJSONRPCError):
        return f"code {wrong.error.code}"
    return f"HTTP {wrong.status_code}" if isinstance(wrong, A2AClientHTTPError) else plainly(wrong)


if __name__ == "__main__":
    asyncio.run(main())
