"""THE error table: one row per error, with its code on every binding and its wording.

`tools/docs.py` writes the reference page from it; nothing else in the house knows a code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "ERRORS",
    "AgentError",
    "ErrorRow",
    "Fault",
    "error",
    "row_of_code",
    "row_of_elder_code",
    "row_of_reason",
    "row_of_status",
]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A kind of error. `http_1_0` and `grpc_1_0` hold where 1.0.0 differs from 1.0.1.

    `code_0_1` holds where 0.1 has another code; `nuances` are kinds that only 0.1 tells apart.
    """

    name: str
    code: int
    reason: str
    http: int
    grpc: str
    wording: str
    retryable: bool = False
    http_1_0: int | None = None
    grpc_1_0: str | None = None
    code_0_1: int | None = None
    nuances: tuple[tuple[str, int], ...] = ()

    def elder_code(self, nuance: str) -> int:
        """The code that 0.1 has for it."""
        return dict(self.nuances).get(nuance, self.code if self.code_0_1 is None else self.code_0_1)


_ROWS = (
    # The protocol's own.
    ErrorRow("TaskNotFound", -32001, "TASK_NOT_FOUND", 404, "NOT_FOUND", "There is no such task."),
    ErrorRow(
        "TaskNotCancelable",
        -32002,
        "TASK_NOT_CANCELABLE",
        400,
        "FAILED_PRECONDITION",
        "The task is over and cannot be canceled.",
        http_1_0=409,
    ),
    ErrorRow(
        "PushNotificationNotSupported",
        -32003,
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        400,
        "FAILED_PRECONDITION",
        "This agent does not send push notifications.",
        grpc_1_0="UNIMPLEMENTED",
    ),
    ErrorRow(
        "UnsupportedOperation",
        -32004,
        "UNSUPPORTED_OPERATION",
        400,
        "FAILED_PRECONDITION",
        "The operation is not supported here.",
        grpc_1_0="UNIMPLEMENTED",
        nuances=(("InvalidTaskState", -32009), ("StreamingNotSupported", -32006)),
    ),
    ErrorRow(
        "ContentTypeNotSupported",
        -32005,
        "CONTENT_TYPE_NOT_SUPPORTED",
        400,
        "INVALID_ARGUMENT",
        "The agent does not take this media type.",
        http_1_0=415,
    ),
    ErrorRow(
        "InvalidAgentResponse",
        -32006,
        "INVALID_AGENT_RESPONSE",
        500,
        "INTERNAL",
        "The agent answered with something that is not valid.",
        http_1_0=502,
        code_0_1=-32603,
    ),
    ErrorRow(
        "ExtendedAgentCardNotConfigured",
        -32007,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        400,
        "FAILED_PRECONDITION",
        "This agent has no extended card.",
        code_0_1=-32004,
    ),
    ErrorRow(
        "ExtensionSupportRequired",
        -32008,
        "EXTENSION_SUPPORT_REQUIRED",
        400,
        "FAILED_PRECONDITION",
        "The agent requires an extension that the request does not name.",
        code_0_1=-32004,
    ),
    ErrorRow(
        "VersionNotSupported",
        -32009,
        "VERSION_NOT_SUPPORTED",
        400,
        "FAILED_PRECONDITION",
        "The protocol version is not supported here.",
        grpc_1_0="UNIMPLEMENTED",
        code_0_1=-32603,
    ),
    # JSON-RPC's.
    ErrorRow("ParseError", -32700, "PARSE_ERROR", 400, "INVALID_ARGUMENT", "The body is not valid JSON."),
    ErrorRow(
        "InvalidRequest", -32600, "INVALID_REQUEST", 400, "INVALID_ARGUMENT", "This is not a valid request."
    ),
    ErrorRow("MethodNotFound", -32601, "METHOD_NOT_FOUND", 404, "UNIMPLEMENTED", "There is no such method."),
    ErrorRow("InvalidParams", -32602, "INVALID_PARAMS", 400, "INVALID_ARGUMENT", "A parameter is not valid."),
    ErrorRow(
        "Internal", -32603, "INTERNAL", 500, "INTERNAL", "Something failed on this side.", retryable=True
    ),
    # Ours: implementation-defined, outside the protocol's range of codes.
    ErrorRow(
        "IdempotencyConflict",
        -32090,
        "IDEMPOTENCY_CONFLICT",
        409,
        "ALREADY_EXISTS",
        "This idempotency key was used with another message.",
    ),
    ErrorRow(
        "StoreFull",
        -32091,
        "STORE_FULL",
        503,
        "RESOURCE_EXHAUSTED",
        "There is no room for more active tasks; try again later.",
        retryable=True,
        code_0_1=-32011,
    ),
    ErrorRow(
        "TooLarge",
        -32092,
        "TOO_LARGE",
        413,
        "INVALID_ARGUMENT",
        "The request is larger than this node takes.",
    ),
    ErrorRow(
        "Unauthenticated",
        -32094,
        "UNAUTHENTICATED",
        401,
        "UNAUTHENTICATED",
        "A credential is needed, and none that is valid was shown.",
        code_0_1=-32007,
    ),
    ErrorRow(
        "Forbidden",
        -32095,
        "FORBIDDEN",
        403,
        "PERMISSION_DENIED",
        "The credential that was shown does not allow this.",
        code_0_1=-32008,
    ),
    ErrorRow(
        "RateLimited",
        -32096,
        "RATE_LIMITED",
        429,
        "RESOURCE_EXHAUSTED",
        "Too much was asked in too short a time; wait as long as Retry-After says.",
        retryable=True,
        code_0_1=-32010,
    ),
    ErrorRow(
        "Unavailable",
        -32093,
        "UNAVAILABLE",
        503,
        "UNAVAILABLE",
        "The node cannot do this right now.",
        retryable=True,
        code_0_1=-32011,
    ),
)

