"""The agent that the protocol's conformance kit is let loose on: what it does is decided by the message id.

`python tests/tck/agent.py --profile basic` prints the address it serves and stays until it is told to end.
Nothing of the kit is in here; it asks for the behaviours by these prefixes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from dragoman import Agent, Extension, Node, Part, Skill, Turn
from dragoman.app.config import load

MODES = ("text/plain", "application/json")
REQUIRED = Extension(
    "urn:a2a:tck:required-extension", "What the kit requires, when it asks us to.", required=True
)
# The kit's streaming timeout is 2 s, and it wants a task that goes on for twice as long.
LONG_SECONDS = 4.0
# More than the kit of 0.3 ever says to one task.
ANSWERS_MAX = 50
FILE = Part(raw=b"Generated file content", filename="output.txt", media_type="text/plain")


async def complete(turn: Turn) -> None:
    await turn.complete("Hello from the agent under test")


async def text(turn: Turn) -> None:
    await turn.artifact("Generated text content")


async def file(turn: Turn) -> None:
    await turn.artifact(FILE)


async def file_url(turn: Turn) -> None:
    await turn.artifact(
        Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")
    )


async def data(turn: Turn) -> None:
    await turn.artifact({"key": "value", "count": 42})


async def message(turn: Turn) -> None:
    await turn.reply("Direct message response")


async def ask(turn: Turn) -> None:
    await turn.ask("What else?")
    await take(turn)


async def reject(turn: Turn) -> None:
    await turn.reject("rejected")


async def stream(turn: Turn) -> None:
    await turn.say("at it")
    await turn.artifact("Streamed text content")


async def stream_file(turn: Turn) -> None:
    await turn.say("at it")
    await turn.artifact(FILE)


async def stream_chunks(turn: Turn) -> None:
    await turn.say("at it")
    async with turn.stream("chunked") as out:
        await out.write("chunk-1 ")
        await out.write("chunk-2", last=True)


async def long(turn: Turn) -> None:
    await turn.say("at it")
    await asyncio.sleep(LONG_SECONDS)


# In this order: the first prefix that fits decides.
BEHAVIOURS: dict[str, Callable[[Turn], Awaitable[None]]] = {
    "tck-complete-task": complete,
    "tck-artifact-text": text,
    "tck-artifact-file-url": file_url,
    "tck-artifact-file": file,
    "tck-artifact-data": data,
    "tck-message-response": message,
    "tck-input-required": ask,
    "tck-reject-task": reject,
    "tck-stream-001": stream,
    "tck-stream-002": complete,
    "tck-stream-003": stream,
    "tck-stream-ordering-001": stream,
    "tck-stream-artifact-text": stream,
    "tck-stream-artifact-file": stream_file,
    "tck-stream-artifact-chunked": stream_chunks,
    "test-resubscribe-message-id": long,
}


async def converse(turn: Turn) -> None:
    """For the kit of 0.3: it goes on with any task, cancels any, and gives no hints by message id."""
    for _ in range(ANSWERS_MAX):
        await turn.ask("What else?")


async def take(turn: Turn) -> None:
    said = turn.message.message_id
    await next((do for prefix, do in BEHAVIOURS.items() if said.startswith(prefix)), complete)(turn)


def agent(*, streaming: bool = True, requires_extension: bool = False, is_elder: bool = False) -> Agent:
    return Agent(
        "tck",
        converse if is_elder else take,
        description="Does what the conformance kit asks for by message id.",
        skills=[Skill("tck", "TCK", "Behaviours by message id", ("tck",))],
        input_modes=MODES,
        output_modes=MODES,
        answers="task" if is_elder else "either",
        streaming=streaming,
        extensions=[REQUIRED] if requires_extension else [],
    )


async def serve(port: int, store: str, profile: str) -> None:
    # The rest comes from the environment: DRAGOMAN_SERVE_STATUSES=1.0.0 is the kit's own edition.
    config = load(flags={"node.port": port, "store.url": store})
    under_test = agent(
        streaming=profile != "minimal", requires_extension=profile == "extension", is_elder=profile == "elder"
    )
    async with Node([under_test], config) as node:
        ended = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, ended.set)
        print(node.url, flush=True)
        await ended.wait()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--port", type=int, default=0)
    asked.add_argument("--store", default="memory:")
    asked.add_argument("--profile", choices=["basic", "minimal", "extension", "elder"], default="basic")
    given = asked.parse_args()
    asyncio.run(serve(given.port, given.store, given.profile))
    # A turn of the kit's may still sleep in a thread; nothing is left to wait for.
    os._exit(0)


if __name__ == "__main__":
    main()
