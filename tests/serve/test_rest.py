"""REST as peers really ask it: with and without /v1, by GET and by POST, in three forms of 0.3, with odd headers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Agent, Node, Turn
from dragoman.app.config import load
from dragoman.model.errors import ERRORS
from tests.serve.test_http import Place, Reply, spoken

A2A_JSON, JSON = "application/a2a+json", "application/json"


async def clerk(turn: Turn) -> Any:
    match turn.text.split(" "):
        case ["ask"]:
            return (await turn.ask("which?")).text
        case ["bytes"]:
            return b"hi"
        case _:
            return turn.text


@asynccontextmanager
async def served(*agents: Agent, **settings: Any) -> AsyncIterator[Place]:
    flags = {
        "node.port": 0,
        "node.drain_seconds": 0.0,
        **{f"serve.{name}": it for name, it in settings.items()},
    }
    async with Node(agents or [Agent("clerk", clerk)], load(environ={}, flags=flags)) as node:
        yield Place(node)


def newest(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def kind(text: str = "hello", **more: Any) -> dict[str, Any]:
    part = {"kind": "text", "text": text}
    return {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [part], **more}}


def proto(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}], **more}}


async def ask(place: Place, line: str, body: Any = None, *headers: str) -> Reply:
    if body is None:
        return await place.ask(spoken(line, headers))
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = [*headers, f"Content-Length: {len(said)}"]
    if not any(one.lower().startswith("content-type") for one in told):
        told.append(f"Content-Type: {JSON}")
    return await place.ask(spoken(line, told, said))


async def opened(place: Place, text: str = "ask") -> str:
    return str((await ask(place, "POST /message:send", newest(text))).json["task"]["id"])


# Versions and forms.


@pytest.mark.parametrize(
    ("line", "body", "headers", "shows"),
    [
        ("POST /message:send", newest(), (), {"task", "TASK_STATE_COMPLETED", "parts"}),
        ("POST /message:send", newest(), ("A2A-Version: 1.0",), {"task", "TASK_STATE_COMPLETED", "parts"}),
        ("POST /v1/message:send", newest(), ("A2A-Version: 1.0",), {"task", "TASK_STATE_COMPLETED", "parts"}),
        ("POST /v1/message:send", proto(), (), {"task", "TASK_STATE_COMPLETED", "content"}),
        (
            "POST /v1/message:send",
            proto(),
            ("A2A-Version: 0.3",),
            {"task", "TASK_STATE_COMPLETED", "content"},
        ),
        ("POST /message:send", proto(), (), {"task", "TASK_STATE_COMPLETED", "content"}),
        ("POST /v1/message:send", newest(), (), {"task", "TASK_STATE_COMPLETED", "content"}),
        ("POST /v1/message:send", kind(), (), {"kind", "completed", "parts"}),
        ("POST /v1/message:send", kind(), ("A2A-Version: 0.3",), {"kind", "completed", "parts"}),
        ("POST /message:send", kind(), (), {"kind", "completed", "parts"}),
    ],
)
async def test_who_asks_in_a_form_is_answered_in_it(
    line: str, body: Any, headers: tuple[str, ...], shows: set[str]
) -> None:
    """The version said decides, then the path, then how the body is spelled."""
    async with served() as place:
        answer = await ask(place, line, body, *headers)
        assert answer.status == 200
        value = answer.json
        task = value["task"] if "task" in shows else value
        assert ("task" in value) == ("task" in shows)
        assert task.get("kind") == ("task" if "kind" in shows else None)
        assert task["status"]["state"] in shows
        assert ("content" in task["history"][0]) == ("content" in shows)


async def test_a_task_opened_in_kind_json_is_read_in_it_though_nothing_shows_it() -> None:
    async with served() as place:
        task = (await ask(place, "POST /v1/message:send", kind())).json
        assert (await ask(place, f"GET /v1/tasks/{task['id']}")).json["kind"] == "task"
        assert (await ask(place, f"GET /v1/tasks/{task['id']}", None, "A2A-Version: 0.3")).json[
            "kind"
        ] == "task"
        # Who says 1.0 gets 1.0.
        assert "kind" not in (await ask(place, f"GET /tasks/{task['id']}", None, "A2A-Version: 1.0")).json
        other = (await ask(place, "POST /v1/message:send", proto())).json["task"]
        assert "kind" not in (await ask(place, f"GET /v1/tasks/{other['id']}")).json


@pytest.mark.parametrize(("setting", "spelled"), [("twice", "YUdrPQ=="), ("once", "aGk=")])
async def test_bytes_of_0_3_are_put_into_base64_as_often_as_is_set(setting: str, spelled: str) -> None:
    async with served(bytes_0_3=setting) as place:
        answer = (await ask(place, "POST /v1/message:send", proto("bytes"))).json
        assert answer["task"]["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == spelled
        newer = (await ask(place, "POST /message:send", newest("bytes"))).json
        assert newer["task"]["artifacts"][0]["parts"][0]["raw"] == "aGk="


@pytest.mark.parametrize(("encoded", "spelled"), [("AP8Q", "aGk="), ("QVA4UQ==", "YUdrPQ==")])
async def test_who_puts_bytes_into_base64_once_gets_them_so(encoded: str, spelled: str) -> None:
    """In 0.3 some do so and some do it twice; what one is sent shows it, and for its task it is remembered."""
    async with served() as place:
        asked = proto("bytes")
        asked["message"]["content"].append({"file": {"fileWithBytes": encoded}})
        task = (await ask(place, "POST /v1/message:send", asked)).json["task"]
        read = (await ask(place, f"GET /v1/tasks/{task['id']}")).json
        for one in (task, read):
            assert one["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == spelled


async def test_a_configuration_of_0_3_that_does_not_say_blocking_does_not_wait() -> None:
    """Protobuf leaves out what is false. Without any configuration the answer is waited for."""
    async with served() as place:
        at_once = await ask(place, "POST /v1/message:send", {**proto("ask"), "configuration": {}})
        assert at_once.json["task"]["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
        waited = await ask(place, "POST /v1/message:send", proto("ask"))
        assert waited.json["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


@pytest.mark.parametrize("version", ["0.1", "2.0"])
async def test_a_version_that_is_not_spoken_over_rest_is_refused(version: str) -> None:
    async with served() as place:
        refused = await ask(place, "POST /message:send", newest(), f"A2A-Version: {version}")
        assert refused.status == 400
        assert refused.error["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


# Addresses.


@pytest.mark.parametrize("prefix", ["", "/v1", "/agents/clerk", "/agents/clerk/v1"])
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_subscription_is_opened_by_get_and_by_post(prefix: str, verb: str) -> None:
    async with served() as place:
        task = await opened(place)
        # To a task that is over there is no subscription, and the refusal shows that it was understood.
        await ask(place, f"POST /tasks/{task}:cancel")
        answer = await ask(place, f"{verb} {prefix}/tasks/{task}:subscribe")
        assert answer.status == 400
        said = answer.json
        assert "UNSUPPORTED_OPERATION" in json.dumps(said)


@pytest.mark.parametrize(
    "line", ["GET /acme/tasks/{id}", "GET /acme/v1/tasks/{id}", "GET /tasks/{id}?tenant=acme"][::2]
)
async def test_a_tenant_in_the_path_is_the_requests(line: str) -> None:
    async with served() as place:
        sent = await ask(place, "POST /acme/message:send", newest())
        task = sent.json["task"]["id"]
        assert (await ask(place, line.format(id=task))).json["id"] == task
        assert (await ask(place, f"GET /tasks/{task}")).status == 404
        assert (await ask(place, f"GET /other/tasks/{task}")).status == 404


async def test_a_tenant_that_is_said_in_two_ways_is_said_alike() -> None:
    async with served() as place:
        assert (await ask(place, "POST /acme/message:send", {**newest(), "tenant": "acme"})).status == 200
        refused = await ask(place, "POST /acme/message:send", {**newest(), "tenant": "other"})
        assert (refused.status, refused.error["details"][0]["reason"]) == (400, "INVALID_PARAMS")
        task = await opened(place)
        other = await ask(place, f"POST /tasks/{task}:cancel", {"id": "another"})
        assert (other.status, other.error["details"][1]["fieldViolations"][0]["field"]) == (400, "id")


async def test_an_id_in_the_path_may_hold_anything_that_is_escaped() -> None:
    async with served() as place:
        for id in ("a%2Fb", "%C3%BC", "a%3Acancel", "a%20b"):
            assert (await ask(place, f"GET /tasks/{id}")).status == 404


@pytest.mark.parametrize(
    ("line", "allow"),
    [
        ("DELETE /tasks", "GET"),
        ("PUT /tasks/t", "GET"),
        ("GET /message:send", "POST"),
        ("GET /tasks/t:cancel", "POST"),
        ("PUT /tasks/t:subscribe", "GET, POST"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_refused_with_those_it_has(line: str, allow: str) -> None:
    async with served() as place:
        refused = await ask(place, line)
        assert (refused.status, refused.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1", "/v2/x", "/a/b/tasks", "/tasks/a/b", "/agents/nobody/tasks/x/y"]
)
async def test_a_path_that_is_none_is_not_found(path: str) -> None:
    async with served() as place:
        assert (await ask(place, f"GET {path}")).status == 404


async def test_0_3_has_no_list() -> None:
    async with served() as place:
        assert (await ask(place, "GET /v1/tasks")).status == 404
        assert (await ask(place, "GET /tasks")).status == 200


# What is asked beside.


async def test_values_of_the_query_are_read_as_what_they_are() -> None:
    async with served() as place:
        task = await opened(place, "hello")
        for query, length in (("historyLength=0", 0), ("history_length=1", 1), ("historyLength=&x=1", 1)):
            found = (await ask(place, f"GET /tasks/{task}?{query}")).json
            assert len(found.get("history", ())) == length
        listed = (
            await ask(place, "GET /tasks?pageSize=1&includeArtifacts=true&status=TASK_STATE_COMPLETED")
        ).json
        assert listed["tasks"][0]["artifacts"]
        assert "artifacts" not in (await ask(place, "GET /tasks?includeArtifacts=false")).json["tasks"][0]


@pytest.mark.parametrize("query", ["historyLength=-1", "historyLength=x", "historyLength=1.5"])
async def test_a_value_of_the_query_that_does_not_fit_is_refused(query: str) -> None:
    async with served() as place:
        task = await opened(place, "hello")
        for path in (f"/tasks/{task}", f"/v1/tasks/{task}"):
            refused = await ask(place, f"GET {path}?{query}")
            assert (refused.status, "INVALID_PARAMS" in refused.body.decode()) == (400, True)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", A2A_JSON),
        ("*/*", A2A_JSON),
        (JSON, JSON),
        (A2A_JSON, A2A_JSON),
        (f"{JSON}, {A2A_JSON}", A2A_JSON),
        ("text/html, application/json;q=0.9", JSON),
    ],
)
async def test_the_media_type_is_the_one_that_is_asked_for(accept: str, kind: str) -> None:
    async with served() as place:
        headers = [f"Accept: {accept}"] if accept else []
        for answer in (
            await ask(place, "POST /message:send", newest(), *headers),
            await ask(place, "GET /tasks/none", None, *headers),
        ):
            assert answer.headers["content-type"] == kind


async def test_both_media_types_are_taken_and_others_are_not() -> None:
    async with served() as place:
        for kind in (JSON, A2A_JSON, f"{JSON}; charset=utf-8"):
            assert (await ask(place, "POST /message:send", newest(), f"Content-Type: {kind}")).status == 200
        refused = await ask(place, "POST /message:send", newest(), "Content-Type: text/plain")
        assert (refused.status, refused.error["details"][0]["reason"]) == (400, "CONTENT_TYPE_NOT_SUPPORTED")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"{}", b'{"message":{}}'])
async def test_a_body_that_is_no_request_is_refused_with_its_place(body: bytes) -> None:
    async with served() as place:
        refused = await ask(place, "POST /message:send", body)
        assert refused.status == 400
        assert refused.error["status"] == "INVALID_ARGUMENT"


# Errors.


@pytest.mark.parametrize("edition", ["1.0.1", "1.0.0"])
async def test_the_statuses_are_those_of_the_edition_that_is_set(edition: str) -> None:
    async with served(statuses=edition) as place:
        done = await opened(place, "hello")
        row = ERRORS["TaskNotCancelable"]
        over = await ask(place, f"POST /tasks/{done}:cancel")
        assert over.status == (row.http_1_0 if edition == "1.0.0" else row.http)
        assert over.headers["content-type"] == (JSON if edition == "1.0.0" else A2A_JSON)
        push = await ask(place, f"GET /tasks/{done}/pushNotificationConfigs")
        assert (push.status, push.error["status"]) == (
            400,
            "UNIMPLEMENTED" if edition == "1.0.0" else "FAILED_PRECONDITION",
        )
        # Whichever it is, the reason says what it means.
        assert over.error["details"][0]["reason"] == "TASK_NOT_CANCELABLE"


async def test_an_error_of_0_3_is_read_by_its_code_and_by_its_name_and_by_that_of_1_0() -> None:
    async with served() as place:
        refused = (await ask(place, "GET /v1/tasks/none")).json
        assert (refused["code"], refused["type"]) == (-32001, "TaskNotFoundError")
        assert refused["message"] == refused["error"]["message"]
        assert refused["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"


# Streams.


async def test_a_stream_says_bare_events_with_their_places() -> None:
    async with served() as place, place.wire() as wire:
        body = json.dumps(newest()).encode()
        wire.say(
            spoken(
                "POST /message:stream",
                [f"Content-Length: {len(body)}", f"Content-Type: {JSON}", "Connection: close"],
                body,
            )
        )
        raw = (await wire.reader.read()).decode()
        assert "content-type: text/event-stream" in raw
        told = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: ")]
        assert [next(iter(one)) for one in told] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
        assert [line for line in raw.splitlines() if line.startswith("id: ")] == [
            f"id: {n}" for n in (1, 2, 3, 4)
        ]
