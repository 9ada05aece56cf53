"""Our client as the README shows it, with so many calls in flight. Prints one line of JSON."""

import sys

import uvloop
from calls import counted

from dragoman import Client, State


async def main() -> None:
    url, in_flight, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    dialect, binding = sys.argv[4:] or ("", "")
    headers = {"Authorization": "Bearer bench-key-0123456789"}
    async with Client(url, headers=headers, dialect=dialect, binding=binding) as agent:

        async def call(text: str) -> bool:
            task = await agent.send(text)
            return task.state is State.COMPLETED and task.artifacts[0].parts[0].text == text

        await counted(call, in_flight, seconds)


uvloop.run(main())
