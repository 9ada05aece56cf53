"""A node's HTTP as a hostile or merely odd peer meets it: bytes on a real socket, answers byte by byte."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import Agent, Extension, Node, Turn
from dragoman.app.config import Config, NodeConfig, ServeConfig
from dragoman.serve import heads

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
READ_SECONDS_MAX = 10
BODY_BYTES_MAX = 64 * 1024


async def echo(turn: Turn) -> str:
    return turn.text


@dataclass
class Reply:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]

    @property
    def reason(self) -> str:
        return self.error["data"][0]["reason"]

    @property
    def text(self) -> str:
        """What the agent answered."""
        return self.json["result"]["task"]["artifacts"][0]["parts"][0]["text"]


class Wire:
    """A connection to a node that says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def hear(self, *, has_body: bool = True) -> Reply:
        async with asyncio.timeout(READ_SECONDS_MAX):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
            status = int(line.split(" ")[1])
            body = b""
            if has_body and status != 304:
                if headers.get("transfer-encoding") == "chunked":
                    while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
                        body += (await self.reader.readexactly(size + 2))[:-2]
                    await self.reader.readexactly(2)
                else:
                    body = await self.reader.readexactly(int(headers["content-length"]))
            return Reply(status, headers, body)

    async def is_ended(self) -> bool:
        async with asyncio.timeout(READ_SECONDS_MAX):
            return await self.reader.read(1) == b""


