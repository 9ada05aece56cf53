"""The codec (`codec.py`) of 0.2.6 and 0.3 over REST: the JSON of the protobuf package `a2a.v1`.

Much is called otherwise than in 1.0: `content` for parts, files and JSON inside, `CANCELLED` with two L, and
what is false is not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..model.errors import AgentError
from ..model.events import ArtifactChanged, Event, Logged, Replied, StatusChanged, TaskCreated
from ..model.operations.a2a import Configuration, Operation, Request, Send
from ..model.peer import Answer
from ..model.task import Artifact, Message, Part, State, Status, Task
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
from .parts import spell_proto

__all__ = ["ONCE", "TWICE", "ProtoJson"]

_CANCELED: Final = "TASK_STATE_CANCELLED"
_encode = msgspec.json.Encoder().encode


class ProtoJson:
    """`twice`: bytes are written in base64 twice, as the protocol's own SDK writes and reads them."""

    def __init__(self, *, twice: bool) -> None:
        self._twice = twice

    # As the one who is asked.

    def read_request(
        self, operation: Operation, raw: Raw, new_id: FreshId, *, lenient: bool = False
    ) -> Request:
        if operation.request is Send:
            return of_caller(_send_of, raw)
        return of_caller(lambda value, at: request_about(operation, Members(value, at)), raw)

    def spell_reply(self, operation: Operation, answer: Answer, task_id: str = "") -> bytes:
        value = answer.value
        if isinstance(value, Message):
            return _encode({"message": self._message(value)})
        assert isinstance(value, Task), "only tasks and messages are answered before 1.0"
        task = self._task(value)
        return _encode({"task": task} if operation.wraps else task)

    def teller(self, ends: Ends, task_id: str = "") -> Tell:
        def tell(run: Sequence[Logged]) -> Sequence[tuple[int, bytes]]:
            return [(logged.seq, _encode(self._event(logged.event, ends))) for logged in run]

        return tell

    def spell_error(self, wrong: AgentError) -> dict[str, Any]:
        # The form of errors was left free; this one is read by those who look for a code and for a name.
        return {**refusals.spell_error(wrong), "type": f"{wrong.row.name}Error"}

    # As the one who asks.

    def spell_request(self, operation: Operation, request: Request) -> bytes:
        if not isinstance(request, Send):
            return _encode(members_about(request))
        wanted = wanted_of(request.configuration, "pushNotification")
        body = {"message": self._message(request.message), "configuration": wanted}
        return _encode(noted(body, request.metadata))

    def read_reply(self, operation: Operation, raw: Raw) -> Answer:
        value = of_peer(outcome_of if operation.request is Send else task_of, raw)
        return Answer(type(value), value)

    def read_item(self, raw: Raw) -> Sequence[Event]:
        return (of_peer(event_of, raw),)

    def read_error(self, error_object: Any) -> AgentError:
        return refusals.read_error(error_object)

    # Values.

    def _parts(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [spell_proto(part, twice=self._twice) for part in parts]

    def _message(self, message: Message) -> dict[str, Any]:
        spelled: dict[str, Any] = {"messageId": message.message_id}
        if message.context_id:
            spelled["contextId"] = message.context_id
        if message.task_id:
            spelled["taskId"] = message.task_id
        spelled["role"] = message.role.value
        spelled["content"] = self._parts(message.parts)
        if message.extensions:
            spelled["extensions"] = message.extensions
        return noted(spelled, message.metadata)

    def _status(self, status: Status) -> dict[str, Any]:
        canceled = status.state is State.CANCELED
        spelled: dict[str, Any] = {"state": _CANCELED if canceled else status.state.value}
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
        if artifact.extensions:
            spelled["extensions"] = artifact.extensions
        return noted(spelled, artifact.metadata)

    def _task(self, task: Task) -> dict[str, Any]:
        spelled: dict[str, Any] = {
            "id": task.id,
            "contextId": task.context_id,
            "status": self._status(task.status),
        }
        if task.artifacts:
            spelled["artifacts"] = [self._artifact(artifact) for artifact in task.artifacts]
        if task.history:
            spelled["history"] = [self._message(message) for message in task.history]
        return noted(spelled, task.metadata)

    def _event(self, event: Event, ends: Ends) -> dict[str, Any]:
        match event:
            case ArtifactChanged():
                grown = event.artifact_update
                spelled: dict[str, Any] = {
                    "taskId": grown.task_id,
                    "contextId": grown.context_id,
                    "artifact": self._artifact(grown.artifact),
                }
                if grown.append:
                    spelled["append"] = True
                if grown.last_chunk:
                    spelled["lastChunk"] = True
                return {"artifactUpdate": noted(spelled, grown.metadata)}
            case StatusChanged():
                moved = event.status_update
                spelled = {
                    "taskId": moved.task_id,
                    "contextId": moved.context_id,
                    "status": self._status(moved.status),
                }
                if moved.status.state in ends:
                    spelled["final"] = True
                return {"statusUpdate": noted(spelled, moved.metadata)}
            case TaskCreated():
                return {"task": self._task(event.task)}
            case Replied():
                return {"message": self._message(event.message)}
            case _:
                raise AssertionError(f"{type(event).__name__} is not for callers")


def _send_of(value: Any, at: str) -> Send:
    members = Members(value, at)
    # A configuration that does not say `blocking` says that it is false: protobuf leaves out what is.
    wanted = members.one(
        lambda inner, place: configuration_of(Members(inner, place), waits_unsaid=False), "configuration"
    )
    # The member has two names: protobuf's own, and the one it has in JSON.
    message = members.needed(message_of, "message", "request")
    return Send(message, wanted or Configuration(), members.free("metadata"))


TWICE = ProtoJson(twice=True)
ONCE = ProtoJson(twice=False)
