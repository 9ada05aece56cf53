"""What was seen of a task so far: for whoever gives up on it, or is interrupted."""

from __future__ import annotations

from ...core.tasks import INTERRUPTED
from ...model.events import Logged, Replied, StatusChanged, TaskCreated
from ...model.task import Message, State
from .options import Way
from .speech import command

__all__ = ["Seen"]


class Seen:
    """A task, as it was told of on some way to its agent."""

    def __init__(self, way: Way, task_id: str = "") -> None:
        self.way = way
        self.task_id = task_id
        self.context_id = ""
        self.state: State | None = None
        self.reply: Message | None = None
        self.words = ""

    def note(self, logged: Logged) -> bool:
        """Take an event in; whether it asks the caller to act."""
        match logged.event:
            case TaskCreated(task=task):
                self.task_id, self.context_id, self.state = task.id, task.context_id, task.state
                said = task.status.message
            case StatusChanged(status=status):
                self.state, said = status.state, status.message
            case Replied(message=message):
                self.reply = message
                return False
            case _:
                return False
        if said is not None:
            self.words = said.text
        return self.state in INTERRUPTED

    def where(self) -> str:
        """The command that shows what became of it."""
        return command("task", "get", *self.way.words, self.task_id, "--wait")

    def last(self) -> str:
        if not self.task_id:
            return "no task was seen"
        return f"task {self.task_id} was {self.state.word if self.state else 'not yet seen'}"
