"""An agent that outlives its node: what it did once stays done, and a question waits through a restart.

dragoman serve examples/durable.py --store sqlite:orders.db
dragoman send http://127.0.0.1:8420 "a blue bicycle"

Stop the node, start it again, and only then answer with the command that was printed: the code runs
again from its beginning, but the reservation is the same, because a step's outcome is remembered.
"""

import secrets

from dragoman import Agent, Turn


async def reserve(wish: str) -> str:
    """Something that must not happen twice."""
    return f"R-{secrets.token_hex(4)}"


async def order(turn: Turn) -> str:
    """Takes an order: reserves what you wish, asks whether you mean it, then confirms or lets go."""
    wish = turn.text
    number = await turn.step("reserve", reserve, wish)
    answer = await turn.ask(f"I have reserved {wish} as {number}. Shall I order it? (yes/no)")
    if answer.text.strip().lower() not in ("y", "yes"):
        return f"{number} is let go."
    return f"{number} is ordered: {wish}."


agent = Agent("orders", order, skills=["take_order"])
