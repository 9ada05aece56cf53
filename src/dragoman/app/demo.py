"""The demo agent of `dragoman up`: it streams, asks, and takes a step, so that each can be seen at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ..agents.agent import Agent
from ..model.card import Skill
from ..work.turn import Turn

__all__ = ["agent"]

PAUSE_SECONDS = 0.15
PLACES = ("the river", "the old fort", "the orchard")


def choose_place(wish: str) -> str:
    """Something with an outcome that must stay the same when the turn is run again."""
    import random

    return random.choice(PLACES)  # noqa: S311


async def take(turn: Turn) -> AsyncIterator[str]:
    """Plans an outing with you: asks how many come, picks a place once, and streams the plan."""
    answer = await turn.ask("For how many people?")
    guests = next((word for word in answer.text.split() if word.isdigit()), answer.text.strip() or "some")
    place = await turn.step("choose a place", choose_place, turn.history[0].text)
    for line in (
        f"A plan for: {turn.history[0].text}\n",
        f"  1. Meet the {guests} of you at noon.\n",
        f"  2. Walk to {place}.\n",
        "  3. Come back before it is dark.\n",
    ):
        for word in line.splitlines(keepends=True)[0].split(" "):
            yield word if word.endswith("\n") else word + " "
            await asyncio.sleep(PAUSE_SECONDS / 5)


agent = Agent(
    "demo",
    take,
    version="1.0.0",
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
