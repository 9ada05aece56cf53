"""Any bytes at all are read, or refused by an error of the table: by every codec, and never in another way.

Bodies are made of what is spelled right, bent in one or two places: what is drawn blindly is refused at the door.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dragoman.core.tasks import TERMINAL
from dragoman.model.card import Capabilities, Card, Extension, Interface, Provider, Signature, Skill
from dragoman.model.errors import ERRORS, AgentError
from dragoman.model.events import ArtifactChanged, Logged, Replied, StatusChanged, TaskCreated, encode
from dragoman.model.operations import OPERATIONS, Cancel, Configuration, Get, List, Request, Send, Subscribe
from dragoman.model.peer import Answer
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task, replace
from dragoman.wire.cards import HYBRID, read_card, spell_card
from dragoman.wire.kind_json import BOTH, TYPE
from dragoman.wire.versions import DIALECTS, SPOKEN
from tests.wire.values import PATIENT, SCHEMES, new_id

CODECS: dict[int, Any] = {
    id(codec): pytest.param(codec, id=name)
    for name, codec in (
        *((f"{version} over {binding}", row.codec) for (binding, version), row in DIALECTS.items()),
        ("both marks", BOTH),
        ("the elder mark", TYPE),
    )
}
BY_EVERY_CODEC = pytest.mark.parametrize("codec", CODECS.values())
OPERATIONS_OF = {
    id(codec.values[0]): {
        name
        for dialect in DIALECTS.values()
        for name, operation in OPERATIONS.items()
        if dialect.codec is codec.values[0] and dialect.name_of(operation)
    }
    or {"send", "stream"}
    for codec in CODECS.values()
}
OF_CALLERS = {"ParseError", "InvalidParams"}
OF_PEERS = {"InvalidAgentResponse"}

# Values in which every member is there.
PARTS = (
    Part(text="hi", metadata={"k": [1]}, media_type="text/plain"),
    Part(raw=b"abcd", filename="a.bin", media_type="application/x"),
    Part(url="https://a.example/b", filename="b"),
    Part(data=[1, None]),
    Part(data={"data": 1}, metadata={"data_part_compat": False}),
)
SAID = Message("m1", Role.USER, PARTS, "c1", "t1", {"k": {}}, ("urn:e",), ("t0",))
TASK = Task(
    "t1",
    Status(State.CANCELED, replace(SAID, role=Role.AGENT), "2026-01-31T12:00:00.000Z"),
    "c1",
    (Artifact("a1", PARTS, "n", "d", {"k": 1}, ("urn:e",)), Artifact("a2", PARTS[:1])),
    (SAID,),
    {"k": None},
)
WEBHOOK = {"id": "w", "url": "https://w.example/", "token": "x", "authentication": {"scheme": "Bearer"}}
REQUESTS: dict[str, Request] = {
    "send": Send(SAID, Configuration(("text/plain",), 3, True, WEBHOOK), {"k": 1}, "a"),
    "stream": Send(replace(SAID, parts=PARTS[:1], metadata=None, extensions=(), reference_task_ids=())),
    "get": Get("t1", 3, "a"),
    "list": List("c1", State.WORKING, "2026-01-31T12:00:00.000Z", 10, "p", 3, True, "a"),
    "cancel": Cancel("t1", {"k": 1}, "a"),
    "subscribe": Subscribe("t1", "a"),
}
EVENTS = (
    TaskCreated(TASK),
    Replied(SAID),
    StatusChanged.of("t1", "c1", TASK.status, {"k": 1}),
    ArtifactChanged.of("t1", "c1", TASK.artifacts[0], True, True, {"k": 1}),
)
NEEDS = ({"schemes": {name: {"list": ["read"]} for name in SCHEMES}},)
CARD = Card(
    "n",
    "d",
    (Interface("https://a.example/", "JSONRPC", "1.0", "a"), Interface("rest", "HTTP+JSON", "0.3")),
    "1",
    Capabilities(True, False, (Extension("urn:e", "d", True, {"k": 1}),), True),
    ("text/plain",),
    ("text/plain",),
    (Skill("s", "S", "d", ("tag",), ("do",), ("text/plain",), ("image/png",), NEEDS),),
    Provider("https://p.example/", "P"),
    "https://docs.example/",
    SCHEMES,
    NEEDS,
    (Signature("e30", "c2ln", {"k": 1}),),
    "https://a.example/icon.png",
)

# What a member may be instead. Lists and objects are what a look-up by value cannot take.
WORDS = re.findall(
    r"\S+", "x 5 user text file data working TASK_STATE_CANCELLED YQ YQ= 2026-01-31T12:00:00 yesterday"
)
NUMBERS = [0, 1, -1, 6, 9, 2**31, 2**70, 10**400, 1.5]
LISTS = [[], [[]], [None], [{}], ["x"]]
OBJECTS = [{}, {"": None}, {"a": {"a": []}}, {"schemes": {"a": {"list": ["x"]}}}, {"type": {}}, {"state": []}]
AWKWARD = st.sampled_from([None, True, "", *WORDS, *NUMBERS, *LISTS, *OBJECTS])
NAMES = st.sampled_from(
    re.findall(
        r"\S+",
        """kind type id name message msg task statusUpdate artifactUpdate artifact status state final parts content
        text file data raw url bytes uri fileWithBytes metadata index history artifacts sessionId session_id
        contextId context_id taskId configuration historyLength pushNotificationConfig authentication schemes
        tokenUrl securitySchemes security supportedInterfaces additionalInterfaces skills capabilities timestamp
        mimeType urn:dragoman:part data_part_compat""",
    )
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


@st.composite
def bent(draw: st.DrawFn, spelled: bytes) -> bytes:
    """These bytes with a member replaced, taken away or added; or cut."""
    tree = [msgspec.json.decode(spelled)]
    for _ in range(draw(st.integers(0, 3))):
        *outer, last = draw(st.sampled_from(list(places(tree))[1:]))
        node: Any = tree
        for key in outer:
            node = node[key]
        match draw(st.sampled_from(["replace", "replace", "add", "remove", "wrap"])):
            case "replace":
                node[last] = deepcopy(draw(AWKWARD))
            case "wrap":
                node[last] = {draw(NAMES): node[last]}
            case "add" if isinstance(node[last], dict):
                node[last][draw(NAMES)] = deepcopy(draw(AWKWARD))
            case "remove" if isinstance(node, dict):
                del node[last]
            case _:
                pass
    body = json.dumps(tree[0], ensure_ascii=False).encode()
    return body[: draw(st.integers(0, len(body)))] if draw(st.integers(0, 9)) == 0 else body


BLIND = st.binary(max_size=40) | st.sampled_from(
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'""',
        b"1e999",
        b'{"a":"\\ud800"}',
        b"[" * 5000,
        b'{"a":' * 5000 + b"1",
        b"9" * 5000,
    ]
)


def attempted(read: Callable[[], Any], documented: set[str]) -> Any:
    """What is read; nothing if it is refused as it may be."""
    try:
        return read()
    except AgentError as refused:
        assert refused.name in documented
        assert refused.message
        return None


@BY_EVERY_CODEC
@PATIENT
@given(data=st.data(), name=st.sampled_from(sorted(OPERATIONS)), is_lenient=st.booleans())
def test_any_request_is_read_or_refused(codec: Any, data: st.DataObject, name: str, is_lenient: bool) -> None:
    assume(name in OPERATIONS_OF[id(codec)])
    body = data.draw(bent(codec.spell_request(OPERATIONS[name], REQUESTS[name])) | BLIND)

    def read(body: bytes) -> Any:
        return codec.read_request(OPERATIONS[name], body, new_id, lenient=is_lenient)

    if (found := attempted(lambda: read(body), OF_CALLERS)) is not None:
        assert type(found) is OPERATIONS[name].request
        assert read(codec.spell_request(OPERATIONS[name], found)) is not None


@BY_EVERY_CODEC
@PATIENT
@given(data=st.data(), name=st.sampled_from(["send", "get"]), value=st.sampled_from([TASK, SAID]))
def test_any_answer_is_read_or_refused_and_can_be_given_in_every_version(
    codec: Any, data: st.DataObject, name: str, value: Any
) -> None:
    operation = OPERATIONS[name]
    body = data.draw(bent(codec.spell_reply(operation, Answer(type(value), value), "named")) | BLIND)
    if (found := attempted(lambda: codec.read_reply(operation, body), OF_PEERS)) is not None:
        for dialect in DIALECTS.values():
            assert dialect.codec.spell_reply(operation, found, "named")


@BY_EVERY_CODEC
@PATIENT
@given(data=st.data(), event=st.sampled_from(EVENTS))
def test_any_item_is_read_or_refused_and_can_be_told_in_every_version(
    codec: Any, data: st.DataObject, event: Any
) -> None:
    [(_, spelled)] = codec.teller(TERMINAL, "named")([Logged(1, encode(event), event)])
    body = data.draw(bent(spelled) | BLIND)
    for heard in attempted(lambda: codec.read_item(body), OF_PEERS) or ():
        for dialect in DIALECTS.values():
            assert dialect.codec.teller(TERMINAL, "named")([Logged(1, encode(heard), heard)])


@BY_EVERY_CODEC
@PATIENT
@given(data=st.data(), name=st.sampled_from(sorted(ERRORS)))
def test_any_error_object_is_some_error(codec: Any, data: st.DataObject, name: str) -> None:
    said = codec.spell_error(AgentError(ERRORS[name], at="a.b"))
    try:
        tree = msgspec.json.decode(data.draw(bent(msgspec.json.encode(said)) | BLIND))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    heard = codec.read_error(tree)
    assert heard.row in ERRORS.values()
    assert isinstance(heard.message, str)


@settings(PATIENT, max_examples=400)
@given(data=st.data(), version=st.sampled_from([*SPOKEN, HYBRID]))
def test_any_card_is_read_or_refused_and_can_be_shown_in_every_version(
    data: st.DataObject, version: str
) -> None:
    body = data.draw(bent(spell_card(CARD, version)) | BLIND)
    if (found := attempted(lambda: read_card(body), OF_PEERS)) is not None:
        assert found.supported_interfaces
        for shown in (*SPOKEN, HYBRID):
            assert spell_card(found, shown)
