"""A site at an address of this machine: bound first, so that cards can say where; then served; then closed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Collection
from email.utils import formatdate

import uvicorn
from uvicorn.server import ServerState

from ..serve import Site
from ..serve.heads import Heads
from .config import ConfigError

__all__ = ["Listening"]

BACKLOG = 2048
# How long answers that are under way may take to get out.
CLOSE_SECONDS = 5.0


class Listening:
    """One socket. `url` is where it can be reached from this machine."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = _bind(host, port)
        self._tls = tls
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
        port = self._socket.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{port}"
        self._site: Site | None = None

    async def serve(self, site: Site) -> None:
        """Answer until closed; returns when requests are taken."""
        settings = uvicorn.Config(
            site,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            http=Heads,
        )
        settings.load()
        self._site, self._state = site, ServerState()
        self._loop = asyncio.get_running_loop()
        self._tell_time()
        # Not the server's own loop: that looks ten times a second whether it should end.
        self._server = await self._loop.create_server(
            lambda: Heads(settings, self._state, {}), sock=self._socket, backlog=BACKLOG, ssl=self._tls
        )

    def _tell_time(self) -> None:
        """The date that answers bear, once a second."""
        self._state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]
        self._clock = self._loop.call_later(1.0, self._tell_time)

    @property
    def connections(self) -> Collection[object]:
        """Those that are open."""
        return self._state.connections

    async def close(self) -> None:
        """Take no more requests, end streams with a hint where to go on, and let answers out."""
        if self._site is None:
            self._socket.close()
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._site.close()
        until = self._loop.time() + CLOSE_SECONDS
        # The sets are the server's and tell nobody when they are empty.
        while (self._state.connections or self._state.tasks) and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        for task in self._state.tasks:
            task.cancel()
        self._clock.cancel()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named in full, or asyncio would not know that small answers should leave at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as wrong:
        listener.close()
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {wrong.strerror}; "
            "if another node is there, --port takes another place"
        ) from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener
