"""A peer at an address: its card as bytes, and how long others may keep it."""

from __future__ import annotations

import hashlib
from email.utils import formatdate

import msgspec

from ..model.card import Card
from ..model.peer import Peer

__all__ = ["CARD_SECONDS", "Mount"]

CARD_SECONDS = 300


class Mount:
    """One agent on a site."""

    def __init__(self, name: str, peer: Peer, card: Card, since: float) -> None:
        self.name = name
        self.peer = peer
        self.card = card
        self.body = msgspec.json.encode(card)
        self.etag = b'"%s"' % hashlib.blake2b(self.body, digest_size=12).hexdigest().encode()
        self.extensions = frozenset(extension.uri.encode() for extension in card.capabilities.extensions)
        self.headers = [
            (b"content-type", b"application/json"),
            (b"etag", self.etag),
            (b"last-modified", formatdate(since, usegmt=True).encode()),
            (b"cache-control", b"public, max-age=%d" % CARD_SECONDS),
        ]
