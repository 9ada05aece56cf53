"""Connections to places that others have named: each socket is judged by the address it is about to dial."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import aiohttp

from .screen import Screen, Unsafe

__all__ = ["UnsafeDial", "connector"]

MakeSocket = Callable[[Any], socket.socket]


class UnsafeDial(OSError):
    """A name led to an address that is not reached. Nothing was sent there, not even a handshake."""


def _plain_socket(address: Any) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made


def connector(screen: Screen, make: MakeSocket = _plain_socket, **settings: Any) -> aiohttp.TCPConnector:
    """A connector whose sockets go only where the screen lets them. `make` makes the socket; tests record instead."""

    def judged(address: Any) -> socket.socket:
        host, port = address[4][:2]
        try:
            screen.check_address(host, port)
        except Unsafe as unsafe:
            raise UnsafeDial(str(unsafe)) from None
        return make(address)

    return aiohttp.TCPConnector(socket_factory=judged, **settings)
