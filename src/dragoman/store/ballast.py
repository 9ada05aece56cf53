"""Room kept back for a full disk: thrown off when there is none left, taken up again when there is.

With it a node whose disk others have filled can still end what it has begun: cancel tasks, take
answers, settle turns. New work waits until the room is back.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["BALLAST_BYTES", "Ballast"]

BALLAST_BYTES = 1024 * 1024


class Ballast:
    """A file beside the store that holds nothing but its place."""

    def __init__(self, store_path: Path) -> None:
        self.path = store_path.with_name(store_path.name + ".ballast")

    def take(self) -> bool:
        """Hold the room, if there is any to hold."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < BALLAST_BYTES:
                _fill(file)
            return True
        except OSError:
            os.ftruncate(file, 0)
            return False
        finally:
            os.close(file)

    def throw(self) -> bool:
        """Give the room away; whether there was any."""
        try:
            if not self.path.stat().st_size:
                return False
            os.truncate(self.path, 0)
        except OSError:
            return False
        return True

    def leave(self) -> None:
        """Nobody needs it while the store is closed."""
        self.path.unlink(missing_ok=True)


def _fill(file: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, BALLAST_BYTES)
    else:
        os.pwrite(file, bytes(BALLAST_BYTES), 0)
