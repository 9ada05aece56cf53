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
from ..model.peer import ANYONE
from .sqlite_file import QUERIES, rows_of
from .sqlite_known import Known, Stored, stored
from .sqlite_work import GroupWork, note
from .store import (
    Append,
    Batch,
    Claimant,
    Conflict,
    Fenced,
    Head,
    Label,
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
_RECORD = QUERIES["record"]
_KEEP_RECORD = QUERIES["keep_record"]

_KEEP_AUDIT = QUERIES["keep_audit"]

_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode


class Group:
    """What is committed together. `add` batches, `flush`, commit, then `land`; or `undo`."""

    def __init__(self, db: apsw.Connection, known: Known, claimants: Sequence[Claimant], now: float) -> None:
        self.db = db
        self.known = known
        self.claimants = claimants
        self.now = now
        self.is_open = False
        self.logs: dict[str, Stored | None] = {}
        self.work = GroupWork(db, known, claimants, now, self.next_id, self._is_begun)
        self._records: dict[tuple[str, str], Record] = {}
        self._are_records_gone = False
        self._active = known.active
        # How the active tasks of owners change in this group.
        self._active_of: dict[tuple[str, str], int] = {}
        self._reserved = known.reserved
        # Rows to write, by table; in each, statements in order, equal neighbours together.
        self._changed: dict[str, str] = {}
        self._appends: list[tuple[Any, ...]] = []
        self._snapshots: dict[int, tuple[int, int, bytes]] = {}
        self._rest: list[tuple[str, list[tuple[Any, ...]]]] = []

    # Judging.

    def add(self, batch: Batch) -> Refusal | None:
        """Take a batch in, or say why not; a refused batch leaves nothing behind."""
        begun = 0
        conflict: Conflict | None = None
        owner_full: StoreFull | None = None
        for append in batch.appends:
            log = self._log(append.log)
            if log is None:
                if append.after or append.label is None:
                    conflict = conflict or Conflict(append.log, 0)
                elif append.label.kind == "task":
                    begun += 1
                    owner_full = owner_full or self._owner_full(append.label)
            elif (
                append.id and log.append_id == append.id and log.row.seq == append.after + len(append.events)
            ):
                # Law 3: the batch was committed and its answer lost.
                return None
            elif log.row.seq != append.after:
                conflict = conflict or Conflict(append.log, log.row.seq)
        refusal = conflict or owner_full or self._refuse(batch, begun)
        if refusal is None:
            self._take_in(batch)
        return refusal

    def _refuse(self, batch: Batch, begun: int) -> Refusal | None:
        claim = batch.claim
        if claim is not None:
            held = self.work.held_now(claim.work)
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

    def _owner_full(self, label: Label) -> StoreFull | None:
        """Why one more task of this owner cannot begin; nobody in particular shares the store's own bound."""
        key = (label.tenant, label.owner)
        count = self.known.active_of.get(key, 0) + self._active_of.get(key, 0)
        if label.owner == ANYONE.owner or count < self.known.owner_active_max:
            return None
        return StoreFull(f"{count} tasks of this caller are active")

    def _count(self, label: Label, change: int) -> None:
        """Tasks that become active, or cease to be."""
        if change:
            key = (label.tenant, label.owner)
            self._active += change
            self._active_of[key] = self._active_of.get(key, 0) + change

    def _take_in(self, batch: Batch) -> None:
        claim = batch.claim
        for append in batch.appends:
            self._append(append)
        if claim is not None and batch.appends:
            self.work.prove(claim.work)
        for record in batch.records:
            self._records[record.kind, record.key] = record
            note(self._rest, _KEEP_RECORD, (record.kind, record.key, record.log, record.body))
        for work in batch.ends:
            self.work.end(work)
        for name in batch.drops:
            self.work.drop(name)
        for name in batch.closes:
            self.delete(name)
        for put in batch.work:
            self.work.put(put)
        for entry in batch.audit:
            row = (
                self.next_id(),
                entry.at,
                entry.trace,
                entry.task,
                entry.caller,
                entry.agent,
                _encode(entry),
            )
            note(self._rest, _KEEP_AUDIT, row)

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
                self._count(append.label, int(head.state not in TERMINAL))
        else:
            row = log.row
            head = append.head or row.head
            if head is not row.head:
                if self._changed.get(name) is not _BEGIN_LOG:
                    self._changed[name] = _CHANGE_LOG
                if row.label.kind == "task":
                    was_active = row.head.state not in TERMINAL
                    self._count(row.label, (head.state not in TERMINAL) - was_active)
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
            self._count(log.row.label, -int(log.row.head.state not in TERMINAL))
        for query in ("delete_log", "delete_appends", "delete_snapshot"):
            note(self._rest, QUERIES[query], (log.id,))
        note(self._rest, QUERIES["delete_records"], (name,))
        self.logs[name] = None
        self._are_records_gone = True
        for key in [key for key, record in self._records.items() if record.log == name]:
            del self._records[key]

    def _is_begun(self, log: str) -> bool:
        """Whether a log begins in this very group."""
        return self._changed.get(log) is _BEGIN_LOG

    def claim(self, kind: str, topics: Sequence[str], node: str, now: float, limit: int) -> Sequence[Work]:
        self.flush()
        return self.work.claim(kind, topics, node, now, limit)

    def next_id(self) -> int:
        known = self.known
        known.last_id += 1
        if known.last_id > self._reserved:
            self._reserved = known.last_id + RESERVED_AT_ONCE
            note(self._rest, QUERIES["keep_meta"], ("reserved", self._reserved))
        return known.last_id

    def _record(self, record: Record) -> Record | None:
        key = (record.kind, record.key)
        if key in self._records:
            return self._records[key]
        if self._are_records_gone:
            self.flush()
        rows = rows_of(self.db, _RECORD, key)
        return Record(record.kind, record.key, rows[0][1], rows[0][0]) if rows else None

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

    def sweep_audit(self, before: float, limit: int) -> None:
        note(self._rest, QUERIES["sweep_audit"], (before, limit))

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
        for query, rows in (*self.work.taken_rows(), *self._rest):
            self._run(query, rows)
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
        self.work.land()
        known.active = self._active
        for key, change in self._active_of.items():
            left = known.active_of.get(key, 0) + change
            if left:
                known.active_of[key] = left
            else:
                known.active_of.pop(key, None)
        known.reserved = self._reserved

    def undo(self) -> None:
        """It was not committed: give back the room that claimants lent."""
        self.work.undo()
        if self.is_open and self.db.in_transaction:
            self.db.execute("ROLLBACK")


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
        label.trace,
    )
