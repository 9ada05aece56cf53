"""fasta2a's client of agents of ours: `fasta2a_client.py BINDING VERSION AGENTS`, then see `driving`.

It can send, stream and read: that is all the methods it has.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
from driving import drive, plainly
from fasta2a.client import A2AClient, UnexpectedResponseError
from fasta2a.schema import AgentCard, Message, MessageSendConfiguration, StreamResponse, Task, agent_card_ta
from pydantic import TypeAdapter

AGENTS = json.loads(sys.argv[3])
CARD = "/.well-known/agent-card.json"


class Told(Exception):
    """An error that this client gives back instead of raising it."""


def result(answer: Any, kind: Any) -> Any:
    if "error" in answer:
        raise Told(f"code {answer['error']['code']}")
    return spelled(kind, answer["result"])


def spelled(kind: Any, value: Any) -> Any:
    return TypeAdapter(kind).dump_python(value, mode="json", by_alias=True)


def said(params: Any) -> dict[str, Any]:
    message = params["message"]
    roled = {**message, "role": message["role"].removeprefix("ROLE_").lower()}
    given = {"message": TypeAdapter(Message).validate_python(roled)}
    if "configuration" in params:
        wishes = {"acceptedOutputModes": [], **params["configuration"]}
        given["configuration"] = TypeAdapter(MessageSendConfiguration).validate_python(wishes)
    return given


async def main() -> None:
    clients = {name: A2AClient(address) for name, address in AGENTS.items()}

    async def card() -> Any:
        async with httpx.AsyncClient() as http:
            found = (await http.get(AGENTS["tasks"] + CARD)).json()
        return spelled(AgentCard, agent_card_ta.validate_python(found))

    async def send(agent: str, params: Any) -> Any:
        return result(await clients[agent].send_message(**said(params)), StreamResponse)

    async def stream(agent: str, params: Any) -> AsyncIterator[Any]:
        async for answer in clients[agent].stream_message(**said(params)):
            yield result(answer, StreamResponse)

    async def get(params: Any) -> Any:
        return result(await clients["tasks"].get_task(params["id"]), Task)

    await drive({"card": card, "send": send, "stream": stream, "get": get}, named)


def named(wrong: Exception) -> str:
    if isinstance(wrong, UnexpectedResponseError):
        return f"HTTP {wrong.status_code}"
    return str(wrong) if isinstance(wrong, Told) else plainly(wrong)


if __name__ == "__main__":
    asyncio.run(main())
