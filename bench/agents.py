"""Our row's agents, as an author writes them: an echo, an answer in chunks, and one that waits for a file."""

import asyncio
import os

from dragoman import Agent, Turn


async def say_again(turn: Turn) -> str:
    return turn.text


async def say_in_chunks(turn: Turn):
    # The pause makes each chunk its own write: a model's tokens do not arrive together either.
    for number in range(int(turn.text)):
        yield f"chunk {number} "
        await asyncio.sleep(0)


async def wait_or_echo(turn: Turn) -> str:
    gate = os.environ.get("BENCH_GATE", "")
    # A file, because the gate must outlive the process that is killed.
    while turn.text.startswith("wait") and not os.path.exists(gate):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.1)
    return turn.text


echo = Agent("echo", say_again, description="Says the message again.")
chunks = Agent("chunks", say_in_chunks, description="Answers with as many chunks as the message says.")
gated = Agent(
    "gated", wait_or_echo, description="Echoes; a message that begins with 'wait' waits for a file."
)
