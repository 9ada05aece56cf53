"""The codec (`codec.py`) of 0.1: tasks that their callers name, parts marked with `type`, artifacts with numbers.

Here an answer is always a task, a stream is told in the words of its caller, and its last event brings the
artifacts with it: those that streamed before once more, and those that came with the end for the first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..model.events import ArtifactChanged, Event, Logged, Replied, StatusChanged, TaskCreated
from ..model.operations.a2a import Configuration, Operation, Request, Send
from ..model.peer import Answer
from ..model.task import Artifact, Message, Part, State, Status, Task, replace
from . import refusals
from .codec import Ends, FreshId, Raw, Tell
from .elder import (
    history_length_of,
    members_about,
    message_of,
    noted,
    request_about,
    spelled_webhook,
    status_of,
    told_message_of,
    webhook_of,
)
from .kind_json import ROLES
from .members import Members, of_caller, of_peer
from .parts import read_part, spell_marked

__all__ = [
    "read_error",
    "read_item",
    "read_reply",
    "read_request",
    "spell_error",
    "spell_reply",
    "spell_request",
    "teller",
]

# States that 0.1 does not have, and those that say as much.
WORDS: Final = {State.REJECTED: State.FAILED.word, State.AUTH_REQUIRED: State.INPUT_REQUIRED.word}
_MARKS: Final = ("type",)
_encode = msgspec.json.Encoder().encode

read_error = refusals.read_elder_error
spell_error = refusals.spell_elder_error


# As the one who is asked.


def read_request(operation: Operation, raw: Raw, new_id: FreshId, *, lenient: bool = False) -> Request:
    """What was asked. A caller who leaves the task's id out gets one, by which it is known from then on."""
    if operation.request is Send:
        return of_caller(lambda value, at: _send_of(Members(value, at), new_id), raw)
    return of_caller(lambda value, at: request_about(operation, Members(value, at)), raw)


def _send_of(members: Members, new_id: FreshId) -> Send:
    said = members.needed(lambda value, at: message_of(value, at, new_id), "message")
    message = replace(
        said,
        task_id=members.text("id") or said.task_id or new_id(),
        context_id=members.text("sessionId", "contextId") or said.context_id,
    )
    wanted = Configuration(
        members.texts("acceptedOutputModes"),
        history_length_of(members),
        task_push_notification_config=webhook_of(members),
    )
    return Send(message, wanted, members.free("metadata"))


def spell_reply(operation: Operation, answer: Answer, task_id: str = "") -> bytes:
    value = answer.value
    if isinstance(value, Message):
        return _encode(_ended_by(value, task_id))
    assert isinstance(value, Task), "only tasks and messages are answered before 1.0"
    return _encode(_task(value, task_id))


def teller(ends: Ends, task_id: str = "") -> Tell:
    """The stream of one task. It keeps the artifacts, because the last event brings them all."""
    return _Telling(ends, task_id).tell


