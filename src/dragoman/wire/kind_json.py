"""The codec (`codec.py`) of 0.2 and 0.3 over JSON-RPC: JSON in which `kind` says what a thing is.

Written strictly, read as `elder.py` reads. A message as most clients say it takes a quick way through C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..model.errors import AgentError
from ..model.events import ArtifactChanged, Event, Logged, Replied, StatusChanged, TaskCreated
from ..model.operations.a2a import Configuration, Operation, Request, Send
from ..model.peer import Answer
from ..model.task import Artifact, Message, Part, Role, Status, Task
from . import refusals
from .codec import Ends, FreshId, Raw, Tell
from .elder import (
    configuration_of,
    event_of,
    members_about,
    message_of,
    noted,
    outcome_of,
    request_about,
    task_of,
    wanted_of,
)
from .members import Members, of_caller, of_peer
from .parts import spell_marked

__all__ = ["BOTH", "KIND", "TERSE", "TYPE", "KindJson"]

ROLES = {Role.USER: "user", Role.AGENT: "agent"}


class KindJson:
    """`marks` are the members that say what a part is. `is_terse`: what is so by default is not said."""

    def __init__(self, *marks: str, is_terse: bool = False) -> None:
        self._marks = marks
        self._is_terse = is_terse

    # As the one who is asked.

    def read_request(
        self, operation: Operation, raw: Raw, new_id: FreshId, *, lenient: bool = False
    ) -> Request:
        if operation.request is Send:
            if not lenient and (quick := _quick(raw)) is not None:
                return quick
            return of_caller(_send_of, raw)
        return of_caller(lambda value, at: request_about(operation, Members(value, at)), raw)

    def spell_reply(self, operation: Operation, answer: Answer, task_id: str = "") -> bytes:
        value = answer.value
        assert isinstance(value, Task | Message), "only tasks and messages are answered before 1.0"
        return _encode(self._task(value) if isinstance(value, Task) else self._message(value))

    def teller(self, ends: Ends, task_id: str = "") -> Tell:
        def tell(run: Sequence[Logged]) -> Sequence[tuple[int, bytes]]:
            return [(logged.seq, _encode(self._event(logged.event, ends))) for logged in run]

        return tell

    def spell_error(self, wrong: AgentError) -> dict[str, Any]:
        return refusals.spell_error(wrong)

    # As the one who asks.

    def spell_request(self, operation: Operation, request: Request) -> bytes:
        if not isinstance(request, Send):
            return _encode(members_about(request))
        params: dict[str, Any] = {"message": self._message(request.message)}
        if not (self._is_terse and request.configuration == _NOTHING_WANTED):
            params["configuration"] = wanted_of(request.configuration, "pushNotificationConfig")
        if request.metadata is not None:
            params["metadata"] = request.metadata
        return _encode(params)

    def read_reply(self, operation: Operation, raw: Raw) -> Answer:
        value = of_peer(outcome_of if operation.request is Send else task_of, raw)
        return Answer(type(value), value)

    def read_item(self, raw: Raw) -> Sequence[Event]:
        return (of_peer(event_of, raw),)

    def read_error(self, error_object: Any) -> AgentError:
        return refusals.read_error(error_object)

    # Values.

    def _parts(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [spell_marked(part, self._marks) for part in parts]

    def _message(self, message: Message) -> dict[str, Any]:
        spelled: dict[str, Any] = {
            "kind": "message",
            "messageId": message.message_id,
            "role": ROLES[message.role],
            "parts": self._parts(message.parts),
        }
        if message.context_id:
            spelled["contextId"] = message.context_id
        if message.task_id:
            spelled["taskId"] = message.task_id
        if message.metadata is not None:
            spelled["metadata"] = message.metadata
        if message.extensions:
            spelled["extensions"] = message.extensions
        if message.reference_task_ids:
            spelled["referenceTaskIds"] = message.reference_task_ids
        return spelled

    def _status(self, status: Status) -> dict[str, Any]:
        spelled: dict[str, Any] = {"state": status.state.word}
        if status.message is not None:
            spelled["message"] = self._message(status.message)
        if status.timestamp:
            spelled["timestamp"] = status.timestamp
        return spelled

    def _artifact(self, artifact: Artifact) -> dict[str, Any]:
        spelled: dict[str, Any] = {"artifactId": artifact.artifact_id}
        if artifact.name:
            spelled["name"] = artifact.name
        if artifact.description:
            spelled["description"] = artifact.description
        spelled["parts"] = self._parts(artifact.parts)
        if artifact.metadata is not None:
            spelled["metadata"] = artifact.metadata
        if artifact.extensions:
            spelled["extensions"] = artifact.extensions
        return spelled

    def _task(self, task: Task) -> dict[str, Any]:
        spelled: dict[str, Any] = {
            "kind": "task",
            "id": task.id,
            "contextId": task.context_id,
            "status": self._status(task.status),
        }
        if task.artifacts:
            spelled["artifacts"] = [self._artifact(artifact) for artifact in task.artifacts]
        if task.history:
            spelled["history"] = [self._message(message) for message in task.history]
        if task.metadata is not None:
            spelled["metadata"] = task.metadata
        return spelled

    def _event(self, event: Event, ends: Ends) -> dict[str, Any]:
        match event:
            case ArtifactChanged():
                grown = event.artifact_update
                return noted(
                    {
                        "kind": "artifact-update",
                        "taskId": grown.task_id,
                        "contextId": grown.context_id,
                        "artifact": self._artifact(grown.artifact),
                        "append": grown.append,
                        "lastChunk": grown.last_chunk,
                    },
                    grown.metadata,
                )
            case StatusChanged():
                moved = event.status_update
                return noted(
                    {
                        "kind": "status-update",
                        "taskId": moved.task_id,
                        "contextId": moved.context_id,
                        "status": self._status(moved.status),
                        "final": moved.status.state in ends,
                    },
                    moved.metadata,
                )
            case TaskCreated():
                return self._task(event.task)
            case Replied():
                return self._message(event.message)
            case _:
                raise AssertionError(f"{type(event).__name__} is not for callers")


def _send_of(value: Any, at: str) -> Send:
    members = Members(value, at)
    return Send(
        members.needed(message_of, "message"),
        members.one(lambda inner, place: configuration_of(Members(inner, place)), "configuration")
        or Configuration(),
        members.free("metadata"),
    )


# The quick way: a message of texts alone with what most clients say beside it. All else is `elder.py`'s, and so is
# whatever has a member of another name: it may mean something there.


class _Text(Struct, tag_field="kind", tag="text", forbid_unknown_fields=True):
    text: str
    metadata: None = None


class _Said(Struct, rename="camel", forbid_unknown_fields=True):
    message_id: str
    role: Literal["user"]
    parts: list[_Text]
    kind: str = ""
    context_id: str = ""
    task_id: str = ""
    metadata: dict[str, Any] | None = None
    extensions: None = None
    reference_task_ids: None = None


class _Wanted(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    accepted_output_modes: tuple[str, ...] = ()
    blocking: bool = True
    history_length: None = None
    push_notification_config: None = None


_WAITS = _Wanted()


class _Params(Struct, forbid_unknown_fields=True):
    message: _Said
    configuration: _Wanted = _WAITS
    metadata: dict[str, Any] | None = None


_params = msgspec.json.Decoder(_Params).decode
_encode = msgspec.json.Encoder().encode
_NOTHING_WANTED = Configuration()


def _quick(raw: Raw) -> Send | None:
    try:
        params = _params(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    said, wanted = params.message, params.configuration
    free = said.metadata is not None or params.metadata is not None
    if not said.message_id or not said.parts or free:
        # Free JSON is looked through by the other way, and what lacks is named by it.
        return None
    parts = tuple([Part(text=part.text) for part in said.parts])
    message = Message(said.message_id, Role.USER, parts, said.context_id, said.task_id)
    if wanted is _WAITS:
        return Send(message)
    return Send(message, Configuration(wanted.accepted_output_modes, None, not wanted.blocking))


KIND = KindJson("kind")
# For a peer that does not say its version: read by those who look for the one and by those who look for the other.
BOTH = KindJson("type", "kind", is_terse=True)
TERSE = KindJson("kind", is_terse=True)
TYPE = KindJson("type", is_terse=True)
