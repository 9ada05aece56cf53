"""How a request travels over REST, in any version of the protocol, and which answers to it are none."""

from __future__ import annotations

from typing import Any

from yarl import URL

from ..model.card import Interface
from ..model.errors import AgentError, Fault
from ..model.operations.a2a import Operation, Request, operation_of
from ..model.peer import Answer, Caller
from ..wire.rest_asking import Spelled, read_refusal, spell
from ..wire.sse import Item
from ..wire.versions import Dialect
from .hearing import Heard, Stream, beside, events_of, reply_of, strange
from .http import Http, is_json, is_stream, refusal

__all__ = ["Rest"]

# Who serves a path by another method only, or not at all, says one of these without an error of the protocol's.
_NO_SUCH_WAY = (404, 405, 501)


class Rest:
    """The paths below one address: `call` for one answer, `open` for a stream of them."""

    def __init__(self, http: Http, interface: Interface, url: URL, dialect: Dialect) -> None:
        self.dialect = dialect
        self._http = http
        self._root = str(url.with_query(None).with_fragment(None)).rstrip("/")
        self._tenant = interface.tenant
        # Operations that this peer answers by GET though the protocol's text says POST.
        self._by_get: set[str] = set()

    async def call(self, caller: Caller, request: Request) -> Answer:
        operation = operation_of(request, "call")
        response = await self._ask(caller, operation, request, {})
        try:
            if not is_json(response):
                raise strange(response)
            answer = await self._http.read(response)
        except BaseException:
            response.close()
            raise
        return reply_of(self.dialect.codec, operation, answer)

    async def open(self, caller: Caller, request: Request, last_id: str = "") -> Stream:
        """A stream whose head has been checked."""
        operation = operation_of(request, "watch")
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        response = await self._ask(caller, operation, request, headers)
        try:
            if is_json(response):
                raise Fault("the peer answered a request for a stream with a single value", url=self._root)
            if not is_stream(response):
                raise strange(response)
        except BaseException:
            response.close()
            raise
        return Stream(self._http, response, self._heard)

    async def _ask(self, caller: Caller, operation: Operation, request: Request, more: dict[str, str]) -> Any:
        """The head of an answer that is none of a refusal."""
        spelled = spell(self.dialect, operation, request, self._tenant)
        headers = {**beside(caller, operation, self.dialect), **more}
        may_get = operation.name == "subscribe"
        if operation.name in self._by_get:
            spelled = spelled._replace(method="GET")
        response = await self._sent(spelled, headers)
        if response.status in _NO_SUCH_WAY and may_get and spelled.method == "POST":
            told = await self._refused(response)
            if isinstance(told, AgentError):
                raise told
            response.release()
            response = await self._sent(spelled._replace(method="GET"), headers)
            if response.status == 200:
                self._by_get.add(operation.name)
        # Some say 201 for a message and 202 for a cancel.
        if not 200 <= response.status < 300:
            try:
                raise await self._refused(response)
            finally:
                response.release()
        return response

    async def _sent(self, spelled: Spelled, headers: dict[str, str]) -> Any:
        url = URL(self._root + spelled.path, encoded=True)
        if spelled.method == "GET":
            return await self._http.get(url, headers)
        return await self._http.post(url, spelled.body, headers)

    async def _refused(self, response: Any) -> Exception:
        """The error in the body if there is one: it says more than the status."""
        if response.status not in (401, 403) and is_json(response):
            told = read_refusal(self.dialect, response.status, await self._http.read(response))
            if told is not None:
                return told
        return refusal(response)

    def _heard(self, item: Item) -> Heard:
        # Some say so beside an error, others in it.
        is_error = item.event == "error" or b'"error"' in item.data[:64]
        told = read_refusal(self.dialect, 0, item.data) if is_error else None
        return (told,) if told is not None else events_of(self.dialect.codec, item.data)
