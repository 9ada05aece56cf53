"""All that may happen to a task: the table of transitions, what a command decides, what an event does.

Two rules. Everything that affects the state of a task lives in this file; and this file does not
know which role we play: servers decide and fold with it, clients judge what peers say with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import error
from ..model.events import (
    ArtifactChanged,
    CancelAsked,
    Event,
    MessageAdded,
    Replied,
    StatusChanged,
    TaskCreated,
)
from ..model.task import Artifact, Message, Metadata, Part, State, Status, Task

__all__ = [
    "ACTIVE",
    "INFERRED",
    "INTERRUPTED",
    "SETTLED",
    "TERMINAL",
    "TRANSITIONS",
    "Add",
    "Cancel",
    "Command",
    "Fold",
    "Give",
    "Move",
    "Open",
    "Say",
    "apply",
    "decide",
    "is_legal",
    "is_reachable",
]

S = State

# From each state, the states one event may lead to. Absent is illegal.
TRANSITIONS: dict[State, frozenset[State]] = {
    S.SUBMITTED: frozenset(
        {S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED, S.FAILED, S.CANCELED, S.REJECTED, S.UNKNOWN}
    ),
    S.WORKING: frozenset(
        {
            S.WORKING,
            S.INPUT_REQUIRED,
            S.AUTH_REQUIRED,
            S.COMPLETED,
            S.FAILED,
            S.CANCELED,
            S.REJECTED,
            S.UNKNOWN,
        }
    ),
    S.INPUT_REQUIRED: frozenset({S.INPUT_REQUIRED, S.WORKING, S.FAILED, S.CANCELED, S.UNKNOWN}),
    S.AUTH_REQUIRED: frozenset(
        {S.AUTH_REQUIRED, S.WORKING, S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED, S.UNKNOWN}
    ),
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELED: frozenset(),
    S.REJECTED: frozenset(),
    # "We lost sight of it": whatever is seen next is news.
    S.UNKNOWN: frozenset(S),
}

# Edges that peers of 0.2 and later may skip; the state between is inferred.
INFERRED: dict[tuple[State, State], State] = {(S.SUBMITTED, S.COMPLETED): S.WORKING}

TERMINAL = frozenset(state for state, exits in TRANSITIONS.items() if not exits)
# The agent waits for somebody: it goes on only by a message (or, for auth, by itself).
INTERRUPTED = frozenset({S.INPUT_REQUIRED, S.AUTH_REQUIRED})
SETTLED = TERMINAL | INTERRUPTED
ACTIVE = frozenset(State) - TERMINAL - {S.UNKNOWN}


def _closure() -> dict[State, frozenset[State]]:
    """From each state, all states that any number of events may lead to.

    Walks do not lead through `unknown`: it says what we lost sight of, and would make all reachable from all.
    """
    reach = {state: set(exits) for state, exits in TRANSITIONS.items()}
    grew = True
    while grew:
        grew = False
        for exits in reach.values():
            more = set().union(*(reach[state] for state in exits - {State.UNKNOWN})) - exits
            exits |= more
            grew = grew or bool(more)
    return {state: frozenset(exits) for state, exits in reach.items()}


_REACHABLE = _closure()


def is_legal(before: State, after: State) -> bool:
    """Whether one event may lead from one state to the other."""
    return after in TRANSITIONS[before]


def is_reachable(before: State, after: State) -> bool:
    """Whether a later look may find `after`: polls and webhooks show snapshots, not edges."""
    return before is after or after in _REACHABLE[before]


# What a caller or an agent wants to happen.


class Open(Struct, frozen=True):
    """A caller opens a task with a message."""

    task_id: str
    context_id: str
    message: Message
    metadata: Metadata | None = None


class Add(Struct, frozen=True):
    """A caller says more."""

    message: Message


class Cancel(Struct, frozen=True):
    """A caller wants it stopped, now or after the agent wound up."""

    metadata: Metadata | None = None
    with_grace: bool = False


class Move(Struct, frozen=True):
    """The agent moves the task to a state, perhaps with words."""

    state: State
    message: Message | None = None
    metadata: Metadata | None = None


class Give(Struct, frozen=True):
    """The agent hands over an artifact or a chunk of one."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = True
    metadata: Metadata | None = None


class Say(Struct, frozen=True):
    """The agent answers with a message instead of a task."""

    message: Message


Command = Open | Add | Cancel | Move | Give | Say


def decide(fold: Fold, command: Command, at: str) -> Sequence[Event]:
    """The events a command leads to, none if nothing needs to happen, or an error of the table."""
    match command:
        case Move():
            return (_moved(fold, command, at),)
        case Give():
            return (_given(fold, command),)
        case Open():
            return (_opened(command, at),)
        case Add():
            return _added(fold, command.message, at)
        case Cancel():
            return _canceled(fold, command, at)
        case Say():
            if fold.is_told:
                raise error(
                    "InvalidAgentResponse", "a task that was told of cannot be answered with a bare message"
                )
            return (Replied(command.message),)
        case _:
            assert_never(command)


def _opened(command: Open, at: str) -> TaskCreated:
    message = replace(command.message, task_id=command.task_id, context_id=command.context_id)
    return TaskCreated(
        Task(
            command.task_id,
            Status(State.SUBMITTED, None, at),
            command.context_id,
            history=(message,),
            metadata=command.metadata,
        )
    )


