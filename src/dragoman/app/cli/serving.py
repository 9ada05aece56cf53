"""`serve` and `up`: a node in this process, from its configuration to its last signal."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from ...agents.agent import Agent
from ...serve import CardForm
from ..config import Config, ConfigError, load
from ..gateway import Gateway
from ..logs import LEVELS, log_to
from ..node import Node
from ..remote import RemoteAgent
from .failures import Failure
from .options import Way
from .places import home_folder, home_store
from .reaching import address_of
from .speech import Unheard, command, note, say

__all__ = ["gateway", "run_fast", "serve", "up"]

# A node's objects live as long as it does, or a moment: looking through all of them seldom pays.
COLLECT_AFTER = (50_000, 50, 50)


def serve(targets: Sequence[str], file: str | None, flags: dict[str, Any]) -> int:
    """Serve an author's agents until told to stop."""
    from .loading import load_agents

    config = _configured(file, flags)
    urls = [target for target in targets if target.startswith(("http://", "https://"))]
    agents = load_agents([target for target in targets if target not in urls])
    return run_fast(_until_stopped(agents, config, lambda node: _told(node, "hello"), urls))


def up(file: str | None, flags: dict[str, Any]) -> int:
    """A node with the demo agent and a store that stays."""
    from ..demo import agent

    config = _configured(file, flags)
    if "store.url" not in config.sources:
        folder = home_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config.store.url = f"sqlite:{home_store()}"
    return run_fast(
        _until_stopped([agent], config, lambda node: _told(node, "plan a picnic", config.store.url))
    )


def _configured(file: str | None, flags: dict[str, Any]) -> Config:
    config = load(file, flags=flags)
    if config.log.level not in LEVELS:
        raise ConfigError(f"log.level: {config.log.level!r} is none of {', '.join(LEVELS)}")
    if config.log.format not in ("text", "json"):
        raise ConfigError(f"log.format: {config.log.format!r} is neither text nor json")
    log_to(level=config.log.level, form=config.log.format)
    return config


def run_fast(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end on the quickest loop there is."""
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop

    return uvloop.run(work)


async def _until_stopped(
    agents: Sequence[Agent], config: Config, told: Callable[[Node], None], urls: Sequence[str] = ()
) -> int:
    stopped = _stopped_by_signals()
    async with AsyncExitStack() as stack:
        remote = []
        for url in urls:
            remote.append(await RemoteAgent.found(url))
            stack.push_async_callback(remote[-1].aclose)
        node = Node([*agents, *remote], config)
        return await _served(node, told, stopped)


async def _served(node: Node, told: Callable[[Node], None], stopped: asyncio.Event) -> int:
    await _opened(node)
    try:
        try:
            await node.listen()
        except ConfigError as wrong:
            raise Failure("DRAGOMAN_ERR_ADDRESS", str(wrong)) from None
        _settle_memory()
        told(node)
        await stopped.wait()
    finally:
        await node.close()
    return 0


async def gateway(way: Way, host: str, port: int, url: str, card: CardForm) -> int:
    """Serve somebody else's agent until told to stop."""
    stopped = _stopped_by_signals()
    gate = Gateway(
        address_of(way),
        host=host,
        port=port,
        url=url,
        headers=way.headers,
        trust=way.trust,
        dialect=way.dialect,
        binding=way.binding,
        timeout_seconds=way.timeout,
        card=card,
    )
    try:
        await gate.open()
    except ConfigError as wrong:
        raise Failure("DRAGOMAN_ERR_ADDRESS", str(wrong)) from None
    try:
        _settle_memory()
        _say_where(gate.url)
        behind = gate.client.dialect
        note(f"  behind               {address_of(way)} by {behind.binding} {behind.version}")
        note(f"Try:   {command('send', gate.url, 'hello')}")
        note("Stop:  Ctrl-C")
        await stopped.wait()
    finally:
        await gate.close()
    return 0


def _stopped_by_signals() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stop, stopped, number)
    return stopped


def _settle_memory() -> None:
    """What is there now stays: the collector need not look at it again."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


async def _opened(node: Node) -> None:
    url = node.config.store.url
    try:
        await node.open()
    except (OSError, ValueError) as wrong:
        raise Failure("DRAGOMAN_ERR_STORE", f"the store {url} cannot be opened: {wrong}") from None
    except Exception as wrong:
        if not type(wrong).__module__.startswith("apsw"):
            raise
        raise Failure(
            "DRAGOMAN_ERR_STORE",
            f"the store {url} cannot be opened: {wrong}",
            "Is the file a Dragoman store?",
        ) from None


def _stop(stopped: asyncio.Event, number: int) -> None:
    if stopped.is_set():
        # Asked twice: at once. What was said is in the log already.
        os._exit(128 + number)
    stopped.set()


def _told(node: Node, words: str, store: str = "") -> None:
    """Say where the node is: one line for programs, the rest for people."""
    _say_where(node.url)
    if not sys.stderr.isatty() and not store:
        return
    for agent in node.agents:
        path = "" if len(node.agents) == 1 else f"/agents/{agent.name}"
        note(f"  {agent.name:<20} {node.url}{path}/.well-known/agent-card.json")
    if store:
        note(f"  {'store':<20} {_short(store)}")
    note(f"Try:   {command('send', node.url, words)}")
    note("Stop:  Ctrl-C")


def _say_where(url: str) -> None:
    try:
        say(f"listening {url}")
    except Unheard:
        # Whoever wanted to know is gone; the node is here for others.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _short(store: str) -> str:
    return store.replace(str(Path.home()), "~", 1)
