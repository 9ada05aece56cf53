"""Reads tasks back from their logs: one, or a page, always as their owner sees them."""

from __future__ import annotations

import calendar
import hashlib
import re

from ..core.tasks import Fold
from ..model.errors import error
from ..model.events import Replied, decode
from ..model.operations.a2a import PAGE_SIZE, List, Page
from ..model.peer import Answer, Caller
from ..model.task import Message, Role, Status, Task, replace
from ..store.folding import fold_of
from ..store.store import Query, Row, Store

__all__ = ["Reading"]


class Reading:
    """What an agent's callers may read."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store = store
        self._agent = agent

    def own(self, caller: Caller, task_id: str, at: str = "id") -> Row:
        """A task of this caller with this agent. Foreign, hidden and missing are one and the same answer."""
        row = self._row(caller, task_id)
        if row is None and caller.names_tasks:
            row = self._row(caller, self.log_of(caller, task_id))
        if row is None or row.head.hidden:
            raise error("TaskNotFound", f"there is no task {task_id}")
        return row

    def named(self, caller: Caller, name: str) -> Row | None:
        """What a caller who names tasks has said under this name before, be it a task yet or not."""
        return self._row(caller, name) or self._row(caller, self.log_of(caller, name))

    def _row(self, caller: Caller, log: str) -> Row | None:
        row = self._store.row(log)
        if row is not None:
            label = row.label
            if (
                label.kind == "task"
                and label.owner == caller.owner
                and label.tenant == caller.tenant
                and label.agent == self._agent
            ):
                return row
        return None

    def log_of(self, caller: Caller, name: str) -> str:
        """The id of a task that its caller has named: nobody else's, whatever names others choose.

        A UUID of version 8, made of who named it and how; so the same name is the same task, always.
        """
        said = "\n".join((caller.tenant, caller.owner, self._agent, name))
        mark = hashlib.blake2b(said.encode(), digest_size=16).hexdigest()
        return f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-b{mark[17:20]}-{mark[20:]}"

    def fold(self, row: Row, at: int | None = None) -> Fold:
        """The fold of a task, up to a position if one is given."""
        return fold_of(self._store, row.log, row.seq if at is None else at)

    def stub(self, row: Row) -> Fold:
        """As much of a fold as a caller's command needs: who it is and its state."""
        fold = Fold()
        fold.id, fold.context_id, fold.status = row.log, row.label.context, Status(row.head.state)
        return fold

    def task(self, row: Row, history_length: int | None) -> Answer:
        """A task as an answer: the stored bytes if they are what was asked for."""
        if row.head.hidden:
            return Answer(Message, self.reply(row))
        if history_length is None:
            stored = self._store.snapshot(row.log)
            if stored is not None and stored[0] == row.seq:
                return Answer(Task, data=stored[1])
        return Answer(Task, trimmed(self.fold(row).task(), history_length))

    def reply(self, row: Row) -> Message:
        """The bare message that an agent answered with."""
        event = decode(self._store.read(row.log, row.seq - 1)[0])
        assert isinstance(event, Replied), "a hidden task that is settled ends with the reply"
        return event.message

    def message(self, row: Row, message_id: str) -> Message | None:
        """The caller's message of this id, if it is already in the task."""
        for message in self.fold(row).history:
            if message.message_id == message_id and message.role is Role.USER:
                return message
        return None

    async def page(self, caller: Caller, request: List) -> Answer:
        """A page of the caller's tasks with this agent, newest status first."""
        query = Query(
            caller.owner,
            caller.tenant,
            self._agent,
            request.context_id,
            request.status,
            seconds_of(request.status_timestamp_after) if request.status_timestamp_after else None,
            request.page_size or PAGE_SIZE,
            request.page_token,
        )
        found = await self._store.find(query)
        tasks = []
        for row in found.rows:
            task = trimmed(self.fold(row).task(), request.history_length)
            tasks.append(task if request.include_artifacts else replace(task, artifacts=()))
        return Answer(Page, Page(tuple(tasks), found.token, query.size, found.total))


def trimmed(task: Task, history_length: int | None) -> Task:
    """At most so many of the newest messages; 0 is none, `None` is all."""
    if history_length is None or len(task.history) <= history_length:
        return task
    return replace(task, history=task.history[-history_length:] if history_length else ())


_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$", re.ASCII)


def seconds_of(text: str) -> float:
    """The protocol's time as seconds since 1970."""
    match = _TIME.match(text)
    if match is None:
        raise error(
            "InvalidParams",
            f"{text!r} is not a time like 2026-01-31T12:00:00.000Z",
            at="statusTimestampAfter",
        )
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    try:
        whole = calendar.timegm((year, month, day, hour, minute, second))
    except (ValueError, OverflowError):
        raise error(
            "InvalidParams", f"{text!r} is not a time that exists", at="statusTimestampAfter"
        ) from None
    zone = match.group(8)
    if zone != "Z":
        shift = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        whole += -shift if zone[0] == "+" else shift
    return whole + float(match.group(7) or 0)
