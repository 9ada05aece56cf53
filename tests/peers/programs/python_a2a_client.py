"""python-a2a as the client of agents of ours: `python_a2a_client.py BINDING VERSION AGENTS`, then see `driving`.

What it gives back for a message is a message; tasks it can read and cancel.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from driving import drive, plainly
from python_a2a import A2AClient, Message, Task, TaskState

AGENTS = json.loads(sys.argv[3])


class Told(Exception):
    """An error that this client gives back instead of raising it."""


def main() -> None:
    # Else its messages are in a form of its own.
    Task.enable_google_a2a_compatibility()
    clients = {name: A2AClient(address, timeout=10) for name, address in AGENTS.items()}

    async def card() -> Any:
        return clients["tasks"].get_agent_card().to_dict()

    async def send(agent: str, params: Any) -> Any:
        message = Message.from_google_a2a(params["message"])
        answer = await asyncio.to_thread(clients[agent].send_message, message)
        if answer.content.type == "error":
            raise Told(answer.content.message)
        return answer.to_google_a2a()

    def asking(method: str) -> Any:
        async def ask(params: Any) -> Any:
            task = await asyncio.to_thread(getattr(clients["tasks"], method), params["id"])
            if task.status.message and "error" in task.status.message:
                raise Told(task.status.message["error"])
            assert task.status.state is not TaskState.UNKNOWN
            return task.to_google_a2a()

        return ask

    operations = {"card": card, "send": send, "get": asking("get_task"), "cancel": asking("cancel_task")}
    asyncio.run(drive(operations, plainly))


if __name__ == "__main__":
    main()
