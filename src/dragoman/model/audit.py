"""What the audit log says of one call: who asked which agent for what, about which task, and what came of it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["OK", "AuditEntry", "AuditQuery"]

OK = "ok"


class AuditEntry(Struct, frozen=True, omit_defaults=True):
    """One call. `caller` is the owner of what it touches, `credential` what was shown, `via` the dialect.

    `outcome` is `ok`, or the name of the error that was the answer.
    """

    at: float
    caller: str
    agent: str
    operation: str
    outcome: str = OK
    task: str = ""
    context: str = ""
    trace: str = ""
    tenant: str = ""
    credential: str = ""
    via: str = ""


class AuditQuery(Struct, frozen=True):
    """Which entries, newest first: all of what is given must fit. `before` is a position, for the next page."""

    trace: str = ""
    task: str = ""
    caller: str = ""
    agent: str = ""
    since: float = 0.0
    before: int | None = None
    limit: int = 100
