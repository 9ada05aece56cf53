"""THE tables of operations: all that can be asked."""

from .a2a import (
    OPERATIONS,
    Cancel,
    Configuration,
    Get,
    List,
    Operation,
    Page,
    Reply,
    Request,
    Send,
    Subscribe,
    operation_of,
)

__all__ = [
    "OPERATIONS",
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
