"""Whom a command talks to: what a person calls an agent, as an address; and the node of this machine."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...client.client import Client
from .failures import Failure
from .options import Way
from .places import holder_of, is_address
from .speech import command, note

if TYPE_CHECKING:
    from .seen import Seen

__all__ = ["address_of", "reach", "run"]


def reach(way: Way) -> Client:
    """A client for the agent."""
    return Client(
        address_of(way),
        headers=way.headers,
        trust=way.trust,
        # The time that was given is for everything together and watched elsewhere.
        timeout_seconds=None if way.timeout is not None else 300,
        dialect=way.dialect,
        binding=way.binding,
    )


def address_of(way: Way) -> str:
    """The URL of the agent: as it was given, by its host, or by its name on this machine's node."""
    target = way.target
    if target.startswith(("http://", "https://")):
        if not _has_host(target):
            raise Failure(
                "A2ACLI_ERR_USAGE", f"{target!r} names no host", "It is like http://127.0.0.1:8420."
            )
        return target
    if target and is_address(target):
        return f"{'http' if _is_near(target) else 'https'}://{target}"
    if target and not re.fullmatch(r"[^/\s]+", target):
        raise Failure(
            "A2ACLI_ERR_USAGE",
            f"{target!r} is not the address of an agent",
            "It is like http://127.0.0.1:8420.",
        )
    node = _local(way.store)
    return f"{node}/agents/{target}" if target else node


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_near(target: str) -> bool:
    host = target.partition("/")[0]
    host = host[1:].partition("]")[0] if host[0] == "[" else host.partition(":")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _local(store: str | None) -> str:
    """The address of the node that has the store open."""
    from ..config import load

    if store is None:
        config = load()
        store = config.store.url if "store.url" in config.sources else None
    holder = holder_of(store)
    if holder is not None and holder.address:
        return holder.address
    raise Failure(
        "A2ACLI_ERR_UNREACHABLE",
        f"no node has the store {store} open"
        if store
        else "no TARGET was given, and no node is up on this machine",
        f"Name an agent's address, or start one: {command('up')}",
    )


def run(work: Coroutine[Any, Any, int], seen: Seen) -> int:
    """Run a conversation. Interrupted, it leaves the agent's task alone and says how to find it again."""
    if seen.way.debug:
        from ..logs import log_to

        log_to(level="debug")
    gc.freeze()
    gc.enable()
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        where = f"; the task goes on: {seen.where()}" if seen.task_id else ""
        note(f"Interrupted{where}")
        return 130