class _Telling:
    def __init__(self, ends: Ends, task_id: str) -> None:
        self._ends = ends
        self._task_id = task_id
        self._artifacts: dict[str, Artifact] = {}
        # The parts of artifacts that are still growing.
        self._grown: dict[str, list[Part]] = {}

    def tell(self, run: Sequence[Logged]) -> Sequence[tuple[int, bytes]]:
        told: list[tuple[int, bytes]] = []
        for place, logged in enumerate(run):
            event = logged.event
            match event:
                case TaskCreated():
                    self._artifacts.clear()
                    self._grown.clear()
                    for artifact in event.task.artifacts:
                        self._keep(artifact, append=False)
                    spelled = _task(event.task, self._task_id)
                case StatusChanged():
                    spelled = self._moved(event)
                case ArtifactChanged():
                    update = event.artifact_update
                    self._keep(update.artifact, update.append)
                    if self._comes_with_the_end(run, place):
                        continue
                    spelled = self._given(event)
                case Replied():
                    spelled = {**_ended_by(event.message, self._task_id), "final": True}
                case _:
                    raise AssertionError(f"{type(event).__name__} is not for callers")
            told.append((logged.seq, _encode(spelled)))
        return told

    def _keep(self, artifact: Artifact, append: bool) -> None:
        key = artifact.artifact_id
        first = self._artifacts.get(key) if append else None
        if first is not None:
            self._grown.setdefault(key, list(first.parts)).extend(artifact.parts)
            if artifact.metadata:
                self._artifacts[key] = replace(
                    first, metadata={**(first.metadata or {}), **artifact.metadata}
                )
        else:
            self._artifacts[key] = artifact
            self._grown.pop(key, None)

    def _comes_with_the_end(self, run: Sequence[Logged], place: int) -> bool:
        """Whether from here come whole artifacts and then the end: it brings them."""
        for n in range(place, len(run)):
            event = run[n].event
            if isinstance(event, ArtifactChanged):
                if event.artifact_update.append or not event.artifact_update.last_chunk:
                    return False
            else:
                return isinstance(event, StatusChanged) and event.status.state in self._ends
        return False

    def _moved(self, event: StatusChanged) -> dict[str, Any]:
        update = event.status_update
        is_final = update.status.state in self._ends
        spelled: dict[str, Any] = {"id": self._task_id or update.task_id}
        if update.context_id:
            spelled["sessionId"] = update.context_id
        spelled["status"] = _status(update.status)
        if is_final and self._artifacts:
            spelled["artifacts"] = [
                _artifact(self._whole(key), number) for number, key in enumerate(self._artifacts)
            ]
        spelled["final"] = is_final
        return noted(spelled, update.metadata)

    def _whole(self, key: str) -> Artifact:
        artifact = self._artifacts[key]
        return replace(artifact, parts=tuple(self._grown[key])) if key in self._grown else artifact

    def _given(self, event: ArtifactChanged) -> dict[str, Any]:
        update = event.artifact_update
        number = list(self._artifacts).index(update.artifact.artifact_id)
        artifact = _artifact(update.artifact, number)
        artifact["index"] = number
        if update.append:
            artifact["append"] = True
        if update.last_chunk:
            artifact["lastChunk"] = True
        spelled: dict[str, Any] = {"id": self._task_id or update.task_id}
        if update.context_id:
            spelled["sessionId"] = update.context_id
        spelled["artifact"] = artifact
        return noted(spelled, update.metadata)


def _message(message: Message) -> dict[str, Any]:
    parts = [spell_marked(part, _MARKS, takes_arrays=True) for part in message.parts]
    return noted({"role": ROLES[message.role], "parts": parts}, message.metadata)


def _status(status: Status) -> dict[str, Any]:
    spelled: dict[str, Any] = {"state": WORDS.get(status.state, status.state.word)}
    if status.message is not None:
        spelled["message"] = _message(status.message)
    if status.timestamp:
        spelled["timestamp"] = status.timestamp
    return spelled


def _artifact(artifact: Artifact, number: int) -> dict[str, Any]:
    spelled: dict[str, Any] = {}
    if artifact.name:
        spelled["name"] = artifact.name
    if artifact.description:
        spelled["description"] = artifact.description
    spelled["parts"] = [spell_marked(part, _MARKS, takes_arrays=True) for part in artifact.parts]
    if number:
        spelled["index"] = number
    return noted(spelled, artifact.metadata)


def _task(task: Task, task_id: str) -> dict[str, Any]:
    spelled: dict[str, Any] = {"id": task_id or task.id}
    if task.context_id:
        spelled["sessionId"] = task.context_id
    spelled["status"] = _status(task.status)
    if task.artifacts:
        spelled["artifacts"] = [_artifact(artifact, number) for number, artifact in enumerate(task.artifacts)]
    if task.history:
        spelled["history"] = [_message(message) for message in task.history]
    return noted(spelled, task.metadata)


