"""What the memory store knows across logs: active tasks of each owner, whose each context is, and the audit."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..model.audit import AuditEntry, AuditQuery
from ..model.peer import ANYONE
from .store import Label, StoreFull

__all__ = ["OWNER_ACTIVE_MAX", "MemoryAudit", "Shared"]

OWNER_ACTIVE_MAX = 10_000
AUDIT_MAX = 10_000


class Shared:
    """Counts that follow tasks as they begin, end and go."""

    def __init__(self, owner_active_max: int) -> None:
        self._max = owner_active_max
        self._active: dict[tuple[str, str], int] = {}
        # By context: whose it is, if one task is in it; else that and how many.
        self._contexts: dict[str, Label | tuple[Label, int]] = {}
        self.refusal = StoreFull(f"{owner_active_max} tasks of this caller are active")

    def is_full(self, label: Label) -> bool:
        """Whether no more task of this owner can begin."""
        return self._active.get((label.tenant, label.owner), 0) >= self._max

    def began(self, who: Label, context: str) -> None:
        self.moved(who, 1)
        if context:
            there = self._contexts.get(context)
            self._contexts[context] = who if there is None else _more(there, 1)

    def moved(self, who: Label, change: int) -> None:
        """Tasks that become active, or cease to be. Of nobody in particular none are counted."""
        if who.owner == ANYONE.owner:
            return
        key = (who.tenant, who.owner)
        self._active[key] = self._active.get(key, 0) + change
        if not self._active[key]:
            del self._active[key]

    def gone(self, who: Label, context: str, was_over: bool) -> None:
        if not was_over:
            self.moved(who, -1)
        there = self._contexts.get(context)
        if isinstance(there, tuple):
            self._contexts[context] = _more(there, -1)
        elif there is not None:
            del self._contexts[context]

    def owner_of_context(self, context: str) -> tuple[str, str] | None:
        there = self._contexts.get(context)
        who = there[0] if isinstance(there, tuple) else there
        return None if who is None else (who.tenant, who.owner)


def _more(there: Label | tuple[Label, int], change: int) -> Label | tuple[Label, int]:
    who, count = there if isinstance(there, tuple) else (there, 1)
    return who if count + change == 1 else (who, count + change)


class MemoryAudit:
    """The newest calls."""

    def __init__(self) -> None:
        self._entries: deque[AuditEntry] = deque(maxlen=AUDIT_MAX)
        self._count = 0

    def add(self, entries: Sequence[AuditEntry]) -> None:
        self._entries.extend(entries)
        self._count += len(entries)

    def sweep(self, before: float) -> None:
        while self._entries and self._entries[0].at < before:
            self._entries.popleft()

    def find(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
        found: list[tuple[int, AuditEntry]] = []
        position = self._count + 1
        for entry in reversed(self._entries):
            position -= 1
            if len(found) == query.limit or entry.at < query.since:
                break
            if (query.before is None or position < query.before) and _fits(entry, query):
                found.append((position, entry))
        return found


def _fits(entry: AuditEntry, query: AuditQuery) -> bool:
    return (
        query.trace in ("", entry.trace)
        and query.task in ("", entry.task)
        and query.caller in ("", entry.caller)
        and query.agent in ("", entry.agent)
    )
