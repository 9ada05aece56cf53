"""Every exchange vector, over every store and by every way in, through the client that people hold. Ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import AgentError, Client, Message, Node, Page, RemoteAgent, Task
from dragoman.app.config import Config, load
from dragoman.app.gateway import Gateway
from dragoman.model.errors import ERRORS
from dragoman.model.operations.a2a import OPERATIONS
from dragoman.model.peer import Caller
from dragoman.testing import local_node
from dragoman.wire.versions import DIALECTS, Dialect
from tests.suite.agents import agents
from tests.suite.losses import as_told, can_ask, told_otherwise
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
    """A way in: how a place is opened for it and left again, and the dialects that it goes through.

    A place gives the client's target for an agent. In process there is no dialect.
    """

    place: Callable[[Config, Dialect | None], AbstractAsyncContextManager[Place]]
    stores: tuple[str, ...] = ("memory", "sqlite")
    dialects: tuple[Dialect | None, ...] = tuple(DIALECTS.values())


class Place(NamedTuple):
    """Somewhere agents can be asked."""

    node: Node
    client: Callable[[str], Client]


@asynccontextmanager
async def _here(config: Config, dialect: Dialect | None) -> AsyncIterator[Place]:
    async with local_node(*agents(), config=config) as node:
        yield Place(node, lambda agent: Client(node.peers[agent]))


def _speaking(url: str, dialect: Dialect | None) -> Client:
    assert dialect is not None, "what goes over a socket is said in some version"
    return Client(url, dialect=dialect.version, binding=dialect.binding)


@asynccontextmanager
async def _socket(config: Config, dialect: Dialect | None) -> AsyncIterator[Place]:
    async with Node(agents(), config) as node:
        yield Place(node, lambda agent: _speaking(f"{node.url}/agents/{agent}", dialect))


@asynccontextmanager
async def _gateways(config: Config, outer: Dialect | None, inner: Dialect | None) -> AsyncIterator[Place]:
    """A gateway before each agent, spoken to in one dialect and speaking another to the agent."""
    async with Node(agents(), config) as node, AsyncExitStack() as stack:
        urls = {}
        for name in node.peers:
            behind = {} if inner is None else {"dialect": inner.version, "binding": inner.binding}
            gateway = Gateway(f"{node.url}/agents/{name}", port=0, **behind)
            urls[name] = (await stack.enter_async_context(gateway)).url
        outer = outer or DIALECTS["JSONRPC", "1.0"]
        yield Place(node, lambda agent: _speaking(urls[agent], outer))


@asynccontextmanager
async def _hub(config: Config, dialect: Dialect | None) -> AsyncIterator[Place]:
    """A node whose agents are those of another node, spoken to in this dialect."""
    behind = load(environ={}, flags={"node.port": 0, "node.drain_seconds": 0.0})
    assert dialect is not None, "what is elsewhere is spoken to in some version"
    async with Node(agents(), behind) as node, AsyncExitStack() as stack:
        remote = []
        for name in node.peers:
            url = f"{node.url}/agents/{name}"
            found = await RemoteAgent.found(url, name=name, dialect=dialect.version, binding=dialect.binding)
            stack.push_async_callback(found.aclose)
            remote.append(found)
        hub = await stack.enter_async_context(local_node(*remote, config=config))
        yield Place(hub, lambda agent: Client(hub.peers[agent]))


WAYS = {
    "here": Way(_here, dialects=(None,)),
    "socket": Way(_socket),
    "before a gateway": Way(lambda config, dialect: _gateways(config, dialect, None), ("memory",)),
    # A hub keeps what its callers say as they said it: dialects that lose nothing tell the same on both sides.
    "hub": Way(_hub, dialects=tuple(one for one in DIALECTS.values() if not told_otherwise(one))),
    "behind a gateway": Way(lambda config, dialect: _gateways(config, None, dialect), ("memory",)),
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


def is_expressible(vector: dict[str, Any], dialect: Dialect | None) -> bool:
    """Whether a version over a binding has what the vector is about: the tables say."""
    if dialect is None:
        return True
    asked = [exchange["request"] for exchange in unfolded(exchanges(vector))]
    has_all = all(dialect.name_of(OPERATIONS[one["operation"]]) and can_ask(dialect, one) for one in asked)
    return has_all and all(getattr(dialect, name) == value for name, value in vector.get("needs", {}).items())


def cells() -> Iterator[Any]:
    """Every vector, over every store and every way in, in every dialect that can express it."""
    for name, vector in VECTORS.items():
        for way, it in WAYS.items():
            for dialect in it.dialects if way in vector.get("ways", WAYS) else ():
                if is_expressible(vector, dialect):
                    spoken = f"-{dialect.version}-{dialect.binding}" if dialect else ""
                    for store in it.stores:
                        yield pytest.param(name, store, way, dialect, id=f"{name}-{store}-{way}{spoken}")


@dataclass
class Conversation:
    """One vector being talked through: the clients so far, and the names bound so far."""

    place: Place
    dialect: Dialect | None
    agent: str
    names: dict[str, Any] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)

    async def hold(self, exchange: dict[str, Any]) -> None:
        """Ask, and be answered as expected."""
        seen = await self._answer(exchange)
        wrong = list(differences(self._expected(exchange), seen, self.names))
        assert wrong == [], f"{exchange['request']} was answered {json.dumps(seen, indent=1)}"

    def _expected(self, exchange: dict[str, Any]) -> dict[str, Any]:
        expected: dict[str, Any] = exchange["expect"]
        return expected if self.dialect is None else as_told(self.dialect, expected)

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
                    list(differences(self._expected(exchange), {"events": seen}, self.names))
                    await self.hold(meanwhile.pop(0))
        assert meanwhile == [], f"the stream ended after {len(seen)} events: {json.dumps(seen, indent=1)}"
        return seen

    def _client(self, agent: str) -> Client:
        if agent not in self.clients:
            self.clients[agent] = self.place.client(agent)
        return self.clients[agent]


@asynccontextmanager
async def conversation(
    vector: dict[str, Any], store: str, way: str, dialect: Dialect | None, folder: Path
) -> AsyncIterator[Conversation]:
    flags = {"store.url": STORES[store](folder), "node.port": 0, "node.drain_seconds": 0.0}
    async with WAYS[way].place(load(environ={}, flags=flags), dialect) as place:
        talk = Conversation(place, dialect, vector["agent"])
        try:
            yield talk
        finally:
            for client in talk.clients.values():
                await client.aclose()


@pytest.mark.within(20)
@pytest.mark.parametrize(("name", "store", "way", "dialect"), list(cells()))
async def test_an_exchange_goes_as_its_vector_says(
    name: str, store: str, way: str, dialect: Dialect | None, tmp_path: Path
):
    async with conversation(VECTORS[name], store, way, dialect, tmp_path) as talk:
        for exchange in exchanges(VECTORS[name]):
            await talk.hold(exchange)


def test_every_operation_has_exchange_vectors():
    shown = {vector["request"]["operation"] for vector in VECTORS.values()}
    assert shown == set(OPERATIONS)


def test_every_vector_is_spelled_as_the_others_are():
    names = {agent.name for agent in agents()}
    parts = {"about", "agent", "ways", "needs", "given", "request", "meanwhile", "expect", "then"}
    for name, vector in VECTORS.items():
        assert vector.keys() <= parts, name
        assert vector["about"].endswith("."), name
        assert vector["agent"] in names, name
        assert set(vector.get("ways", ())) <= set(WAYS), name
        assert set(vector.get("needs", ())) <= {field.name for field in fields(Dialect)}, name
        for exchange in unfolded(exchanges(vector)):
            assert exchange.keys() <= {"agent", "once", "request", "meanwhile", "expect"}, name
            assert exchange.get("agent", vector["agent"]) in names, name
            kind = OPERATIONS[exchange["request"]["operation"]].kind
            assert kind == "watch" or "meanwhile" not in exchange, name
            [(answer, said)] = exchange["expect"].items()
            assert answer == "error" or (answer == "events") == (kind == "watch"), name
            assert answer != "error" or said in ERRORS, name
