"""Everything that can happen to a task: one closed union, one class per kind.

An event is encoded as `{"<kind>": {...}}`. The kinds that callers see (`seen`) are spelled
exactly as the members of the 1.0 StreamResponse, so their bytes go on the wire as stored.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import Struct

from .task import Artifact, Message, Metadata, Status, Task

__all__ = [
    "ArtifactChanged",
    "ArtifactUpdate",
    "CancelAsked",
    "Event",
    "Logged",
    "MessageAdded",
    "Replied",
    "StatusChanged",
    "StatusUpdate",
    "TaskCreated",
    "decode",
    "encode",
]


class TaskCreated(Struct, frozen=True, rename="camel"):
    """A message opened a task. Always event 1 of its log."""

    seen: ClassVar[bool] = True
    task: Task


class StatusUpdate(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a status event says."""

    task_id: str
    context_id: str
    status: Status
    metadata: Metadata | None = None


class StatusChanged(Struct, frozen=True, rename="camel"):
    """The task moved to a state, or stayed and the agent said something."""

    seen: ClassVar[bool] = True
    status_update: StatusUpdate

    @staticmethod
    def of(task_id: str, context_id: str, status: Status, metadata: Metadata | None = None) -> StatusChanged:
        return StatusChanged(StatusUpdate(task_id, context_id, status, metadata))

    @property
    def status(self) -> Status:
        return self.status_update.status


class ArtifactUpdate(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What an artifact event says."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Metadata | None = None


class ArtifactChanged(Struct, frozen=True, rename="camel"):
    """An artifact was set (`append` false) or grew by a chunk (`append` true)."""

    seen: ClassVar[bool] = True
    artifact_update: ArtifactUpdate

    @staticmethod
    def of(
        task_id: str,
        context_id: str,
        artifact: Artifact,
        append: bool = False,
        last_chunk: bool = False,
        metadata: Metadata | None = None,
    ) -> ArtifactChanged:
        return ArtifactChanged(ArtifactUpdate(task_id, context_id, artifact, append, last_chunk, metadata))

    @property
    def artifact(self) -> Artifact:
        return self.artifact_update.artifact


class Replied(Struct, frozen=True, rename="camel"):
    """The agent answered with a message and there is no task to see."""

    seen: ClassVar[bool] = True
    message: Message


class MessageAdded(Struct, frozen=True, rename="camel"):
    """A caller said more on a task. In the log and in history, never in a stream."""

    seen: ClassVar[bool] = False
    message_added: Message


class _Cancel(Struct, frozen=True, omit_defaults=True, rename="camel"):
    at: str
    metadata: Metadata | None = None


class CancelAsked(Struct, frozen=True, rename="camel"):
    """A caller wants the task to stop and the agent was given time to wind up."""

    seen: ClassVar[bool] = False
    cancel_asked: _Cancel

    @staticmethod
    def of(at: str, metadata: Metadata | None = None) -> CancelAsked:
        return CancelAsked(_Cancel(at, metadata))


Event = TaskCreated | StatusChanged | ArtifactChanged | Replied | MessageAdded | CancelAsked

_KINDS: dict[bytes, msgspec.json.Decoder[Event]] = {
    b'{"task":': msgspec.json.Decoder(TaskCreated),
    b'{"statusUpdate":': msgspec.json.Decoder(StatusChanged),
    b'{"artifactUpdate":': msgspec.json.Decoder(ArtifactChanged),
    b'{"message":': msgspec.json.Decoder(Replied),
    b'{"messageAdded":': msgspec.json.Decoder(MessageAdded),
    b'{"cancelAsked":': msgspec.json.Decoder(CancelAsked),
}
_UNSEEN = (b'{"messageAdded":', b'{"cancelAsked":')

_encode = msgspec.json.Encoder().encode


def encode(event: Event) -> bytes:
    """The bytes of an event: what the log keeps and, for the kinds callers see, what the 1.0 wire says."""
    return _encode(event)


def decode(data: bytes) -> Event:
    """The event back from its bytes."""
    return _KINDS[data[: data.index(b":") + 1]].decode(data)


class Logged:
    """One event at its place in a log; decoded only when somebody looks."""

    __slots__ = ("_event", "data", "seq")

    def __init__(self, seq: int, data: bytes, event: Event | None = None) -> None:
        self.seq = seq
        self.data = data
        self._event = event

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = decode(self.data)
        return self._event

    @property
    def is_seen(self) -> bool:
        """Whether callers may see it in a stream."""
        return not self.data.startswith(_UNSEEN)

    def __repr__(self) -> str:
        return f"Logged({self.seq}, {self.data!r})"