ERRORS: dict[str, ErrorRow] = {row.name: row for row in _ROWS}
MESSAGE_CHARS_MAX = 1000
_BY_CODE = {row.code: row for row in _ROWS}
# What the codes of 0.1 mean that are others in later versions, or none.
_BY_ELDER_CODE = {
    -32006: "UnsupportedOperation",
    -32007: "Unauthenticated",
    -32008: "Forbidden",
    -32009: "UnsupportedOperation",
    -32010: "RateLimited",
    -32011: "Unavailable",
}
_BY_STATUS: dict[str | int, str] = {
    "INVALID_ARGUMENT": "InvalidParams",
    "NOT_FOUND": "TaskNotFound",
    "PERMISSION_DENIED": "Forbidden",
    "RESOURCE_EXHAUSTED": "RateLimited",
    "UNAUTHENTICATED": "Unauthenticated",
    "UNAVAILABLE": "Unavailable",
    "UNIMPLEMENTED": "UnsupportedOperation",
    400: "InvalidRequest",
    401: "Unauthenticated",
    403: "Forbidden",
    404: "TaskNotFound",
    405: "MethodNotFound",
    409: "TaskNotCancelable",
    413: "TooLarge",
    415: "ContentTypeNotSupported",
    422: "InvalidParams",
    429: "RateLimited",
    500: "Internal",
    501: "UnsupportedOperation",
    502: "InvalidAgentResponse",
    503: "Unavailable",
}
_BY_REASON = {row.reason: row for row in _ROWS}


class AgentError(Exception):
    """An error of the table, raised anywhere and spelled by a codec.

    `message` is for the other side to read; `at` names the place in the request that is wrong;
    `nuance` says which of the kinds it is that only 0.1 tells apart.
    """

    def __init__(
        self,
        row: ErrorRow,
        message: str = "",
        *,
        at: str = "",
        metadata: dict[str, str] | None = None,
        retry_seconds: float | None = None,
        nuance: str = "",
    ) -> None:
        super().__init__(message or row.wording)
        self.row = row
        self.message = message or row.wording
        self.at = at
        self.metadata = metadata or {}
        self.retry_seconds = retry_seconds
        self.nuance = nuance

    def __str__(self) -> str:
        return f"{self.row.name}: {self.message}"

    @property
    def name(self) -> str:
        return self.row.name


class Fault(Exception):
    """A peer broke the protocol: theirs, not ours. Says what was seen and where."""

    def __init__(self, message: str, **seen: Any) -> None:
        super().__init__(message)
        self.seen = seen


def error(name: str, message: str = "", *, at: str = "", nuance: str = "", **metadata: str) -> AgentError:
    """An error of the table by its name; without a message it says the table's wording."""
    if len(message) > MESSAGE_CHARS_MAX:
        # It quotes what was said to us, which may be all of a body.
        message = f"{message[:MESSAGE_CHARS_MAX]}…"
    return AgentError(ERRORS[name], message, at=at, metadata=metadata, nuance=nuance)


def row_of_code(code: int) -> ErrorRow | None:
    return _BY_CODE.get(code)


def row_of_elder_code(code: int) -> ErrorRow | None:
    """What a code means that a peer of 0.1 says."""
    elder = _BY_ELDER_CODE.get(code)
    return _BY_CODE.get(code) if elder is None else ERRORS[elder]


def row_of_status(name: str, http: int) -> ErrorRow | None:
    """What the name of a gRPC status means, or an HTTP status, to one who is told no more than that."""
    said = _BY_STATUS.get(name) or _BY_STATUS.get(http)
    return None if said is None else ERRORS[said]


def row_of_reason(reason: str) -> ErrorRow | None:
    return _BY_REASON.get(reason)