def _added(fold: Fold, message: Message, at: str) -> Sequence[Event]:
    state = fold.status.state
    if state in TERMINAL or fold.reply is not None:
        words = f"task {fold.id} is {state.word}; it takes no more messages"
        raise error("UnsupportedOperation", words, nuance="InvalidTaskState")
    added = MessageAdded(replace(message, task_id=fold.id, context_id=fold.context_id))
    if state in INTERRUPTED:
        # First the state moves on, which files the question in the history; then comes the answer.
        return (StatusChanged.of(fold.id, fold.context_id, Status(State.WORKING, None, at)), added)
    return (added,)


def _canceled(fold: Fold, command: Cancel, at: str) -> Sequence[Event]:
    state = fold.status.state
    if state is State.CANCELED:
        return ()
    if state in TERMINAL or fold.reply is not None:
        raise error("TaskNotCancelable", f"task {fold.id} is already {state.word}")
    if command.with_grace:
        return () if fold.cancel_asked else (CancelAsked.of(at, command.metadata),)
    return (StatusChanged.of(fold.id, fold.context_id, Status(State.CANCELED, None, at), command.metadata),)


def _moved(fold: Fold, command: Move, at: str) -> StatusChanged:
    before, after = fold.status.state, command.state
    if fold.reply is not None or after not in TRANSITIONS[before]:
        raise error("InvalidAgentResponse", f"a task cannot go from {before.word} to {after.word}")
    return StatusChanged.of(fold.id, fold.context_id, Status(after, command.message, at), command.metadata)


def _given(fold: Fold, command: Give) -> ArtifactChanged:
    if fold.reply is not None or fold.status.state in TERMINAL:
        raise error("InvalidAgentResponse", f"task {fold.id} is over; it takes no more artifacts")
    if type(command.artifact.artifact_id) is not str:
        raise error(
            "InvalidAgentResponse", f"an artifact's id is a text, not {command.artifact.artifact_id!r}"
        )
    if not command.artifact.parts:
        raise error("InvalidAgentResponse", "an artifact has at least one part")
    # A chunk for an artifact nobody has seen begins it: dropping it would lose what the agent said.
    append = command.append and command.artifact.artifact_id in fold.artifacts
    return ArtifactChanged.of(
        fold.id, fold.context_id, command.artifact, append, command.last_chunk, command.metadata
    )


class _Growing:
    """An artifact that chunks are still added to."""

    __slots__ = ("first", "parts")

    def __init__(self, artifact: Artifact) -> None:
        self.first = artifact
        self.parts: list[Part] | None = None

    def grow(self, artifact: Artifact) -> None:
        if self.parts is None:
            self.parts = list(self.first.parts)
        self.parts.extend(artifact.parts)
        if artifact.metadata:
            self.first = replace(self.first, metadata={**(self.first.metadata or {}), **artifact.metadata})

    def value(self) -> Artifact:
        if self.parts is None:
            return self.first
        return replace(self.first, parts=tuple(self.parts))


class Fold:
    """A task while events are applied to it: each costs the same, however long the log has grown."""

    __slots__ = (
        "artifacts",
        "cancel_asked",
        "context_id",
        "history",
        "id",
        "is_told",
        "metadata",
        "reply",
        "status",
    )

    def __init__(self, task: Task | None = None) -> None:
        self.artifacts: dict[str, _Growing] = {}
        self.reply: Message | None = None
        self.cancel_asked = False
        # Whether callers have seen more than its creation: then it can no longer become a bare message.
        self.is_told = False
        if task is None:
            self.id = self.context_id = ""
            self.status = Status(State.UNKNOWN)
            self.history: list[Message] = []
            self.metadata: Metadata | None = None
        else:
            self._set(task)

    def _set(self, task: Task) -> None:
        self.id = task.id
        self.context_id = task.context_id
        self.status = task.status
        self.history = list(task.history)
        self.metadata = task.metadata
        for artifact in task.artifacts:
            self.artifacts[artifact.artifact_id] = _Growing(artifact)

    def apply(self, event: Event) -> None:
        """Let one event happen. Never fails on what `decide` gave."""
        match event:
            case StatusChanged():
                # Words that a newer status displaces are kept: messages live in history.
                if self.status.message is not None:
                    self.history.append(self.status.message)
                self.status = event.status
                self.is_told = True
                if event.status_update.metadata:
                    self.metadata = {**(self.metadata or {}), **event.status_update.metadata}
            case ArtifactChanged():
                self._give(event)
                self.is_told = True
            case MessageAdded():
                self.history.append(event.message_added)
            case TaskCreated():
                self.artifacts.clear()
                self._set(event.task)
            case Replied():
                self.reply = event.message
            case CancelAsked():
                self.cancel_asked = True
            case _:
                assert_never(event)

    def _give(self, event: ArtifactChanged) -> None:
        artifact = event.artifact
        there = self.artifacts.get(artifact.artifact_id) if event.artifact_update.append else None
        if there is None:
            self.artifacts[artifact.artifact_id] = _Growing(artifact)
        else:
            there.grow(artifact)

    def task(self) -> Task:
        """The task as it is now."""
        artifacts = tuple([growing.value() for growing in self.artifacts.values()])
        return Task(self.id, self.status, self.context_id, artifacts, tuple(self.history), self.metadata)

    @property
    def is_settled(self) -> bool:
        """No more events without a new message."""
        return self.status.state in SETTLED or self.reply is not None

    @property
    def is_over(self) -> bool:
        """No more events, ever."""
        return self.status.state in TERMINAL or self.reply is not None


def apply(task: Task, event: Event) -> Task:
    """The task after one event. For folding many, use `Fold`: this copies."""
    fold = Fold(task)
    fold.apply(event)
    return fold.task()
