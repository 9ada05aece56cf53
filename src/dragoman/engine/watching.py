"""Follows a task's log for a caller: from now, or from where they were, until there is no more.

The rule of cursors: with no cursor the first event is the task as of now, and then what is newer.
With a cursor it is the task as of the cursor, and then each event after it, once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ..core.tasks import TERMINAL
from ..model.errors import error
from ..model.events import Logged, StatusChanged, TaskCreated, encode
from ..model.task import State, replace
from ..store.store import Row, Store
from .reading import Reading

__all__ = ["Watching"]

Runs = AsyncGenerator[Sequence[Logged], None]

# A reader further behind than this gets the task as of now, marked `gap`, instead of every event.
BEHIND_MAX = 1000
READ_MAX = 256
_STATUS = b'{"statusUpdate":'
_REPLY = b'{"message":'

# A stream that a send opened ends when the agent asks the caller something: the answer is a new send.
_SEND_ENDS = TERMINAL | {State.INPUT_REQUIRED}


class Watching:
    """Streams of one agent's tasks."""

    def __init__(self, store: Store, reading: Reading) -> None:
        self._store = store
        self._reading = reading

    async def sent(self, task_id: str, seq: int) -> Runs:
        """The stream that a send opened: the task, then what happens."""
        row = self._store.row(task_id)
        while row is not None and row.head.hidden and row.head.state not in TERMINAL:
            await self._store.wait(task_id, row.seq)
            row = self._store.row(task_id)
        if row is None:
            raise error("TaskNotFound", f"there is no task {task_id}")
        if row.head.hidden:
            # Answered by a bare message: that is all the caller sees.
            yield [Logged(row.seq, self._store.read(task_id, row.seq - 1)[0])]
            return
        if seq > 0:
            # A further message: the task as it stood when the message had arrived.
            yield [self._as_of(row, seq)]
        async with aclosing(self._follow(task_id, seq, _SEND_ENDS)) as runs:
            async for run in runs:
                yield run

    async def subscribed(self, row: Row, after: int | None) -> Runs:
        """The stream of a task that exists."""
        if after is None:
            if row.head.state in TERMINAL:
                raise error(
                    "UnsupportedOperation",
                    f"task {row.log} is {row.head.state.word}; nothing more will happen",
                )
            after = row.seq
            yield [self._as_of(row, after)]
        elif after < 0 or after > row.seq:
            raise error(
                "InvalidParams",
                f"task {row.log} has no event {after}; its newest is {row.seq}",
                at="Last-Event-ID",
            )
        elif row.seq - after > BEHIND_MAX:
            after = row.seq
            yield [self._as_of(row, after, gap=True)]
        elif after > 0:
            yield [self._as_of(row, after)]
        async with aclosing(self._follow(row.log, after, TERMINAL)) as runs:
            async for run in runs:
                yield run

    def _as_of(self, row: Row, seq: int, gap: bool = False) -> Logged:
        task = self._reading.fold(row, seq).task()
        if gap:
            task = replace(task, metadata={**(task.metadata or {}), "gap": True})
        created = TaskCreated(task)
        return Logged(seq, encode(created), created)

    async def _follow(self, log: str, seq: int, ends: frozenset[State]) -> Runs:
        store = self._store
        while True:
            events = store.read(log, seq, READ_MAX)
            if events:
                run, is_end = _run(seq, events, ends)
                seq += len(events)
                if run:
                    yield run
                if is_end:
                    return
                continue
            row = store.row(log)
            if row is None:
                # An end without an ending would look as if the task had none.
                raise error(
                    "TaskNotFound", f"task {log} was removed while it was followed, after event {seq}"
                )
            if row.seq <= seq and row.head.state in ends:
                return
            await store.wait(log, seq)


def _run(seq: int, events: Sequence[bytes], ends: frozenset[State]) -> tuple[list[Logged], bool]:
    """What a caller sees of these events, and whether the stream ends with them."""
    run: list[Logged] = []
    for data in events:
        seq += 1
        logged = Logged(seq, data)
        if data.startswith(_STATUS):
            run.append(logged)
            event = logged.event
            assert isinstance(event, StatusChanged), "a status event says a status"
            if event.status.state in ends:
                return run, True
        elif data.startswith(_REPLY):
            run.append(logged)
            return run, True
        elif logged.is_seen:
            run.append(logged)
    return run, False
