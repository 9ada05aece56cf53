"""The 1.0 codec (`codec.py`): ProtoJSON of `lf.a2a.v1`, which the model's own JSON is: most is msgspec's work.

Quick way: bytes straight into the model's structs in C, then a few comparisons. Whatever those do not
clear goes the lenient way (`lenient.py`), which either reads it or says what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct
from msgspec.json import Decoder

from ..model.card import Card
from ..model.errors import error
from ..model.events import (
    ArtifactChanged,
    ArtifactUpdate,
    Event,
    Logged,
    Replied,
    StatusChanged,
    StatusUpdate,
    TaskCreated,
)
from ..model.operations.a2a import (
    PAGE_SIZE_MAX,
    Cancel,
    Get,
    List,
    Operation,
    Page,
    Request,
    Send,
    Subscribe,
)
from ..model.peer import Answer
from ..model.task import Artifact, Message, Part, State, Task
from .codec import Ends, FreshId, Raw, Tell
from .lenient import INT32_MAX, Misfit, reader, spells_snake
from .refusals import read_error, spell_error

__all__ = [
    "decode_card",
    "decode_message",
    "decode_page",
    "decode_stream_item",
    "decode_task",
    "read_error",
    "read_item",
    "read_reply",
    "read_request",
    "spell_error",
    "spell_reply",
    "spell_request",
    "teller",
]

_S = TypeVar("_S", bound=Struct)


def read_request(operation: Operation, raw: Raw, new_id: FreshId, *, lenient: bool = False) -> Request:
    """What was asked. Callers of 1.0 bring every id that is theirs to give."""
    kind = operation.request
    at = ""
    try:
        if not lenient:
            decode, is_fine = _REQUESTS[kind]
            try:
                request: Request = decode(raw)
                if is_fine(request) and not _may_hold_a_giant(raw):
                    return request
            except msgspec.ValidationError as wrong:
                at = _place(wrong)
        return cast(Request, reader(kind)(_decode(raw), ""))
    except Misfit as wrong:
        raise error("InvalidParams", wrong.message, at=wrong.at) from None
    except msgspec.ValidationError:
        raise error("InvalidParams", "A number is out of range.", at=at) from None
    except _NOT_JSON as wrong:
        raise error("ParseError", _why_not_json(wrong)) from None


def spell_reply(operation: Operation, answer: Answer, task_id: str = "") -> bytes:
    """The result: bytes that are 1.0 JSON already, spliced."""
    if operation.wraps:
        return b"".join((_A_TASK if answer.kind is Task else _A_MESSAGE, answer.data, b"}"))
    return answer.data


def teller(ends: Ends, task_id: str = "") -> Tell:
    """Events are stored as 1.0 says them; the end of a stream is its close."""
    return _tell


def _tell(run: Sequence[Logged]) -> Sequence[tuple[int, bytes]]:
    return [(logged.seq, logged.data) for logged in run]


def spell_request(operation: Operation, request: Request) -> bytes:
    """The parameters of a request."""
    return _encode(request)


def read_reply(operation: Operation, raw: Raw) -> Answer:
    """What a peer answered."""
    if operation.request is Send:
        event = decode_stream_item(raw)
        match event:
            case TaskCreated():
                return Answer(Task, event.task)
            case Replied():
                return Answer(Message, event.message)
            case _:
                raise error("InvalidAgentResponse", "Expected a task or a message.")
    if operation.request is List:
        return Answer(Page, decode_page(raw))
    return Answer(Task, decode_task(raw))


def read_item(raw: Raw) -> Sequence[Event]:
    """What a peer says in one item of a stream."""
    return (decode_stream_item(raw),)


def decode_task(data: Raw) -> Task:
    """A task that a peer told us of."""
    return _of_peer(Task, data)


def decode_message(data: Raw) -> Message:
    """A message that a peer answered with."""
    return _of_peer(Message, data)


def decode_page(data: Raw) -> Page:
    """A page of tasks that a peer listed."""
    return _of_peer(Page, data)


def decode_card(data: Raw) -> Card:
    """A peer's card in the 1.0 shape."""
    return _of_peer(Card, data)


def decode_stream_item(data: Raw) -> Event:
    """What a peer streams, pushes to a webhook, or answers a send with: `{"<kind>": {…}}`.

    A task that is seen in a stream comes as `TaskCreated`, whether or not it is new.
    """
    item = _of_peer(_Item, data)
    match item:
        case _Item(task=Task() as task, message=None, status_update=None, artifact_update=None):
            return TaskCreated(task)
        case _Item(task=None, message=Message() as message, status_update=None, artifact_update=None):
            return Replied(message)
        case _Item(task=None, message=None, status_update=StatusUpdate() as moved, artifact_update=None):
            return StatusChanged(moved)
        case _Item(task=None, message=None, status_update=None, artifact_update=ArtifactUpdate() as grown):
            return ArtifactChanged(grown)
        case _:
            raise error(
                "InvalidAgentResponse", "Expected exactly one of task, message, statusUpdate, artifactUpdate."
            )


# Requests: what the quick way must still look at. True means nothing is wrong and nothing needs respelling.


def _send_is_fine(send: Send) -> bool:
    message = send.message
    length = send.configuration.history_length
    return (
        message.message_id != "" and _is_said(message.parts) and (length is None or 0 <= length <= INT32_MAX)
    )


