"""The A2A family of operations: requests, replies, and the table that names them on every binding.

A cell that is absent is an operation that the version or binding does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from ..task import Message, Metadata, State, Task

__all__ = [
    "OPERATIONS",
    "PAGE_SIZE",
    "PAGE_SIZE_MAX",
    "Cancel",
    "Configuration",
    "Get",
    "List",
    "Operation",
    "Page",
    "Reply",
    "Request",
    "Send",
    "Subscribe",
    "operation_of",
]

PAGE_SIZE = 50
PAGE_SIZE_MAX = 100


class Configuration(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How the caller wants to be answered. Webhooks are refused until they are served."""

    accepted_output_modes: tuple[str, ...] = ()
    history_length: int | None = None
    return_immediately: bool = False
    task_push_notification_config: Metadata | None = None


class Send(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Say something: to a new task, or to the one the message names. `call` waits, `watch` streams."""

    message: Message
    configuration: Configuration = Configuration()
    metadata: Metadata | None = None
    tenant: str = ""


class Get(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Read a task."""

    id: str
    history_length: int | None = None
    tenant: str = ""


class List(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Read a page of the caller's tasks, newest status first."""

    context_id: str = ""
    status: State | None = None
    status_timestamp_after: str = ""
    page_size: int | None = None
    page_token: str = ""
    history_length: int | None = None
    include_artifacts: bool = False
    tenant: str = ""


class Cancel(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Stop a task."""

    id: str
    metadata: Metadata | None = None
    tenant: str = ""


class Subscribe(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Follow a task that exists."""

    id: str
    tenant: str = ""


class Page(Struct, frozen=True, rename="camel"):
    """A page of tasks. Every member is always there."""

    tasks: tuple[Task, ...]
    next_page_token: str
    page_size: int
    total_size: int


Request = Send | Get | List | Cancel | Subscribe
Reply = Task | Message | Page


@dataclass(frozen=True, slots=True)
class Operation:
    """One row: what is asked, how it is answered, and its name in each vocabulary.

    JSON-RPC has three: of 0.1, of 0.2 and 0.3, of 1.0. REST has one, which since 1.0 is without its `/v1`.
    `wraps` says that protobuf's answer names its kind (`{"task": …}`) instead of being bare.
    """

    name: str
    request: type[Request]
    kind: Literal["call", "watch"]
    jsonrpc_1_0: str
    jsonrpc_0_3: str
    jsonrpc_0_1: str
    rest_1_0: str
    rest_0_3: str
    wraps: bool = False


OPERATIONS: dict[str, Operation] = {
    row.name: row
    for row in (
        Operation(
            "send",
            Send,
            "call",
            jsonrpc_1_0="SendMessage",
            jsonrpc_0_3="message/send",
            jsonrpc_0_1="tasks/send",
            rest_1_0="POST /message:send",
            rest_0_3="POST /v1/message:send",
            wraps=True,
        ),
        Operation(
            "stream",
            Send,
            "watch",
            jsonrpc_1_0="SendStreamingMessage",
            jsonrpc_0_3="message/stream",
            jsonrpc_0_1="tasks/sendSubscribe",
            rest_1_0="POST /message:stream",
            rest_0_3="POST /v1/message:stream",
            wraps=True,
        ),
        Operation(
            "get",
            Get,
            "call",
            jsonrpc_1_0="GetTask",
            jsonrpc_0_3="tasks/get",
            jsonrpc_0_1="tasks/get",
            rest_1_0="GET /tasks/{id}",
            rest_0_3="GET /v1/tasks/{id}",
        ),
        Operation(
            "list",
            List,
            "call",
            jsonrpc_1_0="ListTasks",
            jsonrpc_0_3="",
            jsonrpc_0_1="",
            rest_1_0="GET /tasks",
            rest_0_3="",
        ),
        Operation(
            "cancel",
            Cancel,
            "call",
            jsonrpc_1_0="CancelTask",
            jsonrpc_0_3="tasks/cancel",
            jsonrpc_0_1="tasks/cancel",
            rest_1_0="POST /tasks/{id}:cancel",
            rest_0_3="POST /v1/tasks/{id}:cancel",
        ),
        # By POST in the protocol's text and by GET in its proto: POST is asked first, both are answered.
        Operation(
            "subscribe",
            Subscribe,
            "watch",
            jsonrpc_1_0="SubscribeToTask",
            jsonrpc_0_3="tasks/resubscribe",
            jsonrpc_0_1="tasks/resubscribe",
            rest_1_0="POST /tasks/{id}:subscribe",
            rest_0_3="POST /v1/tasks/{id}:subscribe",
            wraps=True,
        ),
    )
}


def operation_of(request: Request, kind: Literal["call", "watch"]) -> Operation:
    """The row that a request value belongs to, called or watched."""
    for row in OPERATIONS.values():
        if row.request is type(request) and row.kind == kind:
            return row
    raise TypeError(f"{type(request).__name__} cannot be {kind}ed")
