"""Work in the memory store: who holds what, until when, and what is due next."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from .store import Claim, Claimant, NewWork, Work

__all__ = ["MemoryWork"]

# How many due times of work that is gone may lie about.
STALE_DUES = 1000


class _Item:
    __slots__ = ("again", "attempts", "body", "due", "epoch", "kind", "log", "name", "node", "topic")

    def __init__(self, put: NewWork) -> None:
        self.kind = put.kind
        self.topic = put.topic
        self.log = put.log
        self.body = put.body
        self.name = put.name
        self.due = put.due
        # When it is due once more, if it was put again while somebody held it.
        self.again: float | None = None
        self.node = ""
        self.epoch = 0
        self.attempts = 0

    def held(self, work: int, memo: object = None) -> Work:
        return Work(work, self.kind, self.topic, self.log, self.body, self.epoch, self.attempts, memo)


class MemoryWork:
    """All of it, by number."""

    def __init__(self) -> None:
        self._items: dict[int, _Item] = {}
        self._named: dict[str, int] = {}
        self._due: list[tuple[float, int]] = []
        self._last = 0
        self._nodes: dict[str, float] = {}
        self.claimants: list[Claimant] = []

    def is_held(self, claim: Claim) -> bool:
        """Whether a claim is the current one."""
        item = self._items.get(claim.work)
        return item is not None and item.epoch == claim.epoch and item.node != ""

    def prove(self, claim: Claim) -> None:
        """The work got somewhere: attempts count takings in a row that led to nothing."""
        self._items[claim.work].attempts = 1

    def logs(self) -> set[str]:
        """The logs that there is work for."""
        return {item.log for item in self._items.values()}

    def end(self, ends: Sequence[int], drops: Sequence[str]) -> None:
        """Work that is done goes, and work of these names."""
        for work in ends:
            item = self._items.get(work)
            if item is not None and item.again is not None:
                self._free(work, item, item.again)
            elif item is not None:
                del self._items[work]
                self._named.pop(item.name, None)
        for name in drops:
            self._items.pop(self._named.pop(name, 0), None)

    def put(self, several: Sequence[NewWork]) -> None:
        """New work, leased at once to a claimant who has room for it."""
        for put in several:
            known = self._named.get(put.name) if put.name else None
            if known is not None:
                self._put_again(known, put.due)
                continue
            self._last += 1
            work = self._last
            item = self._items[work] = _Item(put)
            if put.name:
                self._named[put.name] = work
            claimant = self._claimant_for(put)
            if claimant is None:
                self._await(put.due, work)
                for other in self.claimants:
                    other.hint()
            else:
                claimant.free[put.topic] -= 1
                item.node = claimant.node
                item.epoch = item.attempts = 1
                claimant.take(item.held(work, put.memo))

    def _put_again(self, work: int, due: float) -> None:
        """Named work is there already: it moves, or, while somebody holds it, comes again afterwards."""
        item = self._items[work]
        if item.node:
            item.again = due if item.again is None else min(item.again, due)
        else:
            self._free(work, item, due)

    def _claimant_for(self, put: NewWork) -> Claimant | None:
        if put.due > 0:
            return None
        for claimant in self.claimants:
            if claimant.free.get(put.topic, 0) > 0:
                return claimant
        return None

    def claim(self, kind: str, topics: Sequence[str], node: str, now: float, limit: int) -> Sequence[Work]:
        """Due work that nobody holds."""
        taken: list[Work] = []
        passed: list[tuple[float, int]] = []
        while self._due and self._due[0][0] <= now and len(taken) < limit:
            due, work = heapq.heappop(self._due)
            if not self._is_due(due, work):
                continue
            item = self._items[work]
            if item.kind != kind or item.topic not in topics:
                passed.append((due, work))
                continue
            item.node = node
            item.epoch += 1
            item.attempts += 1
            taken.append(item.held(work))
        for entry in passed:
            heapq.heappush(self._due, entry)
        return taken

    def release(self, work: int, epoch: int, due: float) -> None:
        """Work that its holder gives back."""
        item = self._items.get(work)
        if item is not None and item.epoch == epoch and item.node:
            self._free(work, item, due)
            for claimant in self.claimants:
                claimant.hint()

    def _free(self, work: int, item: _Item, due: float) -> None:
        item.node = ""
        item.due = due if item.again is None else min(due, item.again)
        item.again = None
        self._await(item.due, work)

    def _await(self, due: float, work: int) -> None:
        heapq.heappush(self._due, (due, work))
        if len(self._due) > 2 * len(self._items) + STALE_DUES:
            # A question that was answered leaves its deadline here, and those are a week away.
            self._due = [(at, one) for at, one in self._due if self._is_due(at, one)]
            heapq.heapify(self._due)

    def _is_due(self, due: float, work: int) -> bool:
        item = self._items.get(work)
        return item is not None and not item.node and item.due == due

    def beat(self, node: str, until: float, now: float) -> int:
        """A node lives; what silent ones held is free."""
        self._nodes[node] = until
        silent = {name for name, end in self._nodes.items() if end <= now}
        for name in silent:
            del self._nodes[name]
        ended = 0
        for work, item in self._items.items():
            if item.node and item.node not in self._nodes:
                self._free(work, item, 0.0)
                ended += 1
        return ended

    def next_due(self) -> float | None:
        """When the next unheld work is due."""
        while self._due:
            due, work = self._due[0]
            if self._is_due(due, work):
                return due
            heapq.heappop(self._due)
        return None
