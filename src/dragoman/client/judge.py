"""What a peer may say next about one task: its copy of the state machine, without I/O.

The same table that our servers decide with. What is not legal is dropped and noted; what peers may
leave out is filled in; so whoever folds what comes out of here always holds a legal task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ..core.tasks import INFERRED, SETTLED, TERMINAL, is_legal, is_reachable
from ..model.errors import Fault
from ..model.events import (
    ArtifactChanged,
    CancelAsked,
    Event,
    MessageAdded,
    Replied,
    StatusChanged,
    TaskCreated,
)
from ..model.task import State, Status, Task

__all__ = ["Judge"]


class Judge:
    """Follows one task. `is_doubtful` means: what was let through may not be all there is.

    `begins_with_task` and `skips` are what the peer's version of the protocol wants and allows (`versions`).
    """

    __slots__ = (
        "begins_with_task",
        "context_id",
        "faults",
        "is_doubtful",
        "is_over",
        "skips",
        "state",
        "task_id",
    )

    def __init__(self, task_id: str = "", *, begins_with_task: bool = True, skips: bool = True) -> None:
        self.begins_with_task = begins_with_task
        self.skips = skips
        self.task_id = task_id
        self.context_id = ""
        # None until the peer has said something about the task.
        self.state: State | None = None
        self.is_over = False
        self.is_doubtful = False
        self.faults: list[Fault] = []

    @property
    def is_settled(self) -> bool:
        return self.is_over or self.state in SETTLED

    def hear(self, event: Event) -> Sequence[Event]:
        """The events that happened when the peer says this one: none, it, or it and what it implies."""
        if self.is_over:
            # Terminal is forever. A word about it, but no doubt: the last event was the last.
            self._blame(event, "after the task was over", doubt=False)
            return ()
        match event:
            case TaskCreated():
                return self._shown(event)
            case StatusChanged():
                return self._moved(event)
            case ArtifactChanged():
                return self._given(event)
            case Replied():
                return self._replied(event)
            case MessageAdded() | CancelAsked():
                self._blame(event, "which is not for callers")
                return ()
            case _:
                assert_never(event)

    def look(self, task: Task) -> Sequence[Event]:
        """The same for a task that was asked for: it may also be over already, as we know it."""
        return self._shown(TaskCreated(task))

    def _shown(self, event: TaskCreated) -> Sequence[Event]:
        task = event.task
        if self.task_id and task.id != self.task_id:
            self._blame(event, f"of task {task.id!r} on the stream of task {self.task_id!r}")
            return ()
        if self.state is not None and not is_reachable(self.state, task.state):
            self._blame(event, f"in state {task.state.word} after {self.state.word}")
            return ()
        self.task_id, self.context_id = task.id, task.context_id
        self._enter(task.state)
        return (event,)

    def _moved(self, event: StatusChanged) -> Sequence[Event]:
        update, after = event.status_update, event.status.state
        if not self._is_ours(event, update.task_id):
            return ()
        before = self.state
        if before is None:
            self._open(event)
            return self._shown(
                TaskCreated(Task(update.task_id, event.status, update.context_id, (), (), update.metadata))
            )
        if is_legal(before, after):
            self._enter(after)
            return (event,)
        between = INFERRED.get((before, after)) if self.skips else None
        if between is not None:
            self._enter(after)
            inferred = StatusChanged.of(update.task_id, update.context_id, Status(between))
            return (inferred, event)
        # Saying the same again loses nothing; anything else may hide what really happened.
        self._blame(event, f"from {before.word} to {after.word}", doubt=before is not after)
        return ()

    def _given(self, event: ArtifactChanged) -> Sequence[Event]:
        update = event.artifact_update
        if not self._is_ours(event, update.task_id):
            return ()
        if self.state is not None:
            return (event,)
        self._open(event)
        opened = self._shown(TaskCreated(Task(update.task_id, Status(State.WORKING), update.context_id)))
        return (*opened, event)

    def _open(self, event: Event) -> None:
        """Something happened to a task that was not shown yet."""
        if self.begins_with_task:
            self._blame(event, "before the task itself")

    def _replied(self, event: Replied) -> Sequence[Event]:
        if self.state is not None:
            self._blame(event, f"in the middle of task {self.task_id!r}")
            return ()
        self.is_over = True
        return (event,)

    def _is_ours(self, event: Event, task_id: str) -> bool:
        if self.task_id and task_id != self.task_id:
            self._blame(event, f"of task {task_id!r} on the stream of task {self.task_id!r}")
            return False
        return True

    def _enter(self, state: State) -> None:
        self.state = state
        self.is_over = state in TERMINAL

    def _blame(self, event: Event, what: str, doubt: bool = True) -> None:
        self.is_doubtful = self.is_doubtful or doubt
        state = self.state.word if self.state is not None else "nothing"
        kind = type(event).__name__
        self.faults.append(
            Fault(f"the peer sent {kind} {what}", task_id=self.task_id, last_state=state, event=kind)
        )
