"""The SQLite file: how it is opened, which settings make a commit durable, and how its schema grows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

__all__ = ["QUERIES", "SchemaNewer", "connect", "migrate", "rows_of"]

CACHE_KIB = 16_384
BUSY_MILLISECONDS = 5_000

_HERE = Path(__file__).parent


class SchemaNewer(Exception):
    """The file was written by a later release."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found} and this release knows schemas up to {known}: use a later release"
        )


def _queries(text: str) -> dict[str, str]:
    pieces = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {name: sql.strip() for name, sql in zip(pieces[1::2], pieces[2::2], strict=True)}


QUERIES = _queries((_HERE / "queries.sqlite.sql").read_text())


def connect(path: Path, *, for_reading: bool = False) -> apsw.Connection:
    """A connection with our settings; never weaker than a synced commit."""
    if not for_reading:
        # What callers say is nobody else's to read; SQLite gives its side files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    flags = apsw.SQLITE_OPEN_READONLY if for_reading else apsw.SQLITE_OPEN_READWRITE
    db = apsw.Connection(str(path), flags=flags)
    db.set_busy_timeout(BUSY_MILLISECONDS)
    db.pragma("cache_size", -CACHE_KIB)
    db.pragma("temp_store", "memory")
    # Whoever closes last would fold the log into the file, and swallow a failed sync.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    if not for_reading:
        mode = db.pragma("journal_mode", "wal")
        assert mode == "wal", f"{path} cannot use a write-ahead log: {mode}"
        db.pragma("synchronous", "full")
        # Only macOS knows the difference between written and really written.
        db.pragma("fullfsync", 1)
        # The writer checkpoints by itself: SQLite would swallow a failed sync.
        db.wal_autocheckpoint(0)
    return db


def rows_of(db: apsw.Connection, query: str, values: Sequence[Any] = ()) -> list[Any]:
    """All rows of a query, at once: an open cursor would keep the write-ahead log growing."""
    return db.execute(query, values).fetchall()


def migrate(db: apsw.Connection, path: Path) -> None:
    """Bring the schema to what this release knows, one numbered file after the other."""
    steps = {int(file.name[:4]): file for file in (_HERE / "migrations").glob("[0-9]*.sqlite.sql")}
    version = _version(db)
    if version > max(steps):
        raise SchemaNewer(path, version, max(steps))
    for number in sorted(step for step in steps if step > version):
        with db:
            db.execute(steps[number].read_text())
            db.execute(QUERIES["keep_meta"], ("schema", number))


def _version(db: apsw.Connection) -> int:
    if not rows_of(db, "SELECT 1 FROM sqlite_schema WHERE name = 'meta'"):
        return 0
    found = rows_of(db, QUERIES["meta"], ("schema",))
    return int(found[0][0]) if found else 0
