"""What every codec does: one spelling of the protocol, between wire values and the model, in both directions.

Four modules keep this promise: `type_json` (0.1), `kind_json` (0.2 and 0.3 over JSON-RPC), `proto_json_0_3`
(0.3 over REST) and `proto_json_1_0`. Which version and binding has which is the table in `versions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ..model.errors import AgentError
from ..model.events import Event, Logged
from ..model.operations.a2a import Operation, Request
from ..model.peer import Answer
from ..model.task import State

__all__ = ["Codec", "Ends", "FreshId", "Raw", "Tell", "Voice"]

Raw = bytes | msgspec.Raw
FreshId = Callable[[], str]
# The states with which a stream ends: before 1.0 its last event says that it is the last.
Ends = frozenset[State]
# A run of events as items of a stream: each its position in the log, and its bytes. One item may stand for
# several events and an event for none. It remembers what it told: every stream has its own.
Tell = Callable[[Sequence[Logged]], Sequence[tuple[int, bytes]]]


class Voice(msgspec.Struct):
    """How a stream is said: what stands before and after each item, and how events become items."""

    before: bytes
    after: bytes
    tell: Tell


class Codec(Protocol):
    """A module of functions. Reading raises errors of the table, with the place in wire words."""

    # As the one who is asked.

    def read_request(
        self, operation: Operation, raw: Raw, new_id: FreshId, *, lenient: bool = False
    ) -> Request:
        """What was asked: the parameters of JSON-RPC, the body of REST. Ids it lacks are given by `new_id`.

        `lenient` is what the guard saw in the body: keys in snake_case.
        """
        ...

    def spell_reply(self, operation: Operation, answer: Answer, task_id: str = "") -> bytes:
        """The result. `task_id` is how the asker calls the task, where askers name tasks (0.1)."""
        ...

    def teller(self, ends: Ends, task_id: str = "") -> Tell:
        """How a stream is told that ends with one of these states."""
        ...

    def spell_error(self, wrong: AgentError) -> dict[str, Any]:
        """The error object of JSON-RPC."""
        ...

    # As the one who asks.

    def spell_request(self, operation: Operation, request: Request) -> bytes:
        """The parameters of JSON-RPC, the body of REST."""
        ...

    def read_reply(self, operation: Operation, raw: Raw) -> Answer:
        """What a peer answered. Raises `InvalidAgentResponse` with the place."""
        ...

    def read_item(self, raw: Raw) -> Sequence[Event]:
        """What a peer says in one item of a stream, or posts to a webhook."""
        ...

    def read_error(self, error_object: Any) -> AgentError:
        """What a peer's error object means."""
        ...
