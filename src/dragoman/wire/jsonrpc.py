"""JSON-RPC 2.0 as A2A uses it: from a body to an operation and its request, from an answer to a body."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from ..model.errors import AgentError, error
from ..model.operations.a2a import OPERATIONS, Operation, Request
from ..model.task import Task
from . import guard
from .proto_json_1_0 import decode_request, details_of

__all__ = ["MEDIA_TYPES", "Asked", "failed", "parse", "prefix", "replied"]

MEDIA_TYPES = ("application/json", "application/a2a+json", "application/json-rpc")

_METHODS: dict[str, Operation] = {row.jsonrpc_1_0: row for row in OPERATIONS.values()}
# Operations that no agent here has, and how the protocol wants each refused (§3.3.4).
_LACKING = {
    "CreateTaskPushNotificationConfig": "PushNotificationNotSupported",
    "GetTaskPushNotificationConfig": "PushNotificationNotSupported",
    "ListTaskPushNotificationConfigs": "PushNotificationNotSupported",
    "DeleteTaskPushNotificationConfig": "PushNotificationNotSupported",
    "GetExtendedAgentCard": "UnsupportedOperation",
}
_NO_ID = b"null"
# It is said back with each event of a stream.
ID_BYTES_MAX = 16 * 1024


class _Envelope(Struct):
    jsonrpc: object = None
    id: Raw = Raw(b"")
    method: object = None
    params: Raw = Raw(b"")


class Asked(Struct):
    """What a body asked: the id to answer under, the operation, its request."""

    id: bytes
    operation: Operation
    request: Request


class Unanswerable(Exception):
    """An error together with the id it is to be answered under."""

    def __init__(self, id: bytes, cause: AgentError) -> None:
        super().__init__(str(cause))
        self.id = id
        self.cause = cause


_decode = msgspec.json.Decoder(_Envelope).decode


def parse(body: bytes, body_bytes_max: int = guard.BODY_BYTES_MAX) -> Asked:
    """The question in a body. Raises `Unanswerable`, which knows under which id to say what is wrong."""
    id = _NO_ID
    try:
        facts = guard.check(body, body_bytes_max)
        try:
            envelope = _decode(body)
        except msgspec.ValidationError:
            raise error("InvalidRequest", _shape(body)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise error("ParseError", f"The body is not JSON: {wrong}") from None
        id = _id(envelope.id)
        if envelope.jsonrpc != "2.0":
            raise error("InvalidRequest", 'a request says "jsonrpc": "2.0"', at="jsonrpc")
        if type(envelope.method) is not str:
            raise error("InvalidRequest", "a request names its method with a string", at="method")
        operation = _METHODS.get(envelope.method)
        if operation is None:
            if envelope.method in _LACKING:
                raise error(_LACKING[envelope.method])
            raise error(
                "MethodNotFound",
                f"there is no method {envelope.method!r}; see the card for the version",
                at="method",
            )
        return Asked(
            id, operation, decode_request(operation, envelope.params or b"{}", lenient=facts.lenient)
        )
    except AgentError as wrong:
        raise Unanswerable(id, wrong) from None


def _id(raw: Raw) -> bytes:
    id = bytes(raw)
    if not id or id == b"null":
        raise error("InvalidRequest", "a request has an id: a string or a whole number", at="id")
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


def prefix(id: bytes) -> bytes:
    """What stands before a result; after it comes one closing brace."""
    return b"".join((_PREFIX, id, _RESULT))


def replied(asked: Asked, kind: type, data: bytes) -> bytes:
    """The body of an answer, spliced around bytes that are already 1.0 JSON."""
    if asked.operation.wraps:
        member = b'{"task":' if kind is Task else b'{"message":'
        return b"".join((_PREFIX, asked.id, _RESULT, member, data, b"}}"))
    return b"".join((_PREFIX, asked.id, _RESULT, data, b"}"))


def failed(id: bytes, wrong: AgentError) -> bytes:
    """The body of an error."""
    spelled = {"code": wrong.row.code, "message": wrong.message, "data": details_of(wrong)}
    return b"".join((_PREFIX, id, b',"error":', msgspec.json.encode(spelled), b"}"))
