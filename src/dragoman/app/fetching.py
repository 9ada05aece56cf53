"""Documents that an operator has named by their address: keys of issuers, their descriptions. Small, and soon."""

from __future__ import annotations

import asyncio

from yarl import URL

from ..client.http import Http, refusal

__all__ = ["Fetching"]

BYTES_MAX = 1024 * 1024
SECONDS_MAX = 10.0


class Fetching:
    """Connections that are opened when they are first needed."""

    def __init__(self) -> None:
        self._http: Http | None = None

    async def fetch(self, url: str) -> bytes:
        """What is there. Redirects are not followed: the address was chosen with care."""
        if self._http is None:
            self._http = Http(None, SECONDS_MAX, BYTES_MAX)
        async with asyncio.timeout(SECONDS_MAX):
            response = await self._http.get(URL(url), None)
            try:
                if response.status != 200:
                    raise refusal(response)
                return await self._http.read(response)
            finally:
                response.release()

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()
