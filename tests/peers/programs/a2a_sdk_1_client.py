"""a2a-sdk 1 as the client of agents of ours: `a2a_sdk_1_client.py BINDING VERSION AGENTS`, then see `driving`.

Version 0.3 is its own compatibility mode: it is what it does with a card that says 0.3.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from driving import drive, plainly
from google.protobuf.json_format import MessageToDict, ParseDict

BINDING, VERSION, AGENTS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


async def main() -> None:
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100)) as http:
        cards = {}
        for name, address in AGENTS.items():
            headers = {"headers": {"A2A-Version": VERSION}}
            cards[name] = await A2ACardResolver(http, address).get_agent_card(http_kwargs=headers)

        def client(agent: str, streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming, httpx_client=http, supported_protocol_bindings=[BINDING]
            )
            return ClientFactory(config).create(cards[agent])

        async def card() -> Any:
            return MessageToDict(cards["tasks"])

        async def send(agent: str, params: Any, version: str = "") -> Any:
            context = ClientCallContext(service_parameters={"A2A-Version": version}) if version else None
            request = ParseDict(params, pb.SendMessageRequest())
            items = client(agent, False).send_message(request, context=context)
            return MessageToDict([item async for item in items][-1])

        async def stream(agent: str, params: Any) -> AsyncIterator[Any]:
            async for item in client(agent, True).send_message(ParseDict(params, pb.SendMessageRequest())):
                yield MessageToDict(item)

        async def subscribe(params: Any) -> AsyncIterator[Any]:
            async for item in client("tasks", True).subscribe(ParseDict(params, pb.SubscribeToTaskRequest())):
                yield MessageToDict(item)

        def asking(request: Any, method: str) -> Any:
            async def ask(params: Any) -> Any:
                answer = await getattr(client("tasks", False), method)(ParseDict(params, request()))
                return MessageToDict(answer)

            return ask

        operations = {
            "card": card,
            "send": send,
            "stream": stream,
            "get": asking(pb.GetTaskRequest, "get_task"),
            "list": asking(pb.ListTasksRequest, "list_tasks"),
            "cancel": asking(pb.CancelTaskRequest, "cancel_task"),
            "subscribe": subscribe,
            "hook": asking(pb.TaskPushNotificationConfig, "create_task_push_notification_config"),
        }
        await drive(operations, plainly)


if __name__ == "__main__":
    asyncio.run(main())
