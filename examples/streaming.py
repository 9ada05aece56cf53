"""An agent that writes while it thinks: each chunk it yields is told as soon as it is durable.

dragoman serve examples/streaming.py
dragoman send http://127.0.0.1:8420 "to be or not to be" --stream
"""

import asyncio
from collections.abc import AsyncIterator

from dragoman import Agent, Turn


async def spell(turn: Turn) -> AsyncIterator[str]:
    """Spells your words backwards, one after the other."""
    words = turn.text.split()
    await turn.say(f"Turning {len(words)} words around")
    for word in words:
        yield word[::-1] + " "
        await asyncio.sleep(0.05)


agent = Agent("speller", spell, skills=["spell_backwards"])
