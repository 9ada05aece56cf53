"""JSON-RPC 2.0 as A2A uses it: from a body to an operation and its request, from an answer to a body."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from ..model.errors import AgentError, error
from ..model.events import Logged, TaskCreated
from ..model.operations.a2a import Operation, Request, Send
from ..model.peer import Answer
from ..model.task import Task
from . import guard
from .codec import Ends, FreshId, Voice
from .versions import DIALECTS, NEWEST, Dialect, said, vocabulary

__all__ = ["MEDIA_TYPES", "Asked"]

MEDIA_TYPES = ("application/json", "application/a2a+json", "application/json-rpc")

_METHODS = vocabulary("JSONRPC")
_NEWEST = DIALECTS["JSONRPC", NEWEST]
_NEWEST_HEADER = NEWEST.encode()
# Operations that no agent here has, and how the protocol wants each refused (§3.3.4).
_LACKING = {
    "CreateTaskPushNotificationConfig": "PushNotificationNotSupported",
    "GetTaskPushNotificationConfig": "PushNotificationNotSupported",
    "ListTaskPushNotificationConfigs": "PushNotificationNotSupported",
    "DeleteTaskPushNotificationConfig": "PushNotificationNotSupported",
    "GetExtendedAgentCard": "UnsupportedOperation",
    "tasks/pushNotificationConfig/set": "PushNotificationNotSupported",
    "tasks/pushNotificationConfig/get": "PushNotificationNotSupported",
    "tasks/pushNotificationConfig/list": "PushNotificationNotSupported",
    "tasks/pushNotificationConfig/delete": "PushNotificationNotSupported",
    "agent/getAuthenticatedExtendedCard": "ExtendedAgentCardNotConfigured",
    "tasks/pushNotification/set": "PushNotificationNotSupported",
    "tasks/pushNotification/get": "PushNotificationNotSupported",
}
_NO_ID = b"null"
# It is said back with each event of a stream.
ID_BYTES_MAX = 16 * 1024


class _Envelope(Struct):
    jsonrpc: object = None
    id: Raw = Raw(b"")
    method: object = None
    params: Raw = Raw(b"")


_decode = msgspec.json.Decoder(_Envelope).decode


class Asked:
    """One request: read from a body, it knows how its answer is spelled; unread, how an error is.

    `elder` is the dialect it may be instead: 0.1 and 0.2 share the names of some methods, and only the
    task that is found tells whether the caller has named it (then it is 0.1).
    """

    __slots__ = ("dialect", "elder", "id", "operation", "request")
    media_type = b"application/json"
    needs_body = True

    def __init__(self) -> None:
        self.id = _NO_ID
        self.dialect = _NEWEST
        self.elder: Dialect | None = None
        self.operation: Operation
        self.request: Request

    def read(
        self,
        method: str,
        body: bytes,
        new_id: FreshId,
        header: bytes = b"",
        query: bytes = b"",
        body_bytes_max: int = guard.BODY_BYTES_MAX,
    ) -> None:
        """Read the question in a body, which was posted. `header` and `query` may say the version."""
        facts = guard.check(body, body_bytes_max)
        try:
            envelope = _decode(body)
        except msgspec.ValidationError:
            raise error("InvalidRequest", _shape(body)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise error("ParseError", f"The body is not JSON: {wrong}") from None
        # Who leaves it out is told first what else is wrong.
        has_id = bytes(envelope.id) not in (b"", b"null")
        if has_id:
            self.id = _id(envelope.id)
        if envelope.jsonrpc != "2.0":
            raise error("InvalidRequest", 'a request says "jsonrpc": "2.0"', at="jsonrpc")
        if type(envelope.method) is not str:
            raise error("InvalidRequest", "a request names its method with a string", at="method")
        meanings = _METHODS.get(envelope.method, ())
        if meanings:
            self.dialect = meanings[0][1]
        # Said as our clients and most others say it, it needs no look.
        version = NEWEST if header == _NEWEST_HEADER and not query else said(header, query)
        self.operation, self.dialect = _meant(envelope.method, meanings, version)
        if not version and len(meanings) > 1 and meanings[-1][1].names_tasks:
            self.elder = meanings[-1][1]
        self.request = self.dialect.codec.read_request(
            self.operation, envelope.params or b"{}", new_id, lenient=facts.lenient
        )
        if not has_id:
            raise error("InvalidRequest", "a request has an id: a string or a whole number", at="id")

    @property
    def task_id(self) -> str:
        """How the caller calls the task."""
        request = self.request
        return request.message.task_id if isinstance(request, Send) else getattr(request, "id", "")

    @property
    def names_tasks(self) -> bool:
        """Whether the id may be one of the caller's own choice."""
        return self.dialect.names_tasks or self.elder is not None

    @property
    def refuses_in_stream(self) -> bool:
        """Whether an error is read only as an event of the stream that was asked for."""
        operation = getattr(self, "operation", None)
        return operation is not None and operation.kind == "watch" and self.dialect.refuses_in_stream

    def _settle(self, task_id: str) -> None:
        """Now that the task is known by its own id, so is the dialect."""
        if self.elder is not None and task_id != self.task_id:
            self.dialect = self.elder

    def replied(self, answer: Answer) -> bytes:
        """The body of an answer."""
        if self.elder is not None and isinstance(answer.value, Task):
            self._settle(answer.value.id)
        task_id = self.task_id if self.dialect.names_tasks else ""
        result = self.dialect.codec.spell_reply(self.operation, answer, task_id)
        return b"".join((_PREFIX, self.id, _RESULT, result, b"}"))

    def voice(self, first: Sequence[Logged] | None, ends: Ends) -> Voice:
        """How to tell a stream whose first events are known."""
        if self.elder is not None and first and isinstance(begin := first[0].event, TaskCreated):
            self._settle(begin.task.id)
        tell = self.dialect.codec.teller(ends, self.task_id if self.dialect.names_tasks else "")
        return Voice(b"".join((_PREFIX, self.id, _RESULT)), b"}", tell)

    def failed(self, wrong: AgentError) -> tuple[int, bytes]:
        """The status and the body of an error: said inside a 200, unless HTTP itself has to say it."""
        spelled = msgspec.json.encode(self.dialect.codec.spell_error(wrong))
        status = wrong.row.http if wrong.name in _HTTPS_MATTERS else 200
        return status, b"".join((_PREFIX, self.id, b',"error":', spelled, b"}"))


