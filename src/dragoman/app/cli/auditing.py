"""`dragoman audit`: what the node has kept of who called whom, read from the node or, if none is up, from its store."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
from yarl import URL

from ...client.http import Http, refusal
from ...model.audit import AuditEntry, AuditQuery
from ...model.peer import SystemClock, timestamp
from .clean import clean
from .failures import Failure
from .options import Way
from .places import holder_of, home_store
from .reaching import address_of
from .speech import say, say_json

__all__ = ["show"]

SECONDS_MAX = 30.0


class _Page(msgspec.Struct):
    entries: list[dict[str, Any]]


async def show(
    target: str, bearer: str, store: str | None, asked: dict[str, Any], seconds: float | None, as_json: bool
) -> int:
    """The entries, one to a line."""
    query = AuditQuery(**asked, since=0.0 if seconds is None else time.time() - seconds)
    entries = await _asked(target, bearer, store, query)
    for entry in entries:
        entry["at"] = timestamp(entry["at"])
        if as_json:
            say_json({"outcome": "ok", "task": "", **entry})
        else:
            say(_line(entry))
    return 0


def _line(entry: dict[str, Any]) -> str:
    told = {"outcome": "ok", **entry}
    names = ("at", "caller", "agent", "operation", "outcome", "task", "trace", "via")
    return "  ".join(clean(str(told.get(name) or "-")) for name in names)


async def _asked(target: str, bearer: str, store: str | None, query: AuditQuery) -> list[dict[str, Any]]:
    holder = None if target else holder_of(store)
    if not target and (holder is None or not holder.address):
        return await _from_file(store, query)
    token = bearer or (holder.token if holder is not None else "")
    url = holder.address if holder is not None else address_of(Way(target))
    params = {
        name: str(value) for name, value in msgspec.structs.asdict(query).items() if value not in ("", None)
    }
    http = Http({"Authorization": f"Bearer {token}"} if token else None, SECONDS_MAX)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            response = await http.get(URL(url).origin().join(URL("/api/audit")).with_query(params), None)
            try:
                if response.status in (401, 403):
                    raise Failure(
                        "A2ACLI_ERR_AUTH_FAILED",
                        f"{url} shows its audit log to its operator only",
                        "Give a credential with the scope operator: --bearer TOKEN.",
                    )
                if response.status != 200:
                    raise refusal(response)
                return msgspec.json.decode(await http.read(response), type=_Page).entries
            finally:
                response.release()
    finally:
        await http.aclose()


async def _from_file(store: str | None, query: AuditQuery) -> list[dict[str, Any]]:
    """From the store itself, when no node has it open."""
    from ...store.sqlite import SqliteStore

    path = _path_of(store)
    if path is None:
        raise Failure(
            "A2ACLI_ERR_UNREACHABLE",
            "no TARGET was given, no node is up on this machine, and there is no store to read",
            "Name a node's address, or its store: --store sqlite:PATH.",
        )
    opened = await SqliteStore.open(path, clock=SystemClock())
    try:
        found = await opened.audited(query)
    finally:
        await opened.close()
    return [{"position": position, **_plain(entry)} for position, entry in found]


def _path_of(store: str | None) -> Path | None:
    path = Path((store or f"sqlite:{home_store()}").partition(":")[2].removeprefix("//"))
    return path if path.exists() else None


def _plain(entry: AuditEntry) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    return plain
