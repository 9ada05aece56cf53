"""What the versions before 1.0 have in common: their states and roles, and how a tolerant reader takes them all.

They differ in what marks a thing and in the names of a few members; peers mix those. So one set of functions
reads them, and each codec has only its own way of writing, which is strict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..model.events import ArtifactChanged, Event, Replied, StatusChanged, TaskCreated
from ..model.operations.a2a import Cancel, Configuration, Get, Operation, Request, Subscribe
from ..model.task import Artifact, Message, Metadata, Part, Role, State, Status, Task
from .members import Members, Misfit
from .parts import read_part

__all__ = [
    "configuration_of",
    "event_of",
    "history_length_of",
    "members_about",
    "message_of",
    "noted",
    "outcome_of",
    "request_about",
    "spelled_webhook",
    "status_of",
    "task_of",
    "told_message_of",
    "wanted_of",
    "webhook_of",
]

_STATES: Final = {state.word.replace("-", ""): state for state in State} | {
    "cancelled": State.CANCELED,
    "unspecified": State.UNKNOWN,
}
_ROLES: Final = {"user": Role.USER, "agent": Role.AGENT}
# The numbers of both enums in protobuf; its zero is "not said".
_STATE_NUMBERS: Final = tuple(State)
_ROLE_NUMBERS: Final = (None, Role.USER, Role.AGENT)


def state_of(value: Any, at: str) -> State:
    """A state in any spelling: `input-required`, `inputRequired`, `TASK_STATE_INPUT_REQUIRED`, 6."""
    if type(value) is int and 0 <= value < len(_STATE_NUMBERS):
        return _STATE_NUMBERS[value]
    if type(value) is not str:
        raise Misfit("Expected a state.", at)
    # A state that is none of ours is one that we lost sight of.
    word = value.lower().removeprefix("task_state_").replace("-", "").replace("_", "")
    return _STATES.get(word, State.UNKNOWN)


def role_of(value: Any, at: str) -> Role:
    """A role in any spelling."""
    if type(value) is int and 0 < value < len(_ROLE_NUMBERS):
        return _ROLE_NUMBERS[value] or Role.AGENT
    role = _ROLES.get(value.lower().removeprefix("role_")) if type(value) is str else None
    if role is None:
        raise Misfit("Expected one of user, agent.", at)
    return role


def message_of(value: Any, at: str, new_id: Callable[[], str] | None = None) -> Message:
    """A message of a caller, who says all that is required; ids may be given by `new_id` where they lack."""
    members = Members(value, at)
    parts = _parts(members)
    if not parts:
        raise Misfit("parts is required with at least one item.", f"{members.at}.parts" if at else "parts")
    message_id = members.text("messageId")
    if not message_id:
        message_id = new_id() if new_id is not None else members.id("messageId")
    return _message(members, message_id, members.needed(role_of, "role"), parts)


def told_message_of(value: Any, at: str) -> Message:
    """A message of a peer, who may leave out what nothing depends on."""
    members = Members(value, at)
    try:
        role = members.one(role_of, "role") or Role.AGENT
    except Misfit:
        role = Role.AGENT
    return _message(members, members.text("messageId"), role, _parts(members))


def _parts(members: Members) -> tuple[Part, ...]:
    return members.each(read_part, "parts", "content")


def _message(members: Members, message_id: str, role: Role, parts: tuple[Part, ...]) -> Message:
    return Message(
        message_id,
        role,
        parts,
        members.text("contextId", "sessionId"),
        members.text("taskId"),
        members.free("metadata"),
        members.texts("extensions"),
        members.texts("referenceTaskIds"),
    )


def status_of(value: Any, at: str) -> Status:
    """A status; 002's is the bare word."""
    if type(value) is str:
        return Status(state_of(value, at))
    members = Members(value, at)
    return Status(
        # Protobuf does not say its zero, which is the state that is not known.
        members.one(state_of, "state") or State.UNKNOWN,
        members.one(told_message_of, "message", "update"),
        members.moment("timestamp"),
    )


def artifact_of(value: Any, at: str) -> Artifact:
    members = Members(value, at)
    return Artifact(
        members.text("artifactId"),
        _parts(members),
        members.text("name"),
        members.text("description"),
        members.free("metadata"),
        members.texts("extensions"),
    )


def task_of(value: Any, at: str) -> Task:
    """A task of a peer."""
    members = Members(value, at)
    return Task(
        members.id("id"),
        members.needed(status_of, "status"),
        members.text("contextId", "sessionId"),
        members.each(artifact_of, "artifacts"),
        members.each(told_message_of, "history"),
        members.free("metadata"),
    )


_WRAPPERS: Final = ("task", "message", "msg", "statusUpdate", "artifactUpdate")


