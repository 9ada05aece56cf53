"""The nouns of the protocol: parts, messages, artifacts, statuses and tasks, as frozen values.

By construction the JSON that msgspec writes for these is the protocol's own 1.0 JSON, so an
encoded event can be stored once and spliced into answers without being spelled again.
"""

from __future__ import annotations

import enum
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace as replace

__all__ = [
    "Artifact",
    "Message",
    "Metadata",
    "Part",
    "Role",
    "State",
    "Status",
    "Task",
    "replace",
    "text_of",
]

Metadata = dict[str, Any]


class State(enum.StrEnum):
    """The nine states. Values are the 1.0 spelling; `word` is what people read."""

    UNKNOWN = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    word: str

    def __init__(self, wire: str) -> None:
        self.word = wire.removeprefix("TASK_STATE_").lower().replace("_", "-")
        if wire == "TASK_STATE_UNSPECIFIED":
            self.word = "unknown"


class Role(enum.StrEnum):
    """Who speaks. The zero value exists on the wire only, and no message may carry it."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class Part(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One piece of content: exactly one of text, raw, url, data."""

    text: str | None = None
    raw: bytes | None = None
    url: str | None = None
    data: Any | UnsetType = UNSET
    metadata: Metadata | None = None
    filename: str = ""
    media_type: str = ""


class Message(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a caller or an agent says once."""

    message_id: str
    role: Role
    parts: tuple[Part, ...]
    context_id: str = ""
    task_id: str = ""
    metadata: Metadata | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return text_of(self.parts)


class Artifact(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A named result of a task."""

    artifact_id: str
    parts: tuple[Part, ...]
    name: str = ""
    description: str = ""
    metadata: Metadata | None = None
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All text parts joined without a separator: chunks of one text arrive as parts."""
        return "".join(part.text for part in self.parts if part.text is not None)


class Status(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The state of a task, since when, and what the agent said about it."""

    state: State
    message: Message | None = None
    timestamp: str = ""


class Task(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A unit of work: the fold of its log."""

    id: str
    status: Status
    context_id: str = ""
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: Metadata | None = None

    @property
    def state(self) -> State:
        return self.status.state

    @property
    def text(self) -> str:
        """What the agent answered: the text of its artifacts, else of its last words."""
        said = "\n".join(artifact.text for artifact in self.artifacts if artifact.text)
        if not said and self.status.message is not None:
            return self.status.message.text
        return said


def text_of(parts: tuple[Part, ...]) -> str:
    """The text parts of a message, joined by newlines."""
    if len(parts) == 1:
        return parts[0].text or ""
    return "\n".join(part.text for part in parts if part.text is not None)
