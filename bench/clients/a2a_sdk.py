"""a2a-sdk's client as its documentation makes one, with so many calls in flight. Prints one line of JSON."""

import sys

import uvloop
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest, TaskState
from calls import counted


async def main() -> None:
    url, in_flight, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    client = await ClientFactory(ClientConfig(streaming=False)).create_from_url(url)

    async def call(text: str) -> bool:
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        async for reply in client.send_message(request):
            task = reply.task
        is_completed = task.status.state == TaskState.TASK_STATE_COMPLETED
        return is_completed and task.artifacts[0].parts[0].text == text

    await counted(call, in_flight, seconds)
    await client.close()


uvloop.run(main())
