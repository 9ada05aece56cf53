"""A node: one process with a store, its agents, and an address. Starts in order, stops in the reverse."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from ..agents.agent import Agent
from ..engine.engine import Engine
from ..model.agent import Conduct
from ..model.peer import Clock, SystemClock
from ..serve import Mount, Site, interfaces
from ..store.memory import MemoryStore
from ..store.store import Store
from ..wire.rest import Rules
from ..work.auditing import Auditing
from ..work.executor import Executor, Runner
from ..work.upkeep import Upkeep
from .admission import door_of, guarded
from .config import Config, ConfigError
from .fetching import Fetching
from .tls import tls_of

if TYPE_CHECKING:
    from .listening import Listening

__all__ = ["Node", "open_store"]

log = logging.getLogger("dragoman.node")

# By how often bytes are put into base64 there.
_FORMS_0_3 = {"twice": "proto", "once": "once"}


class Node:
    """`async with Node([agent], config) as node: print(node.url)`"""

    def __init__(
        self, agents: Sequence[Agent], config: Config | None = None, *, clock: Clock | None = None
    ) -> None:
        if not agents:
            raise ValueError("a node serves at least one agent")
        names = [agent.name for agent in agents]
        if len(set(names)) != len(names):
            raise ValueError(f"two agents have one name: {', '.join(sorted(names))}")
        self.config = config or Config()
        self.agents = list(agents)
        self.clock = clock or SystemClock()
        self.id = self.clock.new_id()
        self.url = ""
        self.on_lost: Callable[[], None] = _die

    async def __aenter__(self) -> Node:
        await self.open()
        await self.listen()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Everything but the socket: the store, the workers, the agents as peers."""
        self.store = await open_store(self.config, self.clock, lambda: self.on_lost())
        conducts = {agent.name: self._conduct(agent) for agent in self.agents}
        self.peers = {name: Engine(self.store, self.clock, conduct) for name, conduct in conducts.items()}
        runners = {agent.name: Runner(conducts[agent.name], agent.drive, agent.stop) for agent in self.agents}
        self.executor = Executor(self.store, self.clock, self.id, runners)
        retention = None if isinstance(self.store, MemoryStore) else self.config.store.retention_seconds
        self.upkeep = Upkeep(
            self.store,
            self.clock,
            self.id,
            self.executor.forget,
            retention,
            self.config.audit.retention_seconds,
        )
        self.auditing = Auditing(self.store)
        self._fetching = Fetching()
        lock = getattr(self.store, "lock", None)
        self.door = door_of(self.config, self._fetching.fetch, lock.holder.token if lock else "")
        self._listening: Listening | None = None
        self.site: Site | None = None
        await self.store.beat(self.id, self.clock.now() + 30.0, self.clock.now())
        self.executor.start()
        self.upkeep.start()
        self.auditing.start()

    def _conduct(self, agent: Agent) -> Conduct:
        """An agent's own rules; where it has none, the node's."""
        rules = msgspec.structs.asdict(self.config.tasks)
        return msgspec.structs.replace(
            agent.conduct, **{name: value for name, value in rules.items() if name not in agent.declared}
        )

    def mount(self, url: str) -> Site:
        """The site at an address: what the socket serves, and what tests ask without one."""
        now = self.clock.now()
        only = len(self.agents) == 1
        serve = self.config.serve
        mounts = [
            Mount(
                agent.name,
                self.peers[agent.name],
                guarded(
                    agent.card(interfaces(url + ("/" if only else f"/agents/{quote(agent.name)}"))),
                    self.door.schemes(),
                ),
                now,
                serve.card,
            )
            for agent in self.agents
        ]
        self.url = url
        self.site = Site(
            mounts,
            body_bytes_max=serve.body_bytes_max,
            ends_at_question=serve.ends_at_question,
            rules=Rules(is_1_0_0=serve.statuses == "1.0.0", form_0_3=_FORMS_0_3[serve.bytes_0_3]),
            health=self._health,
            door=self.door,
            audit=self.auditing.note,
            audited=self.store.audited,
        )
        return self.site

    def _health(self) -> dict[str, Any]:
        return {"node": self.id, "agents": len(self.agents), "turns": self.executor.running}

    async def listen(self) -> None:
        """Bind, serve, and be ready."""
        from .listening import Listening

        config = self.config.node
        self._listening = Listening(config.host, config.port, tls_of(self.config.tls))
        site = self.mount(config.url.rstrip("/") or self._listening.url)
        await self._listening.serve(site)
        lock = getattr(self.store, "lock", None)
        if lock is not None:
            lock.set_address(self.url)

    async def close(self) -> None:
        """Stop taking requests, end streams with a hint, let turns end, keep what they said."""
        if self._listening is not None:
            await self._listening.close()
        elif self.site is not None:
            await self.site.close()
        await self.executor.drain(self.config.node.drain_seconds)
        await self.upkeep.stop()
        await self.auditing.stop()
        await self._fetching.aclose()
        await self.store.close()


async def open_store(config: Config, clock: Clock, on_lost: Callable[[], None]) -> Store:
    """The store that a configuration names."""
    kind, _, place = config.store.url.partition(":")
    if kind == "memory":
        return MemoryStore(tasks_max=config.store.tasks_max, owner_active_max=config.store.owner_active_max)
    if kind == "sqlite":
        from ..store.sqlite import SqliteStore

        path = place.removeprefix("//")
        if not path:
            raise ConfigError("store.url: sqlite: needs a path, as in sqlite:tasks.db")
        return await SqliteStore.open(
            path,
            clock=clock,
            active_tasks_max=config.store.active_tasks_max,
            owner_active_max=config.store.owner_active_max,
            on_lost=on_lost,
        )
    raise ConfigError(f"store.url: there is no store {kind!r}; use memory: or sqlite:PATH")


def _die() -> None:
    log.critical("the store lost its disk: this process promises nothing any more and ends")
    os._exit(74)
