"""The scripted agents of the exchange vectors: what they do is what the message says."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman import Agent, Extension, Part, Turn

__all__ = ["agents"]

# One part of each kind; `null` is a value like any other.
PARTS = {
    "text": Part(text="plain"),
    "raw": Part(raw=b"\x00\xff", filename="two.bin", media_type="application/octet-stream"),
    "url": Part(url="https://files.example/a.png", media_type="image/png"),
    "data": Part(data={"n": 1, "deep": [True, None, "x"]}, metadata={"unit": "kg"}),
    "null": Part(data=None),
}


async def clerk(turn: Turn) -> Any:
    """Does as it is told."""
    match turn.text.split(" "):
        case ["echo", *words]:
            return " ".join(words)
        case ["say", word, *words]:
            await turn.say(word)
            return " ".join(words)
        case ["chunks", *words]:
            async with turn.stream() as out:
                for n, word in enumerate(words, 1):
                    await out.write(word, last=n == len(words))
        case ["give", *kinds]:
            return [PARTS[kind] for kind in kinds]
        case ["ask", *questions]:
            return " ".join([(await turn.ask(question)).text for question in questions])
        case ["login"]:
            return (await turn.ask("who are you?", auth=True)).text
        case ["complete", *words]:
            await turn.complete(" ".join(words))
        case ["fail", *words]:
            await turn.fail(" ".join(words))
        case ["reject", *words]:
            await turn.reject(" ".join(words))
        case ["raise"]:
            raise RuntimeError("a secret")
        case ["wait"]:
            await asyncio.Event().wait()
        case _:
            return f"{len(turn.parts)} parts"


async def talker(turn: Turn) -> Any:
    """Answers with a message, or with a task when there is something to do."""
    match turn.text.split(" "):
        case ["do", *words]:
            await turn.artifact(" ".join(words))
        case words:
            await turn.reply(f"you said {' '.join(words)}")


async def echo(turn: Turn) -> str:
    """Gives back what it got."""
    return turn.text


def agents() -> list[Agent]:
    """All of them, for one node."""
    return [
        Agent("clerk", clerk, input_modes=["text", "application/json"]),
        Agent("talker", talker, answers="either"),
        Agent("polite", echo, extensions=[Extension("urn:example:polite", "Says please.", required=True)]),
    ]