def event_of(value: Any, at: str) -> Event:
    """An item of a stream: wrapped in its name, or bare with its kind, or bare and known by its members."""
    members = Members(value, at)
    wrapped = [name for name in _WRAPPERS if members.has(name)] if not members.has("kind") else []
    # A bare status has no such member, a bare message none of an object.
    if len(wrapped) == 1 and isinstance(members.find(wrapped[0])[0], dict):
        inside, place = members.find(wrapped[0])
        return _event(Members(inside, place), wrapped[0])
    return _event(members, members.text("kind"))


def _event(members: Members, kind: str) -> Event:
    match kind or _kind_of(members):
        case "task":
            return TaskCreated(task_of(members.found, members.at))
        case "message" | "msg":
            return Replied(told_message_of(members.found, members.at))
        case "status-update" | "statusUpdate":
            return StatusChanged.of(
                members.id("taskId", "id"),
                members.text("contextId", "sessionId"),
                members.needed(status_of, "status"),
                members.free("metadata"),
            )
        case "artifact-update" | "artifactUpdate":
            return ArtifactChanged.of(
                members.id("taskId", "id"),
                members.text("contextId", "sessionId"),
                members.needed(artifact_of, "artifact"),
                members.flag("append") or False,
                members.flag("lastChunk") or False,
                members.free("metadata"),
            )
        case _:
            raise Misfit("Expected a task, a message, a status or an artifact.", members.at)


def _kind_of(members: Members) -> str:
    if members.has("artifact"):
        return "artifact-update"
    if members.has("status"):
        return "task" if members.has("id") else "status-update"
    return "message" if members.has("parts", "content") else ""


def outcome_of(value: Any, at: str) -> Task | Message:
    """What answers a send."""
    event = event_of(value, at)
    match event:
        case TaskCreated():
            return event.task
        case Replied():
            return event.message
        case _:
            raise Misfit("Expected a task or a message.", at)


# Requests.


def configuration_of(members: Members, waits_unsaid: bool = True) -> Configuration:
    """How the caller wants to be answered. `waits_unsaid`: who does not say `blocking` wants to wait."""
    blocking = members.flag("blocking")
    at_once = members.flag("returnImmediately")
    waits = waits_unsaid if blocking is None else blocking
    return Configuration(
        members.texts("acceptedOutputModes"),
        history_length_of(members),
        at_once if at_once is not None else not waits,
        webhook_of(members),
    )


def webhook_of(members: Members) -> Metadata | None:
    """Where the caller wants to be told, and how: by one scheme, where elder callers list those they know."""
    webhook = members.free("pushNotificationConfig", "pushNotification", "taskPushNotificationConfig")
    match (webhook or {}).get("authentication"):
        case {"schemes": [str(scheme), *_], **rest}:
            return {**(webhook or {}), "authentication": {"scheme": scheme, **rest}}
        case _:
            return webhook


def spelled_webhook(webhook: Metadata) -> Metadata:
    """The same, as one asks for it."""
    match webhook.get("authentication"):
        case {"scheme": scheme, **rest}:
            return {**webhook, "authentication": {"schemes": [scheme], **rest}}
        case _:
            return webhook


def history_length_of(members: Members) -> int | None:
    """How much history is wanted. None of it cannot be asked for: before 1.0 zero means that nothing was said."""
    return members.count("historyLength") or None


def request_about(operation: Operation, members: Members) -> Request:
    """A request that names its task and little else."""
    id = members.id("id", "taskId")
    if operation.request is Get:
        return Get(id, history_length_of(members))
    if operation.request is Cancel:
        return Cancel(id, members.free("metadata"))
    assert operation.request is Subscribe, f"{operation.name} is not about one task"
    return Subscribe(id)


def members_about(request: Request) -> dict[str, Any]:
    """The same, as one asks it."""
    match request:
        case Get():
            length = request.history_length
            return {"id": request.id, **({"historyLength": length} if length else {})}
        case Cancel():
            return {
                "id": request.id,
                **({"metadata": request.metadata} if request.metadata is not None else {}),
            }
        case Subscribe():
            return {"id": request.id}
        case _:
            raise TypeError(f"{type(request).__name__} has no place here")


def wanted_of(wanted: Configuration, webhook: str) -> dict[str, Any]:
    """A configuration as one asks it in 0.2 and 0.3. `webhook` is the member's name that has it."""
    # Until 0.2.6 the modes are required, though there be none.
    spelled: dict[str, Any] = {
        "blocking": not wanted.return_immediately,
        "acceptedOutputModes": wanted.accepted_output_modes,
    }
    if wanted.history_length:
        spelled["historyLength"] = wanted.history_length
    if wanted.task_push_notification_config is not None:
        spelled[webhook] = spelled_webhook(wanted.task_push_notification_config)
    return spelled


def noted(spelled: dict[str, Any], metadata: Metadata | None) -> dict[str, Any]:
    """With metadata, where there is some."""
    if metadata is not None:
        spelled["metadata"] = metadata
    return spelled
