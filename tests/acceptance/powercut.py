"""What a disk would hold after a power cut: replays a trace of a node's system calls without what was not synced.

The trace is strace's, of the whole process: its writes, syncs, truncations and names of files, and what it
wrote to sockets, all in one order. A write to a socket that says a state is the moment of that promise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOCKET = "write,writev,sendto,sendmsg"
CALLS = (
    f"openat,pwrite64,pwritev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,{SOCKET}"
)
SECTOR = 512

_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(.*)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"\(-?\d+<([^>]*)>")
_RESULT = re.compile(r"\) += (-?\d+)")
_PROMISE = re.compile(
    rb'"task":\{"id":"([^"]+)","status":\{"state":"([A-Z_]+)"'
    rb'|"statusUpdate":\{"taskId":"([^"]+)","contextId":"[^"]*","status":\{"state":"([A-Z_]+)"'
)


def strace(trace: Path, inject: str = "") -> list[str]:
    """The command that records what the command after it does, and perhaps does something to it."""
    # With --seccomp-bpf strace 6.1 counts calls to inject at only up to one.
    how = ["-e", f"inject={inject}"] if inject else ["--seccomp-bpf"]
    what = ["-y", "-xx", "-s", "9000000", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace)]
    return ["strace", "-f", *how, *what]


@dataclass(frozen=True)
class Write:
    path: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    path: str
    size: int


@dataclass(frozen=True)
class Sync:
    path: str


@dataclass(frozen=True)
class Make:
    path: str


@dataclass(frozen=True)
class Remove:
    path: str


@dataclass(frozen=True)
class Promise:
    """The process began to tell somebody of a task's state."""

    task: str
    state: str


Deed = Write | Truncate | Sync | Make | Remove | Promise


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _name(text: str) -> str:
    return _bytes(text).decode() if text.startswith("\\x") else text


def deeds(trace: Path, folder: Path) -> Iterator[Deed]:
    """What the trace says was done below a folder, and promised, in order."""
    open_calls: dict[str, str] = {}
    for line in trace.read_text(encoding="latin-1").split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        thread, call, rest = match.groups()
        if rest.startswith(" resumed>"):
            rest = open_calls.pop(thread, "") + rest.removeprefix(" resumed>")
            if call in SOCKET.split(","):
                continue  # was told when it began
        elif rest.rstrip().endswith("<unfinished ...>"):
            rest = rest.rstrip().removesuffix("<unfinished ...>")
            if call in SOCKET.split(","):
                yield from _told(rest)
            open_calls[thread] = rest
            continue
        elif call in SOCKET.split(","):
            yield from _told(rest)
            continue
        yield from _done(call, rest, folder)


def _told(rest: str) -> Iterator[Promise]:
    match = _FD.match(rest)
    if match is None or "socket:" not in _name(match[1]):
        return
    data = b"".join(_bytes(text) for text in _STRING.findall(rest))
    for task, state, task_too, state_too in _PROMISE.findall(data):
        yield Promise((task or task_too).decode(), (state or state_too).decode())


def _done(call: str, rest: str, folder: Path) -> Iterator[Deed]:
    result = _RESULT.search(rest)
    if result is None or int(result[1]) < 0:
        return
    fd = _FD.match(rest)
    path = _name(fd[1]) if fd else ""
    strings = (
        [_bytes(text).decode(errors="replace") for text in _STRING.findall(rest)]
        if "open" in call or "link" in call
        else []
    )
    if call == "openat":
        if "O_CREAT" in rest and _is_ours(strings[0], folder):
            yield Make(strings[0])
    elif call in ("unlink", "unlinkat"):
        if _is_ours(strings[0], folder):
            yield Remove(strings[0])
    elif call.startswith("rename"):
        raise AssertionError(f"a rename is not modelled: {rest[:200]}")
    elif call in ("fsync", "fdatasync"):
        if path == str(folder) or _is_ours(path, folder):
            yield Sync(path)
    elif _is_ours(path, folder):
        assert call in ("pwrite64", "ftruncate"), f"{call} is not modelled"
        if call == "ftruncate":
            yield Truncate(path, int(rest.rpartition(")")[0].rpartition(",")[2]))
        else:
            data = _STRING.search(rest)
            assert data is not None
            written = _bytes(data[1])[: int(result[1])]
            yield Write(path, int(rest.rpartition(")")[0].rpartition(",")[2]), written)


def _is_ours(path: str, folder: Path) -> bool:
    # The index of the write-ahead log is shared memory: it is made anew. The lock says nothing after a cut.
    return path.startswith(f"{folder}/store.db") and not path.endswith(("-shm", ".lock"))


@dataclass
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate] = field(default_factory=list)


class Disk:
    """A folder: what is on the platter, and what is only in the cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.syncs = 0

    def hold(self, path: Path, content: bytes) -> None:
        """A file that was there, and synced, before anything was recorded."""
        self.names[str(path)] = self.durable_names[str(path)] = Inode(bytearray(content))

    def do(self, deed: Deed) -> None:
        match deed:
            case Make(path):
                self.names.setdefault(path, Inode())
            case Remove(path):
                self.names.pop(path, None)
            case Write(path) | Truncate(path):
                self.names[path].pending.append(deed)
            case Sync(path) if path == str(self.folder):
                self.durable_names = dict(self.names)
            case Sync(path):
                self.syncs += 1
                inode = self.names[path]
                for write in inode.pending:
                    _apply(inode.durable, write)
                inode.pending.clear()

    def image(self, to: Path, chance: random.Random | None) -> int:
        """Write down what is left after a cut now: nothing unsynced, or by chance some of it, some of that torn.

        How many writes were lost or torn.
        """
        to.mkdir(parents=True)
        lost = 0
        names = dict(self.durable_names)
        if chance is not None:
            for path in {**self.names, **self.durable_names}:
                if chance.random() < 0.5:
                    if path in self.names:
                        names[path] = self.names[path]
                    else:
                        names.pop(path, None)
        for path, inode in names.items():
            content = bytearray(inode.durable)
            share = 0.0 if chance is None else chance.choice((0.1, 0.5, 0.9, 1.0))
            for place, write in enumerate(inode.pending):
                if chance is None or chance.random() > share:
                    lost += 1
                    continue
                is_last = place == len(inode.pending) - 1
                if isinstance(write, Write) and (is_last or chance.random() < 0.1):
                    kept = SECTOR * chance.randint(0, len(write.data) // SECTOR)
                    lost += kept < len(write.data)
                    write = Write(write.path, write.offset, write.data[:kept])
                _apply(content, write)
            (to / Path(path).name).write_bytes(content)
        return lost


def _apply(content: bytearray, deed: Write | Truncate) -> None:
    end = deed.size if isinstance(deed, Truncate) else deed.offset + len(deed.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if isinstance(deed, Truncate):
        del content[end:]
    else:
        content[deed.offset : end] = deed.data


@dataclass
class Cuts:
    """What the judge found behind all cuts of a recording."""

    images: int = 0
    promises: int = 0
    syncs: int = 0
    writes_lost: int = 0
    wrong: list[str] = field(default_factory=list)


def acks(promises: list[Promise]) -> list[dict[str, Any]]:
    return [{"kind": "ack", "key": "", "task": one.task, "state": one.state} for one in promises]
