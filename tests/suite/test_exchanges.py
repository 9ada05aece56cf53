"""Every exchange vector, over every store and by every way in, through the client that people hold. Ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import AgentError, Client, Message, Node, Page, Task
from dragoman.app.config import Config, load
from dragoman.model.errors import ERRORS
from dragoman.model.operations.a2a import OPERATIONS, Operation
from dragoman.model.peer import Caller
from dragoman.testing import local_node
from tests.suite.agents import agents
from tests.suite.words import differences, filled, in_words, value_of

VECTORS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[1] / "vectors" / "exchange").glob("*.json"))
}
STORES: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory:",
    "sqlite": lambda folder: f"sqlite:{folder}/tasks.db",
}


class Way(NamedTuple):
    """A way in: how a node is opened for it, what the client is given, and whether it has an operation."""

    node: Callable[[Config], AbstractAsyncContextManager[Node]]
    target: Callable[[Node, str], Any]
    has: Callable[[Operation], bool]


WAYS = {
    "here": Way(
        lambda config: local_node(*agents(), config=config),
        lambda node, agent: node.peers[agent],
        lambda row: True,
    ),
    "socket": Way(
        lambda config: Node(agents(), config),
        lambda node, agent: f"{node.url}/agents/{agent}",
        lambda row: bool(row.jsonrpc_1_0),
    ),
}
REPLIES = {Task: "task", Message: "message", Page: "page"}


def exchanges(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """All exchanges of a vector in their order; the one that the vector is about is among them."""
    one = {name: vector[name] for name in ("request", "expect", "meanwhile") if name in vector}
    return [*vector.get("given", ()), one, *vector.get("then", ())]


def unfolded(outer: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """These exchanges, and those that are held while they are."""
    for exchange in outer:
        yield exchange
        yield from unfolded(exchange.get("meanwhile", []))


def ways(vector: dict[str, Any]) -> list[str]:
    """The ways that have all its operations; fewer if it says so, as for what only a codec refuses."""
    asked = {exchange["request"]["operation"] for exchange in unfolded(exchanges(vector))}
    able = [way for way, it in WAYS.items() if all(it.has(OPERATIONS[name]) for name in asked)]
    return [way for way in able if way in vector.get("ways", WAYS)]


CELLS = [
    pytest.param(name, store, way, id=f"{name}-{store}-{way}")
    for name, vector in VECTORS.items()
    for store in STORES
    for way in ways(vector)
]


@dataclass
class Conversation:
    """One vector being talked through: the clients so far, and the names bound so far."""

    node: Node
    way: str
    agent: str
    names: dict[str, Any] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)

    async def hold(self, exchange: dict[str, Any]) -> None:
        """Ask, and be answered as expected."""
        seen = await self._answer(exchange)
        wrong = list(differences(exchange["expect"], seen, self.names))
        assert wrong == [], f"{exchange['request']} was answered {json.dumps(seen, indent=1)}"

    async def _answer(self, exchange: dict[str, Any]) -> dict[str, Any]:
        asked = filled(exchange["request"], self.names)
        row = OPERATIONS[asked.pop("operation")]
        caller = value_of(Caller, asked.pop("caller", {}))
        after = asked.pop("after", None)
        request = value_of(row.request, asked)
        client = self._client(exchange.get("agent", self.agent))
        try:
            if row.kind == "call":
                value = (await client.call(caller, request)).value
                return {REPLIES[type(value)]: in_words(value)}
            return {"events": await self._events(client, caller, request, after, exchange)}
        except AgentError as wrong:
            return {"error": wrong.name}

    async def _events(
        self, client: Client, caller: Caller, request: Any, after: int | None, exchange: dict[str, Any]
    ) -> list[Any]:
        """All events of a stream; each exchange of `meanwhile` is held once so many of them were seen."""
        seen: list[Any] = []
        meanwhile = list(exchange.get("meanwhile", ()))
        async with aclosing(client.watch(caller, request, after)) as batches:
            async for logged in (logged async for batch in batches for logged in batch):
                seen.append(in_words(logged.event))
                while meanwhile and meanwhile[0]["once"] == len(seen):
                    # It may speak of what the events so far have named.
                    list(differences(exchange["expect"], {"events": seen}, self.names))
                    await self.hold(meanwhile.pop(0))
        assert meanwhile == [], f"the stream ended after {len(seen)} events: {json.dumps(seen, indent=1)}"
        return seen

    def _client(self, agent: str) -> Client:
        if agent not in self.clients:
            self.clients[agent] = Client(WAYS[self.way].target(self.node, agent))
        return self.clients[agent]


@asynccontextmanager
async def conversation(
    vector: dict[str, Any], store: str, way: str, folder: Path
) -> AsyncIterator[Conversation]:
    flags = {"store.url": STORES[store](folder), "node.port": 0, "node.drain_seconds": 0.0}
    async with WAYS[way].node(load(environ={}, flags=flags)) as node:
        talk = Conversation(node, way, vector["agent"])
        try:
            yield talk
        finally:
            for client in talk.clients.values():
                await client.aclose()


@pytest.mark.within(20)
@pytest.mark.parametrize(("name", "store", "way"), CELLS)
async def test_an_exchange_goes_as_its_vector_says(name: str, store: str, way: str, tmp_path: Path):
    async with conversation(VECTORS[name], store, way, tmp_path) as talk:
        for exchange in exchanges(VECTORS[name]):
            await talk.hold(exchange)


def test_every_operation_has_exchange_vectors():
    shown = {vector["request"]["operation"] for vector in VECTORS.values()}
    assert shown == set(OPERATIONS)


def test_every_vector_is_spelled_as_the_others_are():
    names = {agent.name for agent in agents()}
    parts = {"about", "agent", "ways", "given", "request", "meanwhile", "expect", "then"}
    for name, vector in VECTORS.items():
        assert vector.keys() <= parts, name
        assert vector["about"].endswith("."), name
        assert vector["agent"] in names, name
        assert set(vector.get("ways", ())) <= set(WAYS), name
        for exchange in unfolded(exchanges(vector)):
            assert exchange.keys() <= {"agent", "once", "request", "meanwhile", "expect"}, name
            assert exchange.get("agent", vector["agent"]) in names, name
            kind = OPERATIONS[exchange["request"]["operation"]].kind
            assert kind == "watch" or "meanwhile" not in exchange, name
            [(answer, said)] = exchange["expect"].items()
            assert answer == "error" or (answer == "events") == (kind == "watch"), name
            assert answer != "error" or said in ERRORS, name