class Place:
    """A served node as tests reach it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.port = int(node.url.rpartition(":")[2])

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[Wire]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Wire(reader, writer)
        finally:
            writer.close()

    async def ask(self, raw: bytes, *, has_body: bool = True) -> Reply:
        async with self.wire() as wire:
            wire.say(raw)
            return await wire.hear(has_body=has_body)

    async def post(self, body: bytes | None = None, path: str = "/", headers: Iterable[str] = ()) -> Reply:
        return await self.ask(posting(said() if body is None else body, path, headers))

    async def get(self, path: str, *headers: str) -> Reply:
        return await self.ask(spoken(f"GET {path}", headers))


@asynccontextmanager
async def served(*agents: Agent) -> AsyncIterator[Place]:
    config = Config(node=NodeConfig(port=0), serve=ServeConfig(body_bytes_max=BODY_BYTES_MAX))
    async with Node(agents or [Agent("echo", echo)], config) as node:
        yield Place(node)


def said(text: str = "hello", method: str = "SendMessage", id: str = "1", **params: Any) -> bytes:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}
    spelled = json.dumps(params or {"message": message})
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{spelled}}}'.encode()


def spoken(line: str, headers: Iterable[str] = (), body: bytes = b"") -> bytes:
    head = "\r\n".join([f"{line} HTTP/1.1", "Host: here", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def posting(body: bytes, path: str = "/", headers: Iterable[str] = ()) -> bytes:
    told = [*headers, f"Content-Length: {len(body)}"]
    if not any(one.lower().startswith("content-type:") for one in told):
        told.append("Content-Type: application/json")
    return spoken(f"POST {path}", told, body)


# Versions (§3.6): exactly Major.Minor, in a header or the address, contradictions refused.


@pytest.mark.parametrize("version", ["1.0", " 1.0 ", "1.0.0", "1.0.1", ""])
async def test_a_version_that_is_spoken_here_is_answered(version: str) -> None:
    """Patch digits should not be sent and do not count (§3.6)."""
    async with served() as place:
        assert (await place.post(headers=[f"A2A-Version: {version}"])).text == "hello"


@pytest.mark.parametrize("version", ["1.7", "0.4", "2.0", "99.0", "1", "1.0.0.0", "one", "-1.0", "\xb9.0"])
async def test_a_version_that_is_not_spoken_here_is_refused(version: str) -> None:
    async with served() as place:
        by_header = await place.post(headers=[f"A2A-Version: {version}"])
        assert (by_header.status, by_header.reason) == (200, "VERSION_NOT_SUPPORTED")
        assert by_header.json["id"] == 1
        assert by_header.error["data"][0]["metadata"]["supported"] == "1.0,0.3,0.2,0.1"


@pytest.mark.parametrize("name", ["A2A-Version", "a2a-version"])
async def test_the_version_may_stand_in_the_address(name: str) -> None:
    """Names of service parameters are not case-sensitive (§3.2.6)."""
    async with served() as place:
        assert (await place.post(path=f"/?{name}=1.0")).text == "hello"
        assert (await place.post(path=f"/?{name}=0.4")).reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/?A2A-Version=0.3", ["A2A-Version: 1.0"]),
        ("/?A2A-Version=1.0", ["A2A-Version: 0.3"]),
        ("/?A2A-Version=1.0&A2A-Version=0.3", []),
        ("/", ["A2A-Version: 1.0", "A2A-Version: 0.3"]),
        ("/", ["A2A-Version: 0.3", "A2A-Version: 1.0"]),
    ],
)
async def test_two_versions_that_contradict_each_other_are_refused(path: str, headers: list[str]) -> None:
    async with served() as place:
        assert (await place.post(path=path, headers=headers)).reason == "INVALID_REQUEST"


async def test_one_version_said_twice_is_one_version() -> None:
    async with served() as place:
        answer = await place.post(
            path="/?A2A-Version=1.0.1", headers=["A2A-Version: 1.0", "A2A-Version: 1.0"]
        )
        assert answer.text == "hello"


async def test_the_version_is_judged_before_what_only_a_version_can_explain() -> None:
    """Whoever speaks 2.0 learns that, and not that its method is unknown."""
    async with served() as place:
        other = await place.post(said(method="message/say"), headers=["A2A-Version: 2.0"])
        assert (other.reason, other.json["id"]) == ("VERSION_NOT_SUPPORTED", 1)
        assert (await place.post(said(method="message/say"))).reason == "METHOD_NOT_FOUND"


@pytest.mark.parametrize(("version", "method"), [("0.3", "SendMessage"), ("1.0", "message/send")])
async def test_a_method_of_another_version_than_the_one_said_is_not_found(version: str, method: str) -> None:
    async with served() as place:
        answer = await place.post(said(method=method), headers=[f"A2A-Version: {version}"])
        assert answer.reason == "METHOD_NOT_FOUND"
        assert f"it is of {'1.0' if version == '0.3' else '0.3'}" in answer.error["message"]


# Operations that are not here (§3.3.4).


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("CreateTaskPushNotificationConfig", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GetTaskPushNotificationConfig", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("ListTaskPushNotificationConfigs", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("DeleteTaskPushNotificationConfig", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GetExtendedAgentCard", "UNSUPPORTED_OPERATION"),
        ("sendmessage", "METHOD_NOT_FOUND"),
        ("", "METHOD_NOT_FOUND"),
    ],
)
async def test_an_operation_that_is_not_here_is_refused_by_its_own_error(method: str, reason: str) -> None:
    async with served() as place:
        assert (await place.post(said(method=method))).reason == reason


async def test_an_agent_that_does_not_stream_refuses_streams_in_one_plain_answer() -> None:
    async with served(Agent("still", echo, streaming=False)) as place:
        refused = await place.post(said(method="SendStreamingMessage"))
        assert refused.headers["content-type"] == "application/json"
        assert refused.reason == "UNSUPPORTED_OPERATION"


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("SubscribeToTask", "application/json"),
        # Clients of 0.2 and 0.3 (a2a-sdk, @a2a-js/sdk) read nothing but a stream where they asked for one.
        ("tasks/resubscribe", "text/event-stream"),
        ("tasks/get", "application/json"),
    ],
)
async def test_a_stream_that_is_refused_is_told_so_where_its_caller_reads(method: str, kind: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "nobody"}}
    async with served() as place:
        answer = await place.post(json.dumps(asked).encode())
        assert answer.headers["content-type"] == kind
        told = json.loads(answer.body.removeprefix(b"data: "))
        assert (told["id"], told["error"]["code"]) == (1, -32001)


# Extensions (§4.6).

REQUIRED = Extension("https://example.com/needed/v1", required=True)


@pytest.mark.parametrize(
    "headers",
    [
        ["A2A-Extensions: https://example.com/needed/v1"],
        ["a2a-extensions: https://example.com/other,https://example.com/needed/v1"],
        ["A2A-Extensions: https://example.com/needed/v1", "A2A-Extensions: https://example.com/other"],
    ],
)
async def test_a_required_extension_is_found_wherever_the_list_names_it(headers: list[str]) -> None:
    """One list may come on several lines (RFC 9110, 5.3)."""
    async with served(Agent("strict", echo, extensions=[REQUIRED])) as place:
        assert (await place.post(headers=headers)).text == "hello"


@pytest.mark.parametrize("headers", [[], ["A2A-Extensions:"], ["A2A-Extensions: https://example.com/needed"]])
async def test_a_required_extension_that_is_not_named_is_an_error(headers: list[str]) -> None:
    async with served(Agent("strict", echo, extensions=[REQUIRED])) as place:
        assert (await place.post(headers=headers)).reason == "EXTENSION_SUPPORT_REQUIRED"


async def test_extensions_nobody_knows_are_ignored() -> None:
    async with served() as place:
        assert (await place.post(headers=["A2A-Extensions: https://example.com/unheard-of"])).text == "hello"


# The card (§8.2, §8.6).


@pytest.mark.parametrize("path", [CARD, OLD_CARD, f"/agents/echo{CARD}", f"/agents/echo{OLD_CARD}"])
async def test_the_card_is_at_both_well_known_places(path: str) -> None:
    async with served() as place:
        card = await place.get(path)
        assert (card.status, card.json["name"]) == (200, "echo")
        assert card.headers["content-type"] == "application/json"
        assert {"etag", "last-modified", "cache-control"} <= card.headers.keys()


async def test_of_several_agents_each_has_its_own_card_and_the_first_the_root() -> None:
    async with served(Agent("one", echo), Agent("two", echo)) as place:
        assert (await place.get(CARD)).json["name"] == "one"
        assert (await place.get(f"/agents/two{CARD}")).json["name"] == "two"
        way = (await place.get(f"/agents/two{CARD}")).json["supportedInterfaces"][0]
        path = way["url"].split(str(place.port), 1)[1]
        assert (await place.post(path=path)).text == "hello"


async def test_an_agent_with_an_odd_name_is_found_where_the_index_says() -> None:
    async with served(Agent("echo", echo), Agent("zwei Wörter", echo)) as place:
        [_, odd] = (await place.get("/")).json["agents"]
        interface = (await place.get(odd["card"])).json["supportedInterfaces"][0]
        assert interface["url"].isascii() and " " not in interface["url"]
        assert (await place.post(path=f"/agents/{odd['card'].split('/')[2]}")).text == "hello"


async def test_a_card_that_is_known_already_is_not_sent_again() -> None:
    async with served() as place:
        etag = (await place.get(CARD)).headers["etag"]
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = await place.get(CARD, f"If-None-Match: {known}")
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
        on_two_lines = await place.get(CARD, 'If-None-Match: "other"', f"If-None-Match: {etag}")
        assert on_two_lines.status == 304
        for unknown in ('"other"', etag.strip('"')):
            assert (await place.get(CARD, f"If-None-Match: {unknown}")).status == 200


async def test_the_head_of_a_card_is_that_of_the_card() -> None:
    async with served() as place:
        whole = await place.get(CARD)
        head = await place.ask(spoken(f"HEAD {CARD}"), has_body=False)
        assert head.status == 200
        assert {**head.headers, "date": ""} == {**whole.headers, "date": ""}


# Methods and paths.


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/", "GET, HEAD, POST"),
        ("DELETE", "/agents/echo", "POST"),
        ("GET", "/agents/echo", "POST"),
        ("OPTIONS", "/", "GET, HEAD, POST"),
        ("POST", CARD, "GET, HEAD"),
        ("DELETE", OLD_CARD, "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    async with served() as place:
        answer = await place.ask(spoken(f"{method} {path}", ["Content-Length: 0"]))
        assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path", ["/agents/nobody", "/agents", f"/{CARD}", "/agents/../healthz", "/%00", "/x" * 500]
)
async def test_there_is_nothing_at_other_paths(path: str) -> None:
    async with served() as place:
        assert (await place.get(path)).status == 404
        assert (await place.post(path=path)).status == 404


# Bodies.


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/a2a+json"],
)
async def test_json_is_taken_under_each_of_its_names(kind: str) -> None:
    async with served() as place:
        assert (await place.post(headers=[f"Content-Type: {kind}"])).text == "hello"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x", "json", ""]
)
async def test_other_media_types_are_refused_before_the_body_is_read(kind: str) -> None:
    async with served() as place:
        refused = await place.post(b"{'not': json", headers=[f"Content-Type: {kind}"])
        assert (refused.status, refused.reason) == (200, "CONTENT_TYPE_NOT_SUPPORTED")


async def test_a_packed_body_is_refused() -> None:
    async with served() as place:
        refused = await place.post(gzip.compress(said()), headers=["Content-Encoding: gzip"])
        assert refused.reason == "CONTENT_TYPE_NOT_SUPPORTED"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_body_in_chunks_is_one_body(size: int) -> None:
    body = said("in pieces")
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    headers = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
    async with served() as place:
        assert (await place.ask(spoken("POST /", headers, chunked))).text == "in pieces"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_beyond_the_limit_is_refused_before_all_of_it_has_come(is_chunked: bool) -> None:
    headers = ["Content-Type: application/json"]
    headers.append("Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {BODY_BYTES_MAX * 100}")
    piece = b" " * (BODY_BYTES_MAX + 1)
    begun = b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else b"{"
    async with served() as place:
        refused = await place.ask(spoken("POST /", headers, begun))
        assert (refused.status, refused.reason) == (413, "TOO_LARGE")
        assert (await place.post()).text == "hello"


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: -5"],
        ["Transfer-Encoding: gzip, identity"],
    ],
)
async def test_a_body_whose_end_is_doubtful_ends_the_connection(headers: list[str]) -> None:
    """Two readers that differ about where a request ends can be made to see different requests."""
    async with served() as place, place.wire() as wire:
        wire.say(spoken("POST /", ["Content-Type: application/json", *headers], said()))
        assert (await wire.hear()).status == 400
        assert await wire.is_ended()


@pytest.mark.parametrize(
    "raw", [b"\x16\x03\x01\x00\xff" * 20, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n\r\nhi\r\n\r\n"]
)
async def test_what_is_not_http_is_told_so_and_left(raw: bytes) -> None:
    async with served() as place, place.wire() as wire:
        wire.say(raw)
        assert (await wire.hear()).status == 400
        assert await wire.is_ended()


async def test_requests_sent_without_waiting_are_answered_in_their_order() -> None:
    stream = said("streamed", "SendStreamingMessage", '"s"')
    async with served() as place, place.wire() as wire:
        wire.say(posting(said("first")) + posting(stream) + posting(said("third")) + spoken(f"GET {CARD}"))
        assert (await wire.hear()).text == "first"
        streamed = await wire.hear()
        assert streamed.headers["content-type"] == "text/event-stream"
        assert b'"id":"s"' in streamed.body
        assert (await wire.hear()).text == "third"
        assert (await wire.hear()).json["name"] == "echo"


async def test_an_answer_is_not_held_back_until_the_last_one_was_acknowledged() -> None:
    """An answer is two small writes: with Nagle's algorithm the second waits 40 ms for most clients."""
    async with served() as place, place.wire() as wire:
        wire.say(posting(said()))
        await wire.hear()
        [connection] = place.node._listening.connections
        there = connection.transport.get_extra_info("socket")
        assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_large_headers_that_mean_nothing_here_do_no_harm() -> None:
    async with served() as place:
        many = [f"X-{number}: y" for number in range(500)]
        assert (await place.post(headers=["X-Long: " + "y" * 20_000, *many])).text == "hello"


