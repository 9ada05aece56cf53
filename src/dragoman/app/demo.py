"""The demo agent of `dragoman up`: it asks, takes a step, and streams, so that each can be seen at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

from ..agents.agent import Agent
from ..model.card import Skill
from ..work.turn import Turn

__all__ = ["agent"]

# So slow that a person sees it stream.
WORD_SECONDS = 0.03
PLACES = ("the river", "the old fort", "the orchard")


def choose_place() -> str:
    """Chance has a say: a turn that runs again must not choose anew."""
    return random.choice(PLACES)  # noqa: S311 (nothing is at stake)


async def plan(turn: Turn) -> AsyncIterator[str]:
    """Plans an outing with you: asks how many come, picks a place once, and streams the plan."""
    wish = turn.text
    place = await turn.step("choose a place", choose_place)
    guests = await turn.ask("For how many people?")
    lines = (
        f"A plan for: {wish}",
        f"1. Meet at noon, {guests.text.strip()} of you.",
        f"2. Walk to {place}.",
        "3. Come back before it is dark.",
    )
    for line in lines:
        for word in line.split():
            yield f"{word} "
            await asyncio.sleep(WORD_SECONDS)
        yield "\n"


agent = Agent(
    "demo",
    plan,
    skills=[
        Skill(
            "plan",
            "Plan an outing",
            "Asks how many come, then streams a plan.",
            ("demo", "planning"),
            ("plan a picnic",),
        )
    ],
)
