"""A node in this process, without a socket: its peers to ask, its site to send raw requests to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..agents.agent import Agent
from ..app.config import Config
from ..app.node import Node
from ..model.peer import Clock
from ..serve import Site
from ..work.turn import Turn

__all__ = ["local_app", "local_node"]


@asynccontextmanager
async def local_node(
    *agents: Agent, config: Config | None = None, clock: Clock | None = None
) -> AsyncIterator[Node]:
    """A started node: `node.peers[name]` answers calls and watches."""
    node = Node(agents, config, clock=clock)
    await node.open()
    try:
        yield node
    finally:
        await node.close()


@asynccontextmanager
async def local_app(*agents: Agent, config: Config | None = None) -> AsyncIterator[Site]:
    """The ASGI application of a node that listens nowhere; without agents, of one that echoes."""
    async with local_node(*(agents or (Agent("echo", _echo),)), config=config) as node:
        yield node.mount("http://node.local")


async def _echo(turn: Turn) -> str:
    return turn.text