@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_head_that_is_too_large_is_refused_before_it_ends(pieces: int) -> None:
    """Ours: 32 kB. Otherwise one connection could fill the memory with a single header."""
    async with served() as place, place.wire() as wire:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 400_000
        size = len(head) // pieces + 1
        for at in range(0, len(head), size):
            wire.say(head[at : at + size])
            await asyncio.sleep(0)
        wire.say(b"\r\n\r\n")
        assert (await wire.hear()).status == 431


async def test_empty_lines_after_a_request_do_not_keep_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.2)
    async with served() as place, place.wire() as wire:
        wire.say(posting(said()))
        assert (await wire.hear()).text == "hello"
        wire.say(b"\r\n")
        assert (await wire.hear()).status == 408


async def test_a_body_that_hardly_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "BODY_SECONDS", 0.2)
    async with served() as place, place.wire() as wire:
        wire.say(posting(said())[:-5])
        assert (await wire.hear()).status == 408
        assert await wire.is_ended()


async def test_an_answer_that_nobody_takes_does_not_keep_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heads, "STALL_SECONDS", 0.2)
    many = Agent("many", lambda turn: "x" * 8_000_000)
    async with served(many) as place, place.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        wire.say(posting(said()))
        open_ones = place.node._listening.connections
        async with asyncio.timeout(READ_SECONDS_MAX):
            while not open_ones:
                await asyncio.sleep(0.01)
            while open_ones:
                await asyncio.sleep(0.01)


