"""A task read back from its log: the newest stored fold, and the events after it."""

from __future__ import annotations

import msgspec

from ..core.tasks import Fold
from ..model.events import decode
from ..model.task import Task
from .store import Store

__all__ = ["READ_MAX", "fold_of"]

READ_MAX = 1000

_task = msgspec.json.Decoder(Task).decode


def fold_of(store: Store, log: str, seq: int) -> Fold:
    """The fold of a task's log up to a position."""
    stored = store.snapshot(log, seq)
    at, fold = (0, Fold()) if stored is None else (stored[0], Fold(_task(stored[1])))
    # Only what was told is stored as a fold before its task is over.
    fold.is_told = stored is not None
    while at < seq:
        events = store.read(log, at, min(READ_MAX, seq - at))
        if not events:
            break
        for data in events:
            fold.apply(decode(data))
        at += len(events)
    return fold
