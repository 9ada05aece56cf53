"""Whether a node can run on this machine: what it needs, looked at one by one, with what to do about each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ..store.lock import Holder, read_lock
from .config import Config

__all__ = ["Finding", "examine"]

FREE_BYTES_MIN, FREE_BYTES_FEW = 50_000_000, 1_000_000_000
# No clock shows a time before this program was written.
WRITTEN_AT = 1_790_000_000
CLOCK_SECONDS_MAX = 60.0
CARD_SECONDS_MAX = 5.0


class Finding(Struct, frozen=True):
    """One thing looked at."""

    what: str
    state: Literal["ok", "warning", "blocked"]
    words: str
    advice: str = ""


async def examine(config: Config) -> list[Finding]:
    """Everything, in the order in which a node needs it."""
    path = store_path(config.store.url)
    holder = read_lock(path) if path is not None else None
    findings = [
        *_python(),
        Finding("config", "ok", _sources(config)),
        _clock(path),
        *_store(config.store.url, path, holder),
        await asyncio.to_thread(_port, config.node.host, config.node.port, holder),
    ]
    if holder is not None and holder.address:
        findings.append(await _card(holder.address))
    return findings


def store_path(url: str) -> Path | None:
    """The file of a store; None when it has none."""
    kind, _, place = url.partition(":")
    return Path(place.removeprefix("//")) if kind == "sqlite" and place else None


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    try:
        import apsw
        import uvicorn
        import uvloop  # noqa: F401
    except ImportError as wrong:
        yield Finding("python", "blocked", f"{version}: {wrong}", "Install dragoman again.")
        return
    yield Finding(
        "python", "ok", f"{version}, SQLite {apsw.sqlite_lib_version()}, uvicorn {uvicorn.__version__}"
    )


def _sources(config: Config) -> str:
    sources = sorted(set(config.sources.values()))
    return f"valid, from {', '.join(sources)}" if sources else "valid, all defaults"


def _clock(path: Path | None) -> Finding:
    """Due times come from the clock: it is later than this program and than what the store was given."""
    now = time.time()
    last = path.stat().st_mtime if path is not None and path.exists() else 0.0
    words = f"it says {_date(now)}"
    if now < WRITTEN_AT:
        return Finding("clock", "blocked", words, "Set the machine's clock, and run a time service.")
    if last > now + CLOCK_SECONDS_MAX:
        words = f"{words}; the store was written at {_date(last)}"
        return Finding("clock", "warning", words, "Which is right?")
    return Finding("clock", "ok", words)


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _store(url: str, path: Path | None, holder: Holder | None) -> Iterator[Finding]:
    if path is None:
        if url.startswith("memory:"):
            yield Finding(
                "store",
                "warning",
                "memory: tasks end with the process",
                "--store sqlite:tasks.db keeps them.",
            )
        else:
            yield Finding("store", "blocked", f"there is no store {url!r}", "Use memory: or sqlite:PATH.")
        return
    folder = path.parent if path.parent.exists() else _first_that_is(path.parent)
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        yield Finding("store", "blocked", f"{path} cannot be written", f"Let this account write to {folder}.")
        return
    yield _disk(folder)
    if holder is not None:
        at = f" at {holder.address}" if holder.address else ""
        yield Finding("store", "ok", f"{path} is open in process {holder.pid}{at}")
    else:
        yield _file(path)


def _first_that_is(folder: Path) -> Path:
    return next(it for it in (folder, *folder.parents) if it.exists())


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    words = f"{free / 1e9:.1f} GB free at {folder}"
    if free < FREE_BYTES_MIN:
        return Finding("disk", "blocked", words, "Make room: a full disk stops every task.")
    return Finding("disk", "ok" if free >= FREE_BYTES_FEW else "warning", words)


def _file(path: Path) -> Finding:
    """What SQLite says of a file that nobody has open; and how a node would write it."""
    if not path.exists():
        return Finding("store", "ok", f"{path} will be made; written with {_sync()}")
    import apsw

    from ..store.sqlite_file import connect

    try:
        with contextlib.closing(connect(path, for_reading=True)) as db:
            ((said,),) = db.execute("PRAGMA quick_check(1)").fetchall()
            mode = db.pragma("journal_mode")
    except apsw.Error as wrong:
        advice = "Is it a Dragoman store? Restore it from a copy, or name another."
        return Finding("store", "blocked", f"{path}: {wrong}", advice)
    if said != "ok":
        return Finding("store", "blocked", f"{path} is damaged: {said}", "Restore it from a copy.")
    size = path.stat().st_size
    return Finding("store", "ok", f"{path}, {size / 1e6:.1f} MB, journal {mode}, written with {_sync()}")


def _sync() -> str:
    """How safe a commit is: asked of a connection as a node makes it."""
    from ..store.sqlite_file import connect

    levels = ("OFF", "NORMAL", "FULL", "EXTRA")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(connect(Path(folder) / "probe.db")) as db,
    ):
        return f"synchronous={levels[db.pragma('synchronous')]}"


def _port(host: str, port: int, holder: Holder | None) -> Finding:
    """Whether the address can be listened on; if not, who is there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as wrong:
            return _taken(host, port, holder, wrong)
    return Finding("port", "ok", f"{host}:{port} is free")


def _taken(host: str, port: int, holder: Holder | None, wrong: OSError) -> Finding:
    if holder is not None and holder.address.endswith(f":{port}"):
        return Finding("port", "ok", f"{host}:{port} is the running node's, process {holder.pid}")
    who = _listener(port)
    words = f"{host}:{port}: {wrong.strerror}{f'; {who} has it' if who else ''}"
    return Finding("port", "blocked", words, "Stop that, or listen elsewhere: --port 0 takes a free one.")


def _listener(port: int) -> str:
    """The process that listens on a port, where /proc tells."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in (line.split() for line in lines):
            if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{words[9]}]")
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        try:
            if any(os.readlink(file) in sockets for file in (process / "fd").iterdir()):
                return f"process {process.name} ({(process / 'comm').read_text().strip()})"
        except OSError:
            continue
    return ""


async def _card(address: str) -> Finding:
    """The running node's own card, read as any caller would."""
    from ..client.client import Client

    try:
        async with asyncio.timeout(CARD_SECONDS_MAX), Client(address) as client:
            card = await client.card()
    except Exception as wrong:
        return Finding("card", "blocked", f"{address}: {wrong or 'no answer'}", "The node's log says more.")
    return Finding("card", "ok", f"{address}: {card.name} {card.version}, {len(card.skills)} skills")
