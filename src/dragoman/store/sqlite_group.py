"""One SQLite transaction in the making: judges batches, and collects the rows to write.

This process is the only writer (the lock file sees to it), so what was committed and is kept here
in memory is the truth; the database is asked about what is not. Nothing a batch changes is seen
outside the group before the commit, and a group that fails is just forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from ..core.tasks import TERMINAL
from .sqlite_file import QUERIES, rows_of
from .sqlite_known import Held, Known, Stored, stored
from .store import (
    Append,
    Batch,
    Claimant,
    Conflict,
    Fenced,
    Head,
    Label,
    NewWork,
    Present,
    Record,
    Refusal,
    Row,
    StoreFull,
    Work,
)

__all__ = ["Group"]

# Ids are reserved in blocks, so that a commit need not write how far they went.
RESERVED_AT_ONCE = 100_000
# A turn's journal is a log of this name and the task's (docs: durable turns).
JOURNAL = "turn:"

_LOG_BY_NAME = QUERIES["log_by_name"]
_BEGIN_LOG = QUERIES["begin_log"]
_CHANGE_LOG = QUERIES["change_log"]
_GROW_LOG = QUERIES["grow_log"]
_APPEND = QUERIES["append"]
_KEEP_SNAPSHOT = QUERIES["keep_snapshot"]
_PUT_WORK = QUERIES["put_work"]
_END_WORK = QUERIES["end_work"]
_RECORD = QUERIES["record"]
_KEEP_RECORD = QUERIES["keep_record"]

_pack = msgspec.msgpack.Encoder().encode


class Group:
    """What is committed together. `add` batches, `flush`, commit, then `land`; or `undo`."""

    def __init__(self, db: apsw.Connection, known: Known, claimants: Sequence[Claimant], now: float) -> None:
        self.db = db
        self.known = known
        self.claimants = claimants
        self.now = now
        self.is_open = False
        self.is_hinting = False
        self.logs: dict[str, Stored | None] = {}
        self.held: dict[int, Held | None] = {}
        self.leased: list[tuple[Claimant, str, Work]] = []
        self._names: dict[str, int] = {}
        # Names of work that was put in this group for whoever claims it.
        self._put_names: set[str] = set()
        self._records: dict[tuple[str, str], Record] = {}
        self._are_records_gone = False
        self._active = known.active
        self._reserved = known.reserved
        # Rows to write, by table; in each, statements in order, equal neighbours together.
        self._changed: dict[str, str] = {}
        self._appends: list[tuple[Any, ...]] = []
        self._snapshots: dict[int, tuple[int, int, bytes]] = {}
        self._work: list[tuple[str, list[tuple[Any, ...]]]] = []
        self._rest: list[tuple[str, list[tuple[Any, ...]]]] = []

    # Judging.

    def add(self, batch: Batch) -> Refusal | None:
        """Take a batch in, or say why not; a refused batch leaves nothing behind."""
        begun = 0
        conflict: Conflict | None = None
        for append in batch.appends:
            log = self._log(append.log)
            if log is None:
                if append.after or append.label is None:
                    conflict = conflict or Conflict(append.log, 0)
                else:
                    begun += append.label.kind == "task"
            elif (
                append.id and log.append_id == append.id and log.row.seq == append.after + len(append.events)
            ):
                # Law 3: the batch was committed and its answer lost.
                return None
            elif log.row.seq != append.after:
                conflict = conflict or Conflict(append.log, log.row.seq)
        refusal = conflict or self._refuse(batch, begun)
        if refusal is None:
            self._take_in(batch)
        return refusal

    def _refuse(self, batch: Batch, begun: int) -> Refusal | None:
        claim = batch.claim
        if claim is not None:
            held = self._held(claim.work)
            if held is None or held.epoch != claim.epoch:
                return Fenced(f"work {claim.work} is no longer held at epoch {claim.epoch}")
        for record in batch.records:
            if record.is_new:
                there = self._record(record)
                if there is not None:
                    return Present(there)
        if begun and self._active + begun > self.known.active_max:
            return StoreFull(f"{self._active} tasks are active")
        return None

    def _take_in(self, batch: Batch) -> None:
        claim = batch.claim
        for append in batch.appends:
            self._append(append)
        if claim is not None and batch.appends:
            self._prove(claim.work)
        for record in batch.records:
            self._records[record.kind, record.key] = record
            _note(self._rest, _KEEP_RECORD, (record.kind, record.key, record.log, record.body))
        for work in batch.ends:
            self._end(work)
        for name in batch.drops:
            self._drop(name)
        for name in batch.closes:
            self.delete(name)
        for put in batch.work:
            self._put(put)

    # Logs.

    def _log(self, name: str) -> Stored | None:
        if name in self.logs:
            return self.logs[name]
        log = self.known.log(name)
        if log is None:
            rows = rows_of(self.db, _LOG_BY_NAME, (name,))
            if rows:
                log = stored(rows[0])
                # Changes of this group to a log are in `logs`: what was read here is committed.
                self.known.keep(log)
        return log

    def _append(self, append: Append) -> None:
        name = append.log
        seq = append.after + len(append.events)
        log = self._log(name)
        if log is None:
            assert append.label is not None
            if name in self.logs:
                # Closed in this group and begun again: the old row must go first.
                self.flush()
            head = append.head or Head()
            log = Stored(self.next_id(), Row(name, append.label, head, seq), append.id)
            self._changed[name] = _BEGIN_LOG
            if append.label.kind == "task":
                self._active += head.state not in TERMINAL
        else:
            row = log.row
            head = append.head or row.head
            if head is not row.head:
                if self._changed.get(name) is not _BEGIN_LOG:
                    self._changed[name] = _CHANGE_LOG
                if row.label.kind == "task":
                    self._active += (head.state not in TERMINAL) - (row.head.state not in TERMINAL)
            else:
                self._changed.setdefault(name, _GROW_LOG)
            log = Stored(log.id, Row(name, row.label, head, seq), append.id)
        self.logs[name] = log
        events = append.events
        if events:
            body = events[0] if len(events) == 1 else _pack(events)
            self._appends.append((self.next_id(), log.id, seq, len(events), body))
        if append.snapshot is not None:
            self._snapshots[log.id] = (log.id, seq, append.snapshot)

    def delete(self, name: str) -> None:
        """A log goes, with all that belongs to it."""
        log = self._log(name)
        if log is None:
            return
        if log.row.label.kind == "task":
            self._active -= log.row.head.state not in TERMINAL
        for query in ("delete_log", "delete_appends", "delete_snapshot"):
            _note(self._rest, QUERIES[query], (log.id,))
        _note(self._rest, QUERIES["delete_records"], (name,))
        self.logs[name] = None
        self._are_records_gone = True
        for key in [key for key, record in self._records.items() if record.log == name]:
            del self._records[key]

    def next_id(self) -> int:
        known = self.known
        known.last_id += 1
        if known.last_id > self._reserved:
            self._reserved = known.last_id + RESERVED_AT_ONCE
            _note(self._rest, QUERIES["keep_meta"], ("reserved", self._reserved))
        return known.last_id

    def _record(self, record: Record) -> Record | None:
        key = (record.kind, record.key)
        if key in self._records:
            return self._records[key]
        if self._are_records_gone:
            self.flush()
        rows = rows_of(self.db, _RECORD, key)
        return Record(record.kind, record.key, rows[0][1], rows[0][0]) if rows else None

    # Work.

    def _put(self, put: NewWork) -> None:
        claimant = self._claimant(put)
        if put.name and (claimant is None or self._is_name_known(put)):
            self._put_by_name(put)
            return
        work, name = self.next_id(), put.name or None
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
        _note(self._work, _PUT_WORK, row)

    def _put_by_name(self, put: NewWork) -> None:
        """Put it, or move what is there by that name; if somebody holds it, it comes again afterwards."""
        row = (self.next_id(), put.kind, put.topic, put.log, put.due, put.name, put.body)
        _note(self._work, QUERIES["put_named_work"], row)
        work, held = self._held_by_name(put.name)
        if held is None:
            self.is_hinting = True
            self._put_names.add(put.name)
        else:
            self.held[work] = msgspec.structs.replace(held, moved=put.due)

    def _is_name_known(self, put: NewWork) -> bool:
        """Whether there may be work of that name. Of a log that begins right now nobody has put any."""
        if put.name in self._names or put.name in self.known.names or put.name in self._put_names:
            return True
        if put.name == put.log and self._changed.get(put.log) is _BEGIN_LOG:
            return False
        return bool(rows_of(self.db, QUERIES["work_by_name"], (put.name,)))

    def _claimant(self, put: NewWork) -> Claimant | None:
        if put.due <= self.now:
            for claimant in self.claimants:
                if claimant.free.get(put.topic, 0) > 0:
                    return claimant
        return None

    def _held(self, work: int) -> Held | None:
        return self.held[work] if work in self.held else self.known.held.get(work)

    def _held_by_name(self, name: str) -> tuple[int, Held | None]:
        work = self._names.get(name) or self.known.names.get(name, 0)
        held = self._held(work)
        return work, held if held is not None and held.name == name else None

    def _prove(self, work: int) -> None:
        # Law of attempts: an append shows that this taking got somewhere.
        held = self._held(work)
        assert held is not None
        if held.attempts > 1:
            self.held[work] = msgspec.structs.replace(held, attempts=1)
            _note(self._work, QUERIES["attempt_work"], (work,))

    def _end(self, work: int) -> None:
        held = self._held(work)
        if held is not None and held.moved is not None:
            # It was put again since it was taken: what it is about was not seen by who ends it.
            self.free(work, held.moved)
            return
        if held is not None:
            self.held[work] = None
        _note(self._work, _END_WORK, (work,))

    def _drop(self, name: str) -> None:
        work, held = self._held_by_name(name)
        if held is not None:
            self.held[work] = None
        _note(self._work, QUERIES["drop_work"], (name,))

    def free(self, work: int, due: float) -> None:
        """A lease ends and the work is due for anyone."""
        self.held[work] = None
        self.is_hinting = True
        _note(self._work, QUERIES["free_work"], (due, work))

    def release(self, work: int, epoch: int, due: float) -> None:
        held = self._held(work)
        if held is not None and held.epoch == epoch:
            self.free(work, due if held.moved is None else min(due, held.moved))

    def claim(self, kind: str, topics: Sequence[str], node: str, now: float, limit: int) -> Sequence[Work]:
        self.flush()
        topics_text = msgspec.json.encode(list(topics)).decode()
        taken: list[Work] = []
        due = rows_of(self.db, QUERIES["due_work"], (kind, topics_text, now, limit))
        for work, topic, log, body, epoch, attempts, name in due:
            taken.append(Work(work, kind, topic, log, body, epoch + 1, attempts + 1))
            self.held[work] = Held(node, epoch + 1, attempts + 1, name or "")
            if name:
                self._names[name] = work
            _note(self._work, QUERIES["hold_work"], (node, epoch + 1, attempts + 1, work))
        return taken

    def end_leases(self, nodes: dict[str, float]) -> int:
        """Free what is held by nodes that are not among these."""
        ended = [work for work, held in self._all_held() if held.node not in nodes]
        for work in ended:
            self.free(work, 0.0)
        return len(ended)

    def _all_held(self) -> list[tuple[int, Held]]:
        merged = {**self.known.held, **self.held}
        return [(work, held) for work, held in merged.items() if held is not None]

    # Upkeep.

    def sweep(self, before: float, limit: int) -> int:
        self.flush()
        names = [name for (name,) in rows_of(self.db, QUERIES["over"], (before, limit))]
        for name in names:
            journal = f"{JOURNAL}{name}:"
            past = f"{JOURNAL}{name};"
            for (other,) in rows_of(self.db, QUERIES["logs_between"], (journal, past)):
                self.delete(other)
            self.delete(name)
        return len(names)

    # Writing.

    def flush(self) -> None:
        """Run what was collected so far, inside the transaction."""
        self._write_logs()
        if self._appends:
            self._run(_APPEND, self._appends)
            self._appends = []
        if self._snapshots:
            self._run(_KEEP_SNAPSHOT, list(self._snapshots.values()))
            self._snapshots = {}
        for query, rows in self._work:
            self._run(query, rows)
        for query, rows in self._rest:
            self._run(query, rows)
        self._work = []
        self._rest = []
        self._are_records_gone = False

    def _write_logs(self) -> None:
        if not self._changed:
            return
        begun, changed, grown = [], [], []
        for name, query in self._changed.items():
            log = self.logs[name]
            if log is None:
                continue
            label, head, seq = log.row.label, log.row.head, log.row.seq
            if query is _GROW_LOG:
                grown.append((seq, log.append_id, log.id))
            elif query is _CHANGE_LOG:
                changed.append((head.state.word, head.at, head.hidden, seq, log.append_id, log.id))
            else:
                begun.append(_begin_row(log, label, head))
        self._changed = {}
        for query, rows in ((_BEGIN_LOG, begun), (_CHANGE_LOG, changed), (_GROW_LOG, grown)):
            if rows:
                self._run(query, rows)

    def _run(self, query: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not self.is_open:
            self.is_open = True
            self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(query, rows)

    # Ending.

    def land(self) -> None:
        """It is committed: what the group changed is now what is known."""
        known = self.known
        for name, log in self.logs.items():
            if log is None:
                known.forget(name)
            else:
                known.keep(log)
        for work, held in self.held.items():
            if held is None:
                gone = known.held.pop(work, None)
                if gone is not None and gone.name:
                    known.names.pop(gone.name, None)
            else:
                known.held[work] = held
                if held.name:
                    known.names[held.name] = work
        known.active = self._active
        known.reserved = self._reserved

    def undo(self) -> None:
        """It was not committed: give back the room that claimants lent."""
        for claimant, topic, _ in self.leased:
            claimant.free[topic] += 1
        if self.is_open and self.db.in_transaction:
            self.db.execute("ROLLBACK")


def _note(list_: list[tuple[str, list[tuple[Any, ...]]]], query: str, row: tuple[Any, ...]) -> None:
    if list_ and list_[-1][0] is query:
        list_[-1][1].append(row)
    else:
        list_.append((query, [row]))


def _begin_row(log: Stored, label: Label, head: Head) -> tuple[Any, ...]:
    return (
        log.id,
        log.row.log,
        label.kind,
        label.owner,
        label.tenant,
        label.agent,
        label.context,
        head.state.word,
        head.at,
        head.hidden,
        log.row.seq,
        log.append_id,
    )
