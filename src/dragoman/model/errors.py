"""THE error table: one row per error, with its code on every binding and its wording.

`tools/docs.py` writes the reference page from it; nothing else in the house knows a code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ERRORS", "AgentError", "ErrorRow", "Fault", "error", "row_of_code", "row_of_reason"]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A kind of error. `http_1_0` and `grpc_1_0` hold where 1.0.0 differs from 1.0.1."""

    name: str
    code: int
    reason: str
    http: int
    grpc: str
    wording: str
    retryable: bool = False
    http_1_0: int | None = None
    grpc_1_0: str | None = None


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
    ),
    ErrorRow(
        "ExtendedAgentCardNotConfigured",
        -32007,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        400,
        "FAILED_PRECONDITION",
        "This agent has no extended card.",
    ),
    ErrorRow(
        "ExtensionSupportRequired",
        -32008,
        "EXTENSION_SUPPORT_REQUIRED",
        400,
        "FAILED_PRECONDITION",
        "The agent requires an extension that the request does not name.",
    ),
    ErrorRow(
        "VersionNotSupported",
        -32009,
        "VERSION_NOT_SUPPORTED",
        400,
        "FAILED_PRECONDITION",
        "The protocol version is not supported here.",
        grpc_1_0="UNIMPLEMENTED",
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
        "Unavailable",
        -32093,
        "UNAVAILABLE",
        503,
        "UNAVAILABLE",
        "The node cannot do this right now.",
        retryable=True,
    ),
)

ERRORS: dict[str, ErrorRow] = {row.name: row for row in _ROWS}
MESSAGE_CHARS_MAX = 1000
_BY_CODE = {row.code: row for row in _ROWS}
_BY_REASON = {row.reason: row for row in _ROWS}


class AgentError(Exception):
    """An error of the table, raised anywhere and spelled by a codec.

    `message` is for the other side to read; `at` names the place in the request that is wrong.
    """

    def __init__(
        self,
        row: ErrorRow,
        message: str = "",
        *,
        at: str = "",
        metadata: dict[str, str] | None = None,
        retry_seconds: float | None = None,
    ) -> None:
        super().__init__(message or row.wording)
        self.row = row
        self.message = message or row.wording
        self.at = at
        self.metadata = metadata or {}
        self.retry_seconds = retry_seconds

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


def error(name: str, message: str = "", *, at: str = "", **metadata: str) -> AgentError:
    """An error of the table by its name; without a message it says the table's wording."""
    if len(message) > MESSAGE_CHARS_MAX:
        # It quotes what was said to us, which may be all of a body.
        message = f"{message[:MESSAGE_CHARS_MAX]}…"
    return AgentError(ERRORS[name], message, at=at, metadata=metadata)


def row_of_code(code: int) -> ErrorRow | None:
    return _BY_CODE.get(code)


def row_of_reason(reason: str) -> ErrorRow | None:
    return _BY_REASON.get(reason)