def _meant(
    method: str, meanings: Sequence[tuple[Operation, Dialect]], version: str
) -> tuple[Operation, Dialect]:
    """Which of the dialects that know the method is meant: the one that is said, else the newest."""
    for meaning in meanings:
        if not version or meaning[1].version == version:
            return meaning
    if method in _LACKING:
        raise error(_LACKING[method])
    where = f" in version {version}; it is of {meanings[0][1].version}" if meanings else "; see the card"
    raise error("MethodNotFound", f"there is no method {method!r}{where}", at="method")


def _id(raw: Raw) -> bytes:
    id = bytes(raw)
    if id[0] == 0x22:
        if len(id) > ID_BYTES_MAX:
            raise error("InvalidRequest", f"an id is up to {ID_BYTES_MAX} bytes", at="id")
        return id
    if not id.lstrip(b"-").isdigit() or len(id) > 20:
        raise error("InvalidRequest", "an id is a string or a whole number", at="id")
    return id


def _shape(body: bytes) -> str:
    if body.lstrip()[:1] == b"[":
        return "batches are not part of A2A: send one request at a time"
    return "a request is a JSON object with jsonrpc, id, method and params"


_PREFIX = b'{"jsonrpc":"2.0","id":'
_RESULT = b',"result":'
# A body we refused to read, or cannot take now.
_HTTPS_MATTERS = ("TooLarge", "StoreFull", "Unavailable", "Unauthenticated", "Forbidden", "RateLimited")
