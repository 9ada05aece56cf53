"""How a request of 1.0 travels over JSON-RPC, and which answers to it are none."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from yarl import URL

from ..model.card import Interface
from ..model.errors import AgentError, Fault
from ..model.events import Event, Replied, TaskCreated
from ..model.operations.a2a import List, Operation, Page, Request, Send, operation_of
from ..model.peer import Answer, Caller
from ..model.task import Message, Task
from ..wire.proto_json_1_0 import decode_page, decode_stream_item, decode_task, encode_request, read_error
from ..wire.sse import Reader
from .errors import Unreadable
from .http import Http, is_json, is_stream, refusal

__all__ = ["JsonRpc", "Stream"]

# What a peer may get wrong in a value: all of it is caught where the value is read.
_WRONG = (AgentError, Fault, msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError)


class _Envelope(Struct):
    jsonrpc: str = ""
    id: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


_envelope = msgspec.json.Decoder(_Envelope).decode
_NOTHING = (b"", b"null")


class JsonRpc:
    """One endpoint: `call` for one answer, `open` for a stream of them."""

    def __init__(self, http: Http, interface: Interface, url: URL) -> None:
        self._http = http
        self._url = url
        self._tenant = interface.tenant
        self._numbers = itertools.count(1)

    async def call(self, caller: Caller, request: Request) -> Answer:
        number = next(self._numbers)
        body = self._spelled(operation_of(request, "call"), request, number)
        response = await self._http.post(self._url, body, _beside(caller, request))
        try:
            if response.status != 200:
                raise await self._refused(response, number)
            if not is_json(response):
                raise _not_json(response)
            answer = await self._http.read(response)
        except BaseException:
            response.close()
            raise
        return _reply(request, _result(answer, number))

    async def open(self, caller: Caller, request: Request, last_id: str = "") -> Stream:
        """A stream whose head has been checked."""
        number = next(self._numbers)
        body = self._spelled(operation_of(request, "watch"), request, number)
        headers = _beside(caller, request)
        headers["Accept"] = "text/event-stream"
        if last_id:
            headers["Last-Event-ID"] = last_id
        response = await self._http.post(self._url, body, headers)
        try:
            if response.status != 200:
                raise await self._refused(response, number)
            if is_json(response):
                # An error that came up before the stream did is a plain answer.
                _result(await self._http.read(response), number)
                raise Fault(
                    "the peer answered a request for a stream with a single value", url=str(self._url)
                )
            if not is_stream(response):
                raise _not_json(response)
        except BaseException:
            response.close()
            raise
        return Stream(self._http, response, number)

    def _spelled(self, row: Operation, request: Request, number: int) -> bytes:
        if self._tenant and not request.tenant:
            request = replace(request, tenant=self._tenant)
        return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (
            number,
            row.jsonrpc_1_0.encode(),
            encode_request(request),
        )

    async def _refused(self, response: Any, number: int) -> Exception:
        """The error in the body if there is one: it says more than the status."""
        if response.status not in (401, 403) and is_json(response):
            try:
                _result(await self._http.read(response), number)
            except AgentError as told:
                return told
            except Fault:
                pass
        return refusal(response)


class Stream:
    """The items of one connection, as events or as what was wrong with them."""

    def __init__(self, http: Http, response: Any, number: int) -> None:
        self._http = http
        self._response = response
        self._number = number
        self._reader = Reader(http.body_bytes_max)

    @property
    def beats(self) -> int:
        return self._reader.beats

    @property
    def retry_ms(self) -> int | None:
        return self._reader.retry_ms

    async def read(self) -> list[tuple[str, Event | Exception]] | None:
        """What came together: (id or "", event); None at the end, an empty list for a keep-alive."""
        chunk = await self._http.some(self._response)
        if not chunk:
            return None
        found = [
            (item.id if item.brought_id else "", _event(item.data, self._number))
            for item in self._reader.feed(chunk)
        ]
        if self._reader.fault is not None:
            found.append(("", self._reader.fault))
        return found

    async def finish(self) -> None:
        """Read the end that follows a last event, so that the connection can be used again."""
        if not self._response.content.at_eof():
            await self._http.some(self._response)

    def close(self) -> None:
        # Closes the connection unless the answer was read to its end.
        self._response.release()


def _beside(caller: Caller, request: Request) -> dict[str, str]:
    """The headers that belong to this request alone."""
    headers: dict[str, str] = {}
    if caller.key and type(request) is Send:
        headers["Idempotency-Key"] = caller.key
    if caller.extensions:
        headers["A2A-Extensions"] = ", ".join(caller.extensions)
    return headers


def _result(answer: bytes, number: int) -> Raw:
    """The result for exactly this request, or the error: raised."""
    try:
        envelope = _envelope(answer)
    except _WRONG as problem:
        kind = "a batch" if answer.lstrip()[:1] == b"[" else "something that is no JSON-RPC answer"
        raise Fault(f"the peer sent {kind}: {problem}", start=_start(answer)) from problem
    number_said, result, wrong = bytes(envelope.id), envelope.result, bytes(envelope.error)
    if envelope.jsonrpc != "2.0":
        raise Fault(
            f"the peer's answer says jsonrpc {envelope.jsonrpc!r} instead of '2.0'", start=_start(answer)
        )
    if wrong not in _NOTHING:
        if bytes(result) not in _NOTHING:
            raise Fault("the peer sent a result and an error at once", start=_start(answer))
        # Who could not read a request's id answers with null.
        if number_said not in (b"null", b"%d" % number):
            raise Fault(
                f"the peer answered request {number} with an error for id {_word(number_said)}",
                start=_start(answer),
            )
        raise _told(wrong)
    if number_said != b"%d" % number:
        raise Fault(f"the peer answered request {number} with id {_word(number_said)}", start=_start(answer))
    if memoryview(result).nbytes == 0:
        raise Fault("the peer sent neither a result nor an error", start=_start(answer))
    return result


def _told(wrong: bytes) -> AgentError:
    try:
        told = msgspec.json.decode(wrong)
        if not isinstance(told, dict):
            raise Fault("it is not an object")
        return read_error(told)
    except _WRONG as problem:
        raise Fault(f"the peer sent an error that is none: {problem}", start=_start(wrong)) from problem


def _reply(request: Request, result: Raw) -> Answer:
    try:
        if type(request) is Send:
            event = decode_stream_item(result)
            if type(event) is TaskCreated:
                return Answer(Task, event.task)
            if type(event) is Replied:
                return Answer(Message, event.message)
            raise Fault("a task or a message was expected")
        if type(request) is List:
            return Answer(Page, decode_page(result))
        task = decode_task(result)
    except _WRONG as problem:
        raise Fault(f"the peer's result is not valid: {problem}", start=_start(result)) from problem
    return Answer(Task, task)


def _event(item: bytes, number: int) -> Event | Exception:
    try:
        result = _result(item, number)
    except (AgentError, Fault) as problem:
        return problem
    try:
        return decode_stream_item(result)
    except _WRONG as problem:
        return Unreadable(f"the peer sent an item that is not valid: {problem}", start=_start(result))


def _not_json(response: Any) -> Fault:
    kind = response.headers.get("Content-Type", "no content type")
    return Fault(
        f"{response.url} answered with {kind}: that is not an agent's answer",
        url=str(response.url),
        content_type=kind,
    )


def _word(number: bytes) -> str:
    return number[:40].decode("utf-8", "replace") if number else "missing"


def _start(answer: bytes | Raw) -> str:
    """Enough of what was seen to recognise it."""
    return bytes(memoryview(answer)[:200]).decode("utf-8", "replace")
