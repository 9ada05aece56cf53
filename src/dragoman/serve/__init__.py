"""Floor 2: puts any Peer on the wire. Knows sockets and spelling, decides nothing."""

from .http import Site
from .mount import CardForm, Mount, interfaces

__all__ = ["CardForm", "Mount", "Site", "interfaces"]
