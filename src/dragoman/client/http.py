"""The one file of the client that knows aiohttp: connections, limits, and what its errors mean to us."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from yarl import URL

from ..model.errors import Fault, error
from .errors import ClientError, Cut, Refused, Unreachable

__all__ = ["BODY_BYTES_MAX", "Http", "origin_of"]

BODY_BYTES_MAX = 20 * 1024 * 1024
HEADER_BYTES_MAX = 16 * 1024
CONNECTIONS_MAX = 1024
# Below what servers keep an idle connection for (uvicorn: 5 s): a message is not sent into one
# that is just being closed.
IDLE_SECONDS_MAX = 4.0

_JSON = ("application/json", "application/a2a+json", "application/json-rpc", "application/jsonrequest")


def origin_of(url: URL) -> str:
    """Scheme, host and port: what credentials are given to."""
    return str(url.origin())


class Http:
    """The connections of one client. Bound to the loop it is made in."""

    def __init__(
        self, headers: Mapping[str, str] | None, connect_seconds: float, body_bytes_max: int = BODY_BYTES_MAX
    ) -> None:
        self.body_bytes_max = body_bytes_max
        self._connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=IDLE_SECONDS_MAX)
        # No total: callers bound the whole exchange, streams have none.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        asked = {"User-Agent": "Dragoman A2A", "Accept-Encoding": "identity"}
        asked["Accept"] = "application/json"
        given = dict(headers or {})

        def session(more: Mapping[str, str]) -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                connector=self._connector,
                connector_owner=False,
                headers={**asked, **more, **given},
                timeout=timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=256 * 1024,
                max_line_size=HEADER_BYTES_MAX,
                max_field_size=HEADER_BYTES_MAX,
            )

        self._posts = session({"Content-Type": "application/json"})
        self._gets = session({})

    async def aclose(self) -> None:
        await self._posts.close()
        await self._gets.close()
        await self._connector.close()

    async def post(self, url: URL, body: bytes, headers: Mapping[str, str] | None) -> aiohttp.ClientResponse:
        """The answer's head. `Unreachable` means that nothing was sent, `Cut` that it may have been."""
        try:
            return await self._posts.post(url, data=body, headers=headers, allow_redirects=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise _meaning(url, problem) from problem

    async def get(self, url: URL, headers: Mapping[str, str] | None) -> aiohttp.ClientResponse:
        try:
            return await self._gets.get(url, headers=headers, allow_redirects=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise _meaning(url, problem) from problem

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body, within the limit."""
        length = response.content_length
        try:
            if length is not None and "Content-Encoding" not in response.headers:
                if length > self.body_bytes_max:
                    raise self._too_large(response)
                return await response.read()
            chunks, size = [], 0
            while chunk := await response.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > self.body_bytes_max:
                    raise self._too_large(response)
            return b"".join(chunks)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise _meaning(response.url, problem) from problem

    async def some(self, response: aiohttp.ClientResponse) -> bytes:
        """What has arrived of a stream, waiting for at least one byte; empty at its end."""
        try:
            return await response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise _meaning(response.url, problem) from problem

    def _too_large(self, response: aiohttp.ClientResponse) -> Fault:
        response.close()
        return Fault(
            f"{response.url} answered with more than {self.body_bytes_max} bytes",
            url=str(response.url),
            bytes_max=self.body_bytes_max,
        )


def is_json(response: aiohttp.ClientResponse) -> bool:
    """Whether an answer says that it is JSON."""
    spelled = response.headers.get("Content-Type", "")
    kind = spelled.partition(";")[0].strip().lower()
    return kind in _JSON or (kind.startswith("application/") and kind.endswith("+json"))


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Whether an answer says that it is a stream of events."""
    return response.headers.get("Content-Type", "").lower().startswith("text/event-stream")


def refusal(response: aiohttp.ClientResponse) -> Exception:
    """What an HTTP status means when the body does not say more."""
    status, url = response.status, str(response.url)
    if status in (401, 403):
        challenge = response.headers.get("WWW-Authenticate", "")
        asks = f" It asks for: {challenge}." if challenge else ""
        lack = "missing" if status == 401 else "not enough"
        return Refused(
            f"{url} answered {status}: the credentials are {lack}.{asks}",
            "Give them with headers={'Authorization': …}.",
            status=status,
            challenge=challenge,
        )
    if 300 <= status < 400:
        where = response.headers.get("Location", "")
        return Refused(
            f"{url} answered {status} and points to {where or 'nowhere'}.",
            "Redirects are not followed with a message in hand: name that address instead, if you trust it.",
            status=status,
            location=where,
        )
    if status == 413:
        return error("TooLarge", f"{url} answered 413: the message is larger than it takes")
    if status in (429, 503):
        later = error("Unavailable", f"{url} answered {status}: it cannot take this right now")
        wait = response.headers.get("Retry-After", "")
        later.retry_seconds = float(wait) if wait.isdecimal() else None
        return later
    if status in (502, 504):
        return Cut(f"{url} answered {status}: something between here and the agent lost it.", status=status)
    return Fault(
        f"{url} answered HTTP {status} where an answer of the protocol belongs", url=url, status=status
    )


def _meaning(url: URL, problem: Exception) -> Exception:
    """Ours, theirs or the road's. Only what surely did not leave is `Unreachable`."""
    reason = str(problem) or type(problem).__name__
    if isinstance(problem, aiohttp.ServerDisconnectedError):
        reason = "the other side closed it"
    if isinstance(problem, aiohttp.ClientConnectorError) and not isinstance(problem, aiohttp.ClientSSLError):
        reason = problem.os_error.strerror or reason
    if isinstance(problem, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return Unreachable(
            f"{origin_of(url)} cannot be reached: {reason}.", "Is the agent running there?", url=str(url)
        )
    if isinstance(problem, aiohttp.InvalidURL):
        return ClientError(f"{url} is not an address that can be called.", url=str(url))
    if isinstance(problem, aiohttp.ClientResponseError):
        return Fault(f"{url} does not answer in proper HTTP: {problem.message or reason}", url=str(url))
    return Cut(f"The connection to {origin_of(url)} ended early: {reason}.", url=str(url))
