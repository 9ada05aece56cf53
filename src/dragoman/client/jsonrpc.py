"""How a request travels over JSON-RPC, in any version of the protocol, and which answers to it are none."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from yarl import URL

from ..model.card import Interface
from ..model.errors import AgentError, Fault
from ..model.operations.a2a import Operation, Request, operation_of
from ..model.peer import Answer, Caller, SystemClock
from ..wire.versions import Dialect, shown
from .hearing import WRONG, Heard, Stream, beside, events_of, reply_of, start_of, strange
from .http import Http, is_json, is_stream, refusal

__all__ = ["JsonRpc"]


class _Envelope(Struct):
    jsonrpc: str = ""
    id: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


_envelope = msgspec.json.Decoder(_Envelope).decode
_NOTHING = (b"", b"null")
_new_id = SystemClock().new_id


class JsonRpc:
    """One endpoint: `call` for one answer, `open` for a stream of them."""

    def __init__(self, http: Http, interface: Interface, url: URL, dialect: Dialect) -> None:
        self.dialect = dialect
        self._http = http
        self._url = url
        self._tenant = interface.tenant
        self._numbers = itertools.count(1)

    async def call(self, caller: Caller, request: Request) -> Answer:
        number = self._number()
        operation = operation_of(request, "call")
        body = self._spelled(operation, request, number)
        response = await self._http.post(self._url, body, beside(caller, operation, self.dialect))
        try:
            if response.status != 200:
                raise await self._refused(response, number)
            if not is_json(response):
                raise strange(response)
            answer = await self._http.read(response)
        except BaseException:
            response.close()
            raise
        result = self._result(answer, number)
        self.dialect = shown(self.dialect, result)
        return reply_of(self.dialect.codec, operation, result)

    async def open(self, caller: Caller, request: Request, last_id: str = "") -> Stream:
        """A stream whose head has been checked."""
        number = self._number()
        operation = operation_of(request, "watch")
        body = self._spelled(operation, request, number)
        headers = beside(caller, operation, self.dialect)
        headers["Accept"] = "text/event-stream"
        if last_id:
            headers["Last-Event-ID"] = last_id
        response = await self._http.post(self._url, body, headers)
        try:
            if response.status != 200:
                raise await self._refused(response, number)
            if is_json(response):
                # An error that came up before the stream did is a plain answer.
                self._result(await self._http.read(response), number)
                raise Fault(
                    "the peer answered a request for a stream with a single value", url=str(self._url)
                )
            if not is_stream(response):
                raise strange(response)
        except BaseException:
            response.close()
            raise
        return Stream(self._http, response, lambda item: self._heard(item.data, number))

    def _number(self) -> bytes:
        if self.dialect.calls_by_uuid:
            return b'"%b"' % _new_id().encode()
        return b"%d" % next(self._numbers)

    def _spelled(self, operation: Operation, request: Request, number: bytes) -> bytes:
        if self._tenant and not request.tenant:
            request = replace(request, tenant=self._tenant)
        return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (
            number,
            self.dialect.name_here(operation).encode(),
            self.dialect.codec.spell_request(operation, request),
        )

    async def _refused(self, response: Any, number: bytes) -> Exception:
        """The error in the body if there is one: it says more than the status."""
        if response.status not in (401, 403) and is_json(response):
            try:
                self._result(await self._http.read(response), number)
            except AgentError as told:
                return told
            except Fault:
                pass
        return refusal(response)

    def _heard(self, item: bytes, number: bytes) -> Heard:
        try:
            result = self._result(item, number)
        except (AgentError, Fault) as problem:
            return (problem,)
        self.dialect = shown(self.dialect, result)
        return events_of(self.dialect.codec, result)

    def _result(self, answer: bytes, number: bytes) -> Raw:
        """The result for exactly this request, or the error: raised."""
        try:
            envelope = _envelope(answer)
        except WRONG as problem:
            kind = "a batch" if answer.lstrip()[:1] == b"[" else "something that is no JSON-RPC answer"
            raise Fault(f"the peer sent {kind}: {problem}", start=start_of(answer)) from problem
        number_said, result, wrong = bytes(envelope.id), envelope.result, bytes(envelope.error)
        if envelope.jsonrpc != "2.0":
            raise Fault(
                f"the peer's answer says jsonrpc {envelope.jsonrpc!r} instead of '2.0'",
                start=start_of(answer),
            )
        if wrong not in _NOTHING:
            if bytes(result) not in _NOTHING:
                raise Fault("the peer sent a result and an error at once", start=start_of(answer))
            # Who could not read a request's id answers with null.
            if number_said not in (b"null", number):
                raise Fault(
                    f"the peer answered request {_word(number)} with an error for id {_word(number_said)}",
                    start=start_of(answer),
                )
            raise self._told(wrong)
        if number_said != number:
            raise Fault(
                f"the peer answered request {_word(number)} with id {_word(number_said)}",
                start=start_of(answer),
            )
        if memoryview(result).nbytes == 0:
            raise Fault("the peer sent neither a result nor an error", start=start_of(answer))
        return result

    def _told(self, wrong: bytes) -> AgentError:
        try:
            told = msgspec.json.decode(wrong)
            if not isinstance(told, dict):
                raise Fault("it is not an object")
            return self.dialect.codec.read_error(told)
        except WRONG as problem:
            raise Fault(f"the peer sent an error that is none: {problem}", start=start_of(wrong)) from problem


def _word(number: bytes) -> str:
    return number[:40].decode("utf-8", "replace") if number else "missing"
