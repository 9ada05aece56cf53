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
    """One row: what is asked, how it is answered, and its name on each binding.

    `wraps` says that the 1.0 answer names its kind (`{"task": …}`) instead of being bare.
    """

    name: str
    request: type[Request]
    kind: Literal["call", "watch"]
    jsonrpc_1_0: str
    wraps: bool = False


OPERATIONS: dict[str, Operation] = {
    row.name: row
    for row in (
        Operation("send", Send, "call", "SendMessage", wraps=True),
        Operation("stream", Send, "watch", "SendStreamingMessage", wraps=True),
        Operation("get", Get, "call", "GetTask"),
        Operation("list", List, "call", "ListTasks"),
        Operation("cancel", Cancel, "call", "CancelTask"),
        Operation("subscribe", Subscribe, "watch", "SubscribeToTask", wraps=True),
    )
}


def operation_of(request: Request, kind: Literal["call", "watch"]) -> Operation:
    """The row that a request value belongs to, called or watched."""
    for row in OPERATIONS.values():
        if row.request is type(request) and row.kind == kind:
            return row
    raise TypeError(f"{type(request).__name__} cannot be {kind}ed")
