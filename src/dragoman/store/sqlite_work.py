"""Work in one SQLite transaction: what is put, held, given back and ended, and the rows that say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import msgspec

from .sqlite_file import QUERIES, rows_of
from .sqlite_known import Held, Known
from .store import Claimant, NewWork, Work

__all__ = ["GroupWork", "Rows", "note"]

Rows = list[tuple[str, list[tuple[Any, ...]]]]

_PUT_WORK = QUERIES["put_work"]
_END_WORK = QUERIES["end_work"]


class GroupWork:
    """The part of a group that is about work."""

    def __init__(
        self,
        db: apsw.Connection,
        known: Known,
        claimants: Sequence[Claimant],
        now: float,
        next_id: Callable[[], int],
        is_begun: Callable[[str], bool],
    ) -> None:
        self._db = db
        self._known = known
        self._claimants = claimants
        self._now = now
        self._next_id = next_id
        self._is_begun = is_begun
        self.is_hinting = False
        self.held: dict[int, Held | None] = {}
        self.leased: list[tuple[Claimant, str, Work]] = []
        self._names: dict[str, int] = {}
        # Names of work that was put in this group for whoever claims it.
        self._put_names: set[str] = set()
        self._rows: Rows = []

    def taken_rows(self) -> Rows:
        """The rows to write, in order; they are the taker's now."""
        rows, self._rows = self._rows, []
        return rows

    def land(self) -> None:
        """It is committed."""
        known = self._known
        for work, held in self.held.items():
            if held is None:
                gone = known.held.pop(work, None)
                if gone is not None and gone.name:
                    known.names.pop(gone.name, None)
            else:
                known.held[work] = held
                if held.name:
                    known.names[held.name] = work

    def undo(self) -> None:
        """It was not: give back the room that claimants lent."""
        for claimant, topic, _ in self.leased:
            claimant.free[topic] += 1

    def put(self, put: NewWork) -> None:
        claimant = self._claimant(put)
        if put.name and (claimant is None or self._is_name_known(put)):
            self._put_by_name(put)
            return
        work, name = self._next_id(), put.name or None
        row: tuple[Any, ...]
        if claimant is None:
            self.is_hinting = True
            row = (work, put.kind, put.topic, put.log, put.due, None, 0, 0, name, put.body)
        else:
            claimant.free[put.topic] -= 1
            row = (work, put.kind, put.topic, put.log, put.due, claimant.node, 1, 1, name, put.body)
            self.held[work] = Held(claimant.node, 1, 1, put.name)
            if put.name:
                self._names[put.name] = work
            self.leased.append(
                (claimant, put.topic, Work(work, put.kind, put.topic, put.log, put.body, 1, 1, put.memo))
            )
        note(self._rows, _PUT_WORK, row)

    def _put_by_name(self, put: NewWork) -> None:
        """Put it, or move what is there by that name; if somebody holds it, it comes again afterwards."""
        row = (self._next_id(), put.kind, put.topic, put.log, put.due, put.name, put.body)
        note(self._rows, QUERIES["put_named_work"], row)
        work, held = self._held_by_name(put.name)
        if held is None:
            self.is_hinting = True
            self._put_names.add(put.name)
        else:
            self.held[work] = msgspec.structs.replace(held, moved=put.due)

    def _is_name_known(self, put: NewWork) -> bool:
        """Whether there may be work of that name. Of a log that begins right now nobody has put any."""
        if put.name in self._names or put.name in self._known.names or put.name in self._put_names:
            return True
        if put.name == put.log and self._is_begun(put.log):
            return False
        return bool(rows_of(self._db, QUERIES["work_by_name"], (put.name,)))

    def _claimant(self, put: NewWork) -> Claimant | None:
        if put.due <= self._now:
            for claimant in self._claimants:
                if claimant.free.get(put.topic, 0) > 0:
                    return claimant
        return None

    def held_now(self, work: int) -> Held | None:
        return self.held[work] if work in self.held else self._known.held.get(work)

    def _held_by_name(self, name: str) -> tuple[int, Held | None]:
        work = self._names.get(name) or self._known.names.get(name, 0)
        held = self.held_now(work)
        return work, held if held is not None and held.name == name else None

    def prove(self, work: int) -> None:
        # Law of attempts: an append shows that this taking got somewhere.
        held = self.held_now(work)
        assert held is not None
        if held.attempts > 1:
            self.held[work] = msgspec.structs.replace(held, attempts=1)
            note(self._rows, QUERIES["attempt_work"], (work,))

    def end(self, work: int) -> None:
        held = self.held_now(work)
        if held is not None and held.moved is not None:
            # It was put again since it was taken: what it is about was not seen by who ends it.
            self.free(work, held.moved)
            return
        if held is not None:
            self.held[work] = None
        note(self._rows, _END_WORK, (work,))

    def drop(self, name: str) -> None:
        work, held = self._held_by_name(name)
        if held is not None:
            self.held[work] = None
        note(self._rows, QUERIES["drop_work"], (name,))

    def free(self, work: int, due: float) -> None:
        """A lease ends and the work is due for anyone."""
        self.held[work] = None
        self.is_hinting = True
        note(self._rows, QUERIES["free_work"], (due, work))

    def release(self, work: int, epoch: int, due: float) -> None:
        held = self.held_now(work)
        if held is not None and held.epoch == epoch:
            self.free(work, due if held.moved is None else min(due, held.moved))

    def claim(self, kind: str, topics: Sequence[str], node: str, now: float, limit: int) -> Sequence[Work]:
        topics_text = msgspec.json.encode(list(topics)).decode()
        taken: list[Work] = []
        due = rows_of(self._db, QUERIES["due_work"], (kind, topics_text, now, limit))
        for work, topic, log, body, epoch, attempts, name in due:
            taken.append(Work(work, kind, topic, log, body, epoch + 1, attempts + 1))
            self.held[work] = Held(node, epoch + 1, attempts + 1, name or "")
            if name:
                self._names[name] = work
            note(self._rows, QUERIES["hold_work"], (node, epoch + 1, attempts + 1, work))
        return taken

    def end_leases(self, nodes: dict[str, float]) -> int:
        """Free what is held by nodes that are not among these."""
        ended = [work for work, held in self._all_held() if held.node not in nodes]
        for work in ended:
            self.free(work, 0.0)
        return len(ended)

    def _all_held(self) -> list[tuple[int, Held]]:
        merged = {**self._known.held, **self.held}
        return [(work, held) for work, held in merged.items() if held is not None]


def note(list_: list[tuple[str, list[tuple[Any, ...]]]], query: str, row: tuple[Any, ...]) -> None:
    if list_ and list_[-1][0] is query:
        list_[-1][1].append(row)
    else:
        list_.append((query, [row]))