# Ids of requests (JSON-RPC 2.0, 4).


@pytest.mark.parametrize(
    "id", ['"a"', '""', '"\\u00e9\\n"', "0", "-1", "9007199254740993", '"' + "x" * 10_000 + '"']
)
async def test_an_id_comes_back_as_it_was_sent(id: str) -> None:
    async with served() as place:
        answer = await place.post(said(id=id))
        assert answer.body.startswith(b'{"jsonrpc":"2.0","id":%b,' % id.encode())
        assert answer.text == "hello"


@pytest.mark.parametrize(
    "id", ["null", "1.5", "1e3", "true", "[1]", "{}", "1" * 30, '"' + "x" * 20_000 + '"']
)
async def test_an_id_that_is_none_is_an_invalid_request(id: str) -> None:
    async with served() as place:
        refused = await place.post(said(id=id))
        assert (refused.json["id"], refused.reason) == (None, "INVALID_REQUEST")


@pytest.mark.parametrize(
    "body", [b"[]", b"[{}]", b'"x"', b"null", b"17", b"{}", b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}']
)
async def test_json_that_is_no_request_is_an_invalid_request(body: bytes) -> None:
    async with served() as place:
        refused = await place.post(body)
        assert (refused.status, refused.error["code"]) == (200, -32600)


