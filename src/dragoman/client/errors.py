"""What can go wrong between us and an agent, each with what was seen last and what to do next.

Errors the agent itself reports are `AgentError`s; what it does against the protocol is a `Fault`
(both in model.errors). These are the rest.
"""

from __future__ import annotations

from typing import Any

from ..model.errors import Fault

__all__ = [
    "ClientError",
    "Cut",
    "NoCard",
    "NoInterface",
    "Refused",
    "TimedOut",
    "Unreachable",
    "Unreadable",
    "Untrusted",
]


class ClientError(Exception):
    """The base of these. `advice` says what to do; `seen` holds what was seen last, for programs."""

    def __init__(self, message: str, advice: str = "", **seen: Any) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.seen = seen

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".rstrip()


class Unreachable(ClientError):
    """No connection came about, so nothing was sent."""


class Cut(ClientError):
    """The connection ended early: what was sent may have arrived."""


class TimedOut(ClientError):
    """Too long without news. `seen` has elapsed_seconds, task_id, state, seq, is_stream_open."""


class Refused(ClientError):
    """The door is closed: credentials are missing or not enough. `seen` has status and challenge."""


class Untrusted(ClientError):
    """The agent points to another origin, which gets neither message nor headers unless it is trusted."""


class NoCard(ClientError):
    """There is no card where one was looked for. `seen` has the addresses tried."""


class NoInterface(ClientError):
    """The card offers no interface that is spoken here. `seen` has what it offers."""


class Unreadable(Fault):
    """One item of a stream is not a value of the protocol. The stream itself goes on."""
