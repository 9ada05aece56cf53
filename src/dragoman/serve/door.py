"""The door: who asks, by what they show; whether they may; and how much of it in how short a time.

Without keepers it lets everybody in as nobody in particular, and the node then listens to its own machine only.
With them it fails closed: what none of them knows is refused before a byte of the body is read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..core.access import OPERATOR, may
from ..core.limits import COST_OTHER, COSTS, Buckets, Rate
from ..model.errors import AgentError, error
from ..model.operations.a2a import Request, Send

__all__ = ["NOBODY", "RUNNER", "Door", "Guest", "Keeper", "Rates", "Shown", "digest"]

# How many credentials that were found good are kept in mind.
KNOWN_MAX = 10_000
# A credential that is none costs the address it came from as much as a message.
COST_REFUSED = 30
# By this member of a message's metadata its caller says which skill is asked.
SKILL = "skillId"

clock = time.monotonic


class Shown(Struct):
    """What a request shows of who sent it."""

    authorization: bytes = b""
    api_key: bytes = b""
    # The subject of a certificate that the connection was opened with.
    certificate: str = ""
    address: str = ""


class Guest(Struct, frozen=True):
    """Somebody who was let in. `id` names the credential, `until` is when it has to be shown anew (wall clock)."""

    id: str
    owner: str
    tenant: str = ""
    scopes: frozenset[str] | None = None
    until: float = float("inf")


NOBODY = Guest("", "anyone")
RUNNER = Guest("operator", "operator", scopes=frozenset({"*", OPERATOR}))


def digest(secret: bytes) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret).digest()


class Keeper(Protocol):
    """Knows one kind of credential."""

    # What a refusal asks for, as `WWW-Authenticate` says it; empty if there is no such word for it.
    challenge: str

    def admit(self, shown: Shown) -> Guest | Awaitable[Guest | None] | None:
        """Who it is; None if this kind was not shown, or is not known here."""
        ...

    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        """How a card of 1.0 describes it."""
        ...


class Rates(Struct, frozen=True):
    """How much may be asked: of an address that has shown nothing, and of a caller. `None` is as much as they like."""

    of_address: Rate | None = None
    of_caller: Rate | None = None
    streams_max: int = 100


class Door:
    """One for a site."""

    def __init__(
        self, keepers: Sequence[Keeper] = (), rates: Rates | None = None, operator: bytes = b""
    ) -> None:
        rates = rates or Rates()
        self._keepers = tuple(keepers)
        # The credential of whoever runs the node, and may read what it keeps of others.
        self._operator = digest(b"Bearer " + operator) if operator else b""
        self._known: dict[bytes, Guest] = {}
        self._of_address = Buckets(rates.of_address) if rates.of_address else None
        self._of_caller = Buckets(rates.of_caller) if rates.of_caller else None
        self._streams: dict[str, int] = {}
        self._streams_max = rates.streams_max
        self.is_limiting = self._of_address is not None or self._of_caller is not None
        challenges = [keeper.challenge for keeper in keepers if keeper.challenge]
        self.challenges = ", ".join(dict.fromkeys(challenges)).encode()

    def schemes(self) -> dict[str, Mapping[str, Any]]:
        """What a card says has to be shown: any one of them."""
        return {name: scheme for keeper in self._keepers for name, scheme in keeper.schemes().items()}

    @property
    def is_kept(self) -> bool:
        """Whether anybody has to show anything."""
        return bool(self._keepers)

    def known(self, shown: Shown) -> Guest | None:
        """Somebody who was let in before with the same, or who needs to show nothing."""
        if not self._keepers:
            return NOBODY
        guest = self._known.get(_credential_of(shown))
        if guest is None or guest.until <= time.time():
            return None
        return guest

    def is_operator(self, shown: Shown) -> bool:
        """Whether it is whoever runs the node."""
        return bool(self._operator) and digest(shown.authorization) == self._operator

    async def admit(self, shown: Shown) -> Guest:
        """Let somebody in, or refuse them."""
        if self.is_operator(shown):
            return RUNNER
        self._charge_address(shown.address, 1)
        for keeper in self._keepers:
            found = keeper.admit(shown)
            guest = await found if isinstance(found, Awaitable) else found
            if guest is not None:
                self._keep(shown, guest)
                return guest
        self._charge_address(shown.address, COST_REFUSED)
        words = "The credential is not known here." if _credential_of(shown) else ""
        raise error("Unauthenticated", words)

    def _keep(self, shown: Shown, guest: Guest) -> None:
        if credential := _credential_of(shown):
            if len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[credential] = guest

    def check(self, guest: Guest, agent: str, operation: str, request: Request) -> None:
        """Refuse what this guest may not."""
        if guest.scopes is not None and not may(guest.scopes, agent, operation, _skill_of(request)):
            raise error("Forbidden", f"this credential does not allow to {operation} with agent {agent!r}")
        said = request.tenant
        if said and guest.tenant and said != guest.tenant:
            raise error("Forbidden", "the tenant is another than the credential's", at="tenant")

    def charge(self, guest: Guest, address: str, operation: str) -> None:
        """Take what an operation costs, of who asks or of where it comes from."""
        if guest is NOBODY:
            if self._of_address is not None:
                self._charge_address(address, COSTS.get(operation, COST_OTHER))
        elif self._of_caller is not None:
            self._pay(self._of_caller, f"{guest.tenant}\n{guest.owner}", COSTS.get(operation, COST_OTHER))

    def _charge_address(self, address: str, tokens: int) -> None:
        if self._of_address is not None and not _is_near(address):
            self._pay(self._of_address, address, tokens)

    def _pay(self, buckets: Buckets, who: str, tokens: int) -> None:
        wait_seconds = buckets.take(who, tokens, clock())
        if wait_seconds > 0:
            refused: AgentError = error("RateLimited")
            refused.retry_seconds = wait_seconds
            raise refused

    # Streams.

    def stream_opened(self, guest: Guest) -> str:
        """Count a stream in; the name under which it is counted out again."""
        who = f"{guest.tenant}\n{guest.owner}"
        count = self._streams.get(who, 0)
        if guest is not NOBODY and count >= self._streams_max:
            refused = error("RateLimited", f"{count} streams are open; {self._streams_max} may be")
            refused.retry_seconds = 5.0
            raise refused
        self._streams[who] = count + 1
        return who

    def stream_closed(self, who: str) -> None:
        count = self._streams[who] - 1
        if count:
            self._streams[who] = count
        else:
            del self._streams[who]


def _credential_of(shown: Shown) -> bytes:
    return shown.authorization or shown.api_key or shown.certificate.encode()


def _skill_of(request: Request) -> str:
    if not isinstance(request, Send):
        return ""
    named = (request.message.metadata or {}).get(SKILL, "")
    return named if isinstance(named, str) else ""


def _is_near(address: str) -> bool:
    return address in ("", "::1") or address.startswith("127.")
