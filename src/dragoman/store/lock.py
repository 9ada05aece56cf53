"""The lock file beside a store's file: who holds the store, where it answers, the token for talking to it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

__all__ = ["Holder", "Lock", "StoreHeld", "read_lock"]

# `read_lock` holds the lock for the blink of an eye to learn whether somebody has it.
TRIES_MAX = 5
TRY_SECONDS = 0.02
FILE_BYTES = 2048


class Holder(Struct, frozen=True):
    """The process that has the store open. `address` is empty until it answers somewhere."""

    pid: int
    token: str
    address: str = ""


class StoreHeld(Exception):
    """Another live process has the store open."""

    def __init__(self, path: Path, holder: Holder | None) -> None:
        where = "another process" if holder is None else f"process {holder.pid}"
        at = f", which answers at {holder.address}" if holder is not None and holder.address else ""
        super().__init__(f"{path} is open in {where}{at}; ask that node, or name another file")
        self.path = path
        self.holder = holder


class Lock:
    """Held from creation until `release`, or until the process ends in whatever way."""

    def __init__(self, store_path: Path, token: str) -> None:
        self.path = _lock_path(store_path)
        self.holder = Holder(os.getpid(), token)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(self._file)
        except BlockingIOError:
            holder = _read(self._file)
            os.close(self._file)
            raise StoreHeld(store_path, holder) from None
        os.fchmod(self._file, 0o600)
        self._write(msgspec.json.encode(self.holder))

    def set_address(self, address: str) -> None:
        """Say where this process answers."""
        self.holder = msgspec.structs.replace(self.holder, address=address)
        self._write(msgspec.json.encode(self.holder))

    def release(self) -> None:
        # The file stays: removing it would let two processes lock two files of one name.
        self._write(b"")
        os.close(self._file)

    def _write(self, text: bytes) -> None:
        # Always of one size, so that no more room is needed to open a store on a full disk.
        os.pwrite(self._file, text.ljust(FILE_BYTES), 0)


def read_lock(store_path: str | Path) -> Holder | None:
    """Who has the store open right now, if anybody."""
    try:
        file = os.open(_lock_path(Path(store_path)), os.O_RDONLY)
    except FileNotFoundError:
        return None
    holder = _read(file)
    try:
        if holder is not None:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder
    finally:
        os.close(file)
    # Nobody holds it: what is written there was left by a process that is gone.
    return None


def _lock_path(store_path: Path) -> Path:
    return store_path.with_name(store_path.name + ".lock")


def _take(file: int) -> None:
    for _ in range(TRIES_MAX - 1):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(TRY_SECONDS)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read(file: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(file, FILE_BYTES, 0), type=Holder)
    except msgspec.DecodeError:
        return None
