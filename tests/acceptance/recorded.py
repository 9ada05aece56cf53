"""The agents as the power-cut campaign serves them: the write-ahead log is folded in often, and may be synced less.

With SYNCHRONOUS=normal in the environment the store's connections are weakened: the negative control.
"""

from __future__ import annotations

import os
from typing import Any

from dragoman.store import sqlite, sqlite_writer
from tests.acceptance.agents import brittle, player

__all__ = ["brittle", "player"]

_connect = sqlite.connect
sqlite_writer.WAL_PAGES_MAX = int(os.environ["WAL_PAGES_MAX"])


def _weak(*arguments: Any, **named: Any) -> Any:
    db = _connect(*arguments, **named)
    if not named.get("for_reading"):
        db.pragma("synchronous", os.environ["SYNCHRONOUS"])
    return db


if "SYNCHRONOUS" in os.environ:
    sqlite.connect = _weak