@pytest.mark.parametrize("body", [b"", b"{", b"hello", b"\xff\xfe", b'{"jsonrpc":"2.0",}'])
async def test_a_body_that_is_not_json_is_a_parse_error(body: bytes) -> None:
    async with served() as place:
        refused = await place.post(body)
        assert (refused.status, refused.error["code"], refused.json["id"]) == (200, -32700, None)


# Headers of ours.


@pytest.mark.parametrize("key", ["k" * 257, "\xc3\xa9"])
async def test_an_idempotency_key_is_short_and_plain(key: str) -> None:
    async with served() as place:
        assert (await place.post(headers=[f"Idempotency-Key: {key}"])).reason == "INVALID_PARAMS"


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "1, 2", "9" * 40])
async def test_a_cursor_is_a_whole_number(cursor: str) -> None:
    async with served() as place:
        stream = said(method="SendStreamingMessage")
        refused = await place.post(stream, headers=[f"Last-Event-ID: {cursor}"])
        assert refused.headers["content-type"] == "application/json"
        assert refused.reason == "INVALID_PARAMS"


async def test_a_stream_says_how_it_is_to_be_treated() -> None:
    async with served() as place:
        streamed = await place.post(said(method="SendStreamingMessage"))
        assert streamed.headers["content-type"] == "text/event-stream"
        assert streamed.headers["cache-control"] == "no-store"
        lines = [
            json.loads(line[6:]) for line in streamed.body.decode().split("\n") if line.startswith("data: ")
        ]
        assert {line["id"] for line in lines} == {1}
        assert [next(iter(line["result"])) for line in lines] == [
            "task",
            "statusUpdate",
            "artifactUpdate",
            "statusUpdate",
        ]
