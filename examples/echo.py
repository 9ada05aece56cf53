"""The smallest agent: what it returns is its answer.

dragoman serve examples/echo.py
dragoman send http://127.0.0.1:8420 "Hello?"
"""

from dragoman import Agent, Turn


async def echo(turn: Turn) -> str:
    """Says what you said."""
    return turn.text


agent = Agent("echo", echo)