def _ended_by(message: Message, task_id: str) -> dict[str, Any]:
    """An answer that is a message: here that is a task which is over, with these as its last words."""
    spelled: dict[str, Any] = {"id": task_id or message.task_id}
    if message.context_id:
        spelled["sessionId"] = message.context_id
    spelled["status"] = {"state": State.COMPLETED.word, "message": _message(message)}
    return spelled


# As the one who asks.


def spell_request(operation: Operation, request: Request) -> bytes:
    if not isinstance(request, Send):
        return _encode(members_about(request))
    message, wanted = request.message, request.configuration
    params: dict[str, Any] = {"id": message.task_id}
    if message.context_id:
        params["sessionId"] = message.context_id
    params["message"] = _message(message)
    if wanted.accepted_output_modes:
        params["acceptedOutputModes"] = wanted.accepted_output_modes
    if wanted.history_length:
        params["historyLength"] = wanted.history_length
    if wanted.task_push_notification_config is not None:
        params["pushNotification"] = spelled_webhook(wanted.task_push_notification_config)
    return _encode(noted(params, request.metadata))


def read_reply(operation: Operation, raw: Raw) -> Answer:
    return Answer(Task, of_peer(lambda value, at: _told_task(Members(value, at)), raw))


def read_item(raw: Raw) -> Sequence[Event]:
    return of_peer(lambda value, at: _told(Members(value, at)), raw)


def _told(members: Members) -> Sequence[Event]:
    """An item of a stream. What ends a task may bring its artifacts: those are heard before it."""
    task_id, session = members.id("id"), members.text("sessionId", "contextId")
    if members.has("artifact"):
        value, at = members.find("artifact")
        inside = Members(value, at)
        append, last = inside.flag("append") or False, inside.flag("lastChunk") or False
        artifact = _told_artifact(inside)
        return (ArtifactChanged.of(task_id, session, artifact, append, last, members.free("metadata")),)
    if not members.has("final") and members.has("sessionId", "contextId", "history", "artifacts"):
        return (TaskCreated(_told_task(members)),)
    status = members.needed(status_of, "status")
    if status.message is not None:
        status = replace(status, message=_placed(status.message, task_id, session))
    given = [ArtifactChanged.of(task_id, session, one, False, True) for one in _told_artifacts(members)]
    return (*given, StatusChanged.of(task_id, session, status, members.free("metadata")))


def _told_task(members: Members) -> Task:
    task_id, session = members.id("id"), members.text("sessionId", "contextId")
    status = members.needed(status_of, "status")
    if status.message is not None:
        status = replace(status, message=_placed(status.message, task_id, session))
    history = members.each(told_message_of, "history")
    return Task(
        task_id,
        status,
        session,
        _told_artifacts(members),
        tuple([_placed(message, task_id, session) for message in history]),
        members.free("metadata"),
    )


def _told_artifacts(members: Members) -> tuple[Artifact, ...]:
    """The artifacts of a task. Peers that do not count them leave all their numbers as they are by default."""
    found = members.each(lambda one, at: _told_artifact(Members(one, at)), "artifacts")
    if len({artifact.artifact_id for artifact in found}) == len(found):
        return found
    return tuple([replace(artifact, artifact_id=str(number)) for number, artifact in enumerate(found)])


def _told_artifact(members: Members) -> Artifact:
    """Its number is all that 0.1 knows it by."""
    return Artifact(
        str(members.count("index") or 0),
        members.each(read_part, "parts"),
        members.text("name"),
        members.text("description"),
        members.free("metadata"),
    )


def _placed(message: Message, task_id: str, session: str) -> Message:
    """A message with what 0.1 does not say of it: where it belongs, and an id made of what it says."""
    if not message.message_id:
        said = _encode((message.role, message.parts, task_id))
        message = replace(message, message_id=hashlib.blake2b(said, digest_size=16).hexdigest())
    return replace(message, task_id=task_id, context_id=session)