def _get_is_fine(get: Get) -> bool:
    return get.id != "" and (get.history_length is None or 0 <= get.history_length <= INT32_MAX)


def _list_is_fine(asked: List) -> bool:
    return (
        (asked.page_size is None or 1 <= asked.page_size <= PAGE_SIZE_MAX)
        and (asked.history_length is None or 0 <= asked.history_length <= INT32_MAX)
        and asked.status is not State.UNKNOWN
        and asked.status_timestamp_after == ""
    )


def _names_task(request: Cancel | Subscribe) -> bool:
    return request.id != ""


def _is_said(parts: Sequence[Part]) -> bool:
    return len(parts) > 0 and _are_whole(parts)


def _are_whole(parts: Sequence[Part]) -> bool:
    for part in parts:
        if (part.text is None) + (part.raw is None) + (part.url is None) + (part.data is UNSET) != 3:
            return False
    return True


_Decode = Callable[[Raw], Any]
_IsFine = Callable[[Any], bool]

_REQUESTS: Final[dict[type[Struct], tuple[_Decode, _IsFine]]] = {
    Send: (Decoder(Send).decode, _send_is_fine),
    Get: (Decoder(Get).decode, _get_is_fine),
    List: (Decoder(List).decode, _list_is_fine),
    Cancel: (Decoder(Cancel).decode, _names_task),
    Subscribe: (Decoder(Subscribe).decode, _names_task),
}


# What peers tell.


class _Item(Struct, frozen=True, rename="camel"):
    """StreamResponse, before it is known which of the four it is."""

    task: Task | None = None
    message: Message | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


def _of_peer(kind: type[_S], data: Raw) -> _S:
    at = ""
    try:
        if not spells_snake(data):
            decode, is_fine = _PEERS[kind]
            try:
                value = cast(_S, decode(data))
                if is_fine(value) and not _may_hold_a_giant(data):
                    return value
            except msgspec.ValidationError as wrong:
                at = _place(wrong)
        return cast(_S, reader(kind, peer=True)(_decode(data), ""))
    except Misfit as wrong:
        raise error("InvalidAgentResponse", wrong.message, at=wrong.at) from None
    except msgspec.ValidationError:
        raise error("InvalidAgentResponse", "A number is out of range.", at=at) from None
    except _NOT_JSON as wrong:
        raise error("InvalidAgentResponse", _why_not_json(wrong)) from None


def _task_is_fine(task: Task) -> bool:
    said = task.status.message
    return (
        task.id != ""
        and (said is None or _are_whole(said.parts))
        and all(_artifact_is_fine(artifact) for artifact in task.artifacts)
        and all(_message_is_fine(message) for message in task.history)
    )


def _message_is_fine(message: Message) -> bool:
    return _are_whole(message.parts)


def _artifact_is_fine(artifact: Artifact) -> bool:
    return _are_whole(artifact.parts)


def _page_is_fine(page: Page) -> bool:
    sizes_fit = 0 <= page.page_size <= INT32_MAX and 0 <= page.total_size <= INT32_MAX
    return sizes_fit and all(_task_is_fine(task) for task in page.tasks)


def _card_is_fine(card: Card) -> bool:
    named = card.name != "" and len(card.supported_interfaces) > 0
    return named and all(
        one.url and one.protocol_binding and one.protocol_version for one in card.supported_interfaces
    )


def _item_is_fine(item: _Item) -> bool:
    moved, grown = item.status_update, item.artifact_update
    said = None if moved is None else moved.status.message
    return (
        (item.task is None or _task_is_fine(item.task))
        and (item.message is None or _message_is_fine(item.message))
        and (moved is None or moved.task_id != "")
        and (said is None or _message_is_fine(said))
        and (grown is None or (grown.task_id != "" and _artifact_is_fine(grown.artifact)))
    )


_PEERS: Final[dict[type[Struct], tuple[_Decode, _IsFine]]] = {
    Task: (Decoder(Task).decode, _task_is_fine),
    Message: (Decoder(Message).decode, _message_is_fine),
    Page: (Decoder(Page).decode, _page_is_fine),
    Card: (Decoder(Card).decode, _card_is_fine),
    _Item: (Decoder(_Item).decode, _item_is_fine),
}


# Both directions.

_encode = msgspec.json.Encoder().encode
_A_TASK: Final = b'{"task":'
_A_MESSAGE: Final = b'{"message":'
_decode = Decoder().decode
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_GIANT_DIGITS: Final = 309  # a double has at most 309 digits before the point
_GIANT: Final = b"0" * _GIANT_DIGITS
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_PLACE = re.compile(r" - at `\$\.?([^`\[]*(?:\[[0-9]+\][^`\[]*)*)")


def _may_hold_a_giant(raw: Raw) -> bool:
    """Whether there may be an integer beyond a double: msgspec reads them, nobody else does."""
    return len(raw) >= _GIANT_DIGITS and _GIANT in bytes(raw).translate(_DIGITS)


def _place(wrong: msgspec.ValidationError) -> str:
    """Where msgspec says it is, in wire words, as far as it knows: inside free JSON it says `[...]`."""
    found = _PLACE.search(str(wrong))
    return found[1] if found else ""


def _why_not_json(wrong: Exception) -> str:
    match wrong:
        case UnicodeDecodeError():
            return "A text is not valid UTF-8."
        case RecursionError():
            return "The JSON is nested too deep."
        case _:
            return f"{wrong}."
