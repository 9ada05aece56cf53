"""Floor 2: a remote agent as a Peer, and words for people around any Peer."""

from .client import Client
from .errors import ClientError, Cut, NoCard, NoInterface, Refused, TimedOut, Unreachable, Untrusted

__all__ = [
    "Client",
    "ClientError",
    "Cut",
    "NoCard",
    "NoInterface",
    "Refused",
    "TimedOut",
    "Unreachable",
    "Untrusted",
]
