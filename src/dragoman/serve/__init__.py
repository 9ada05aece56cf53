"""Floor 2: puts any Peer on the wire. Knows sockets and spelling, decides nothing."""

from .http import Site
from .mount import Mount

__all__ = ["Mount", "Site"]
