"""A peer at an address: its card as bytes in every version, and how long others may keep it."""

from __future__ import annotations

import hashlib
from email.utils import formatdate
from typing import Literal, NamedTuple

from ..model.card import Card, Interface
from ..model.peer import Peer
from ..wire.cards import HYBRID, spell_card
from ..wire.versions import NEWEST, OFFERED, SPOKEN

__all__ = ["CARD_SECONDS", "CardForm", "Mount", "interfaces"]

CARD_SECONDS = 300
# Which card is served: the one of the version that is asked for (else the hybrid one), or always one of the two.
CardForm = Literal["by-header", "hybrid", "strict"]


class Spelled(NamedTuple):
    """A card in one version, as HTTP sends it."""

    body: bytes
    etag: bytes
    headers: list[tuple[bytes, bytes]]


class Mount:
    """One agent on a site. `keeps_history`: its tasks' past states can be read back."""

    def __init__(
        self,
        name: str,
        peer: Peer,
        card: Card,
        since: float,
        form: CardForm = "by-header",
        keeps_history: bool = True,
    ) -> None:
        self.name = name
        self.peer = peer
        self.card = card
        self.extensions = frozenset(extension.uri.encode() for extension in card.capabilities.extensions)
        shared = [
            (b"content-type", b"application/json"),
            (b"last-modified", formatdate(since, usegmt=True).encode()),
            (b"cache-control", b"public, max-age=%d" % CARD_SECONDS),
        ]
        if form == "by-header":
            shared.append((b"vary", b"A2A-Version"))
        unsaid = NEWEST if form == "strict" else HYBRID
        self._cards = {"": _spelled(spell_card(card, unsaid, keeps_history=keeps_history), shared)}
        if form == "by-header":
            for version in SPOKEN:
                body = spell_card(card, version, keeps_history=keeps_history)
                self._cards[version] = _spelled(body, shared)

    def card_in(self, version: str) -> Spelled:
        """The card for who asks in a version; empty is who says none."""
        return self._cards.get(version) or self._cards[""]


def _spelled(body: bytes, shared: list[tuple[bytes, bytes]]) -> Spelled:
    etag = b'"%s"' % hashlib.blake2b(body, digest_size=12).hexdigest().encode()
    return Spelled(body, etag, [(b"etag", etag), *shared])


def interfaces(url: str) -> tuple[Interface, ...]:
    """The ways to an agent at an address. Over REST more path follows, so its address has no slash at the end."""
    return tuple(
        Interface(url if binding == "JSONRPC" else url.rstrip("/"), binding, version)
        for binding, version in OFFERED
    )
