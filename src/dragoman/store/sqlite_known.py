"""What a SQLite store keeps in memory of what is committed: logs used lately, every lease, the next id."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..model.task import State
from .store import Head, Label, Row

__all__ = ["Held", "Known", "Stored", "stored"]

# Twice as many at most.
LOGS_KNOWN_MAX = 2048

_STATES = {state.word: state for state in State}


class Stored(Struct, frozen=True):
    """A log as it is, or would be after this group."""

    id: int
    row: Row
    append_id: str


class Held(Struct, frozen=True):
    """A lease. `moved` is the due time of work that was put again by its name while it was held."""

    node: str
    epoch: int
    attempts: int
    name: str = ""
    moved: float | None = None


class Known:
    """What is committed, as far as it is kept in memory."""

    def __init__(
        self, reserved: int, active: dict[tuple[str, str], int], active_max: int, owner_active_max: int
    ) -> None:
        # Two generations: when the young are many, the old are forgotten.
        self._young: dict[str, Stored] = {}
        self._elder: dict[str, Stored] = {}
        self.held: dict[int, Held] = {}
        # Leases of named work.
        self.names: dict[str, int] = {}
        self.last_id = self.reserved = reserved
        # Active tasks: of each owner, and in all.
        self.active_of = active
        self.active = sum(active.values())
        self.active_max = active_max
        self.owner_active_max = owner_active_max

    def log(self, name: str) -> Stored | None:
        return self._young.get(name) or self._elder.get(name)

    def keep(self, log: Stored) -> None:
        self._young[log.row.log] = log
        if len(self._young) > LOGS_KNOWN_MAX:
            self._elder, self._young = self._young, {}

    def forget(self, name: str) -> None:
        self._young.pop(name, None)
        self._elder.pop(name, None)


def stored(row: tuple[Any, ...]) -> Stored:
    """A log from its row of the database."""
    id_, name, kind, owner, tenant, agent, context, state, at, hidden, seq, append_id, trace = row
    label = Label(kind, owner, tenant, agent, context, trace)
    return Stored(id_, Row(name, label, Head(_STATES[state], at, bool(hidden)), seq), append_id)
