"""Follows a task's log for a caller: from now, or from where they were, until there is no more.

The rule of cursors: with no cursor the first event is the task as of now, and then what is newer.
With a cursor it is the task as of the cursor, and then each event after it, once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import NamedTuple

from ..core.tasks import TERMINAL
from ..model.errors import error
from ..model.events import Logged, StatusChanged, TaskCreated, encode
from ..model.task import State, replace
from ..store.store import Row, Store
from .reading import Reading

__all__ = ["Start", "Watching"]

Runs = AsyncGenerator[Sequence[Logged], None]

# A reader further behind than this gets the task as of now, marked `gap`, instead of every event.
BEHIND_MAX = 1000
READ_MAX = 256
_STATUS = b'{"statusUpdate":'
_REPLY = b'{"message":'

# A stream that a send opened ends when the agent asks the caller something: the answer is a new send.
_SEND_ENDS = TERMINAL | {State.INPUT_REQUIRED}


class Start(NamedTuple):
    """Where a stream begins: after which event, what is shown first, and the states it ends with."""

    log: str
    seq: int
    ends: frozenset[State]
    first: Logged | None = None


class Watching:
    """Streams of one agent's tasks."""

    def __init__(self, store: Store, reading: Reading) -> None:
        self._store = store
        self._reading = reading

    async def sent(self, task_id: str, seq: int) -> Start:
        """The stream that a send opened: the task, then what happens."""
        row = self._store.row(task_id)
        while row is not None and row.head.hidden and row.head.state not in TERMINAL:
            await self._store.wait(task_id, row.seq)
            row = self._store.row(task_id)
        if row is None:
            raise error("TaskNotFound", f"there is no task {task_id}")
        if row.head.hidden:
            # Answered by a bare message: that is all the caller sees.
            return Start(task_id, row.seq - 1, _SEND_ENDS)
        # A further message: the task as it stood when the message had arrived.
        return Start(task_id, seq, _SEND_ENDS, self._as_of(row, seq) if seq > 0 else None)

    def subscribed(self, row: Row, after: int | None) -> Start:
        """The stream of a task that exists."""
        if after is None:
            if row.head.state in TERMINAL:
                raise error(
                    "UnsupportedOperation",
                    f"task {row.log} is {row.head.state.word}; nothing more will happen",
                    nuance="InvalidTaskState",
                )
            return Start(row.log, row.seq, TERMINAL, self._as_of(row, row.seq))
        if after < 0 or after > row.seq:
            raise error(
                "InvalidParams",
                f"task {row.log} has no event {after}; its newest is {row.seq}",
                at="Last-Event-ID",
            )
        if row.seq - after > BEHIND_MAX:
            return Start(row.log, row.seq, TERMINAL, self._as_of(row, row.seq, gap=True))
        return Start(row.log, after, TERMINAL, self._as_of(row, after) if after > 0 else None)

    def _as_of(self, row: Row, seq: int, gap: bool = False) -> Logged:
        task = self._reading.fold(row, seq).task()
        if gap:
            task = replace(task, metadata={**(task.metadata or {}), "gap": True})
        created = TaskCreated(task)
        return Logged(seq, encode(created), created)

    async def follow(self, begin: Callable[[], Awaitable[Start]]) -> Runs:
        """The one loop of all streams: read, pass on, wait."""
        store = self._store
        log, seq, ends, first = await begin()
        if first is not None:
            yield [first]
        while True:
            events = store.read(log, seq, READ_MAX)
            if events:
                run, is_end = _run(seq, events, ends)
                seq += len(events)
                if run:
                    yield run
                if is_end:
                    return
            else:
                row = store.row(log)
                if row is None:
                    # An end without an ending would look as if the task had none.
                    words = f"task {log} was removed while it was followed, after event {seq}"
                    raise error("TaskNotFound", words)
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
