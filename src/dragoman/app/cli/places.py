"""Where things are on this machine: the state folder, its store, and the node that has a store open."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...store.lock import Holder

__all__ = ["holder_of", "home_folder", "home_store", "is_address"]

_PLACE = re.compile(r"\[[0-9a-fA-F:.]+\](:\d+)?(/.*)?|[\w.-]+(:\d+)(/.*)?|[\w-]+(\.[\w-]+)+(:\d+)?(/.*)?")


def home_folder() -> Path:
    """Where a node without other orders keeps its state."""
    named = os.environ.get("DRAGOMAN_HOME")
    return Path(named) if named else Path.home() / ".local" / "share" / "dragoman"


def home_store() -> Path:
    return home_folder() / "tasks.db"


def holder_of(url: str | None) -> Holder | None:
    """The live node that has a store open: the one named, else the one of the state folder."""
    from ...store.lock import read_lock

    kind, _, place = (url or f"sqlite:{home_store()}").partition(":")
    if kind != "sqlite":
        return None
    return read_lock(place.removeprefix("//"))


def is_address(words: str) -> bool:
    """Whether words say where an agent is, and not what to tell one."""
    return words.startswith(("http://", "https://")) or _PLACE.fullmatch(words) is not None
