"""The 1.0 codec against the vectors, and against anything at all: a value, or an error of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model import events
from dragoman.model.card import Card
from dragoman.model.errors import AgentError
from dragoman.model.operations import OPERATIONS, Page
from dragoman.model.task import Message, Task
from dragoman.wire import guard
from dragoman.wire import proto_json_1_0 as codec
from tests.wire.values import new_id

VECTORS = Path(__file__).parent.parent / "vectors" / "codec" / "v1_0"
FILES = [json.loads(path.read_text()) for path in sorted(VECTORS.glob("*.json"))]
CASES = [
    pytest.param(file["kind"], case, id=f"{file['kind']}: {case['name']}")
    for file in FILES
    for case in file["cases"]
]
REJECTS = [
    pytest.param(file["kind"], case, id=f"{file['kind']}: {case['name']}")
    for file in FILES
    for case in file["rejects"]
]
OF_PEERS: dict[str, tuple[type, Callable[[bytes], Any]]] = {
    "task": (Task, codec.decode_task),
    "message": (Message, codec.decode_message),
    "page": (Page, codec.decode_page),
    "card": (Card, codec.decode_card),
}


def spell(wire: Any) -> bytes:
    return json.dumps(wire, ensure_ascii=False).encode()


def value_of(kind: str, model: Any) -> Any:
    """The model value that a vector means: what the model itself reads, without the codec."""
    if kind in OPERATIONS:
        return msgspec.json.decode(spell(model), type=OPERATIONS[kind].request)
    if kind == "stream_item":
        return events.decode(json.dumps(model, separators=(",", ":")).encode())
    return msgspec.json.decode(spell(model), type=OF_PEERS[kind][0])


def decode(kind: str, body: bytes, *, lenient: bool | None = None) -> Any:
    """Guard and codec, as a binding calls them."""
    facts = guard.check(body)
    if kind in OPERATIONS:
        return codec.read_request(
            OPERATIONS[kind], body, new_id, lenient=facts.lenient if lenient is None else lenient
        )
    if kind == "stream_item":
        return codec.decode_stream_item(body)
    return OF_PEERS[kind][1](body)


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_a_value_is_written_as_its_vector_says_and_read_back(kind: str, case: dict[str, Any]) -> None:
    value = value_of(kind, case["model"])
    written = (
        codec.spell_request(OPERATIONS[kind], value) if kind in OPERATIONS else msgspec.json.encode(value)
    )
    assert json.loads(written) == case["model"]
    assert decode(kind, written) == value
    assert decode(kind, written, lenient=True) == value


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_other_spellings_of_a_value_read_the_same(kind: str, case: dict[str, Any]) -> None:
    for wire in case.get("reads", []):
        assert decode(kind, spell(wire)) == value_of(kind, case["model"]), wire
        assert decode(kind, spell(wire), lenient=True) == value_of(kind, case["model"]), wire


@pytest.mark.parametrize(("kind", "case"), REJECTS)
def test_what_is_wrong_is_refused_at_its_place(kind: str, case: dict[str, Any]) -> None:
    for lenient in (None, True):
        with pytest.raises(AgentError) as refused:
            decode(kind, spell(case["wire"]), lenient=lenient)
        assert refused.value.name == case["error"]
        assert refused.value.at == case["at"]
        assert refused.value.message


def test_parameters_are_read_where_they_stand_in_an_envelope() -> None:
    class Envelope(msgspec.Struct):
        params: msgspec.Raw

    raw = msgspec.json.decode(b'{"params": {"id": "t", "historyLength": "2"}}', type=Envelope).params
    assert codec.read_request(OPERATIONS["get"], raw, new_id).history_length == 2  # type: ignore[union-attr]
    task = msgspec.json.decode(
        b'{"params": {"id": "t", "status": {}, "context_id": "c"}}', type=Envelope
    ).params
    assert codec.decode_task(task).context_id == "c"


@pytest.mark.parametrize(
    ("body", "name", "at"),
    [
        (b"", "ParseError", ""),
        (b"{", "ParseError", ""),
        (b'{"id":"t"} x', "ParseError", ""),
        (b'{"id":NaN}', "ParseError", ""),
        (b'{"id":"t","metadata":{"a":Infinity}}', "ParseError", ""),
        (b'{"id":"t","metadata":{"a":-Infinity}}', "ParseError", ""),
        (b'{"id":"t","metadata":{"a":1e400}}', "InvalidParams", "metadata"),
        (b'{"id":"t","metadata":{"a":[-1e400]}}', "InvalidParams", "metadata"),
        (b'{"id":"t","metadata":{"a":' + b"1" * 5000 + b"}}", "InvalidParams", "metadata"),
        (b'{"id":"t","metadata":{"a":' + b"1" * 310 + b"}}", "InvalidParams", "metadata"),
        (b'{"id":"t","metadata":{"a":"\\ud800"}}', "ParseError", ""),
        (b'{"id":"\xff"}', "ParseError", ""),
        (b'{"id":' + b"[" * 5000, "ParseError", ""),
        (b'{"id":"t","metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "ParseError", ""),
    ],
)
def test_what_no_reader_can_carry_is_refused(body: bytes, name: str, at: str) -> None:
    """Shows: F26, F27"""
    for lenient in (False, True):
        with pytest.raises(AgentError) as refused:
            codec.read_request(OPERATIONS["cancel"], body, new_id, lenient=lenient)
        assert refused.value.name == name
        if not lenient:
            assert refused.value.at == at
    with pytest.raises(AgentError) as refused:
        codec.decode_task(body.replace(b'{"id"', b'{"status":{},"id"'))
    assert refused.value.name == "InvalidAgentResponse"


def test_a_large_integer_that_a_double_can_hold_is_kept_exactly() -> None:
    """Shows: F27"""
    body = b'{"id":"t","metadata":{"a":12345678901234567890123}}'
    read = codec.read_request(OPERATIONS["cancel"], body, new_id)
    assert codec.spell_request(OPERATIONS["cancel"], read) == body


def test_a_long_number_inside_a_text_is_no_number() -> None:
    body = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"' + b"7" * 5000 + b'"}]}}'
    assert (
        codec.spell_request(OPERATIONS["send"], codec.read_request(OPERATIONS["send"], body, new_id)) == body
    )


# Anything at all.

KEYS = sorted(
    {
        "id",
        "message",
        "parts",
        "role",
        "text",
        "raw",
        "url",
        "data",
        "metadata",
        "status",
        "state",
        "task",
        "history",
    }
    | {
        "messageId",
        "message_id",
        "contextId",
        "configuration",
        "historyLength",
        "history_length",
        "pageSize",
        "x",
    }
    | {
        "statusUpdate",
        "artifactUpdate",
        "artifact",
        "artifacts",
        "statusTimestampAfter",
        "taskId",
        "timestamp",
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["ROLE_USER", "TASK_STATE_WORKING", "YQ==", "YQ", "2026-01-31T12:00:00Z", "\ud800", "\0", "5"]
    )
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
)
BODIES = TREES.map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=60)
CUT_BODIES = st.builds(
    lambda body, place, put: body[: place % (len(body) + 1)] + put + body[place % (len(body) + 1) :],
    BODIES,
    st.integers(0, 10_000),
    st.sampled_from(
        [b"", b'"', b"\\", b"\xff", b"\0", b"{", b"]", b",", b"\\ud800", b"1e999", b"\xef\xbb\xbf"]
    ),
)
DOCUMENTED = {
    "request": {"ParseError", "InvalidParams", "TooLarge"},
    "peer": {"ParseError", "InvalidParams", "TooLarge", "InvalidAgentResponse"},
}


@given(
    body=BODIES | CUT_BODIES,
    kind=st.sampled_from([*OPERATIONS, *OF_PEERS, "stream_item"]),
    guarded=st.booleans(),
)
def test_anything_is_read_or_refused_by_a_documented_error(body: bytes, kind: str, guarded: bool) -> None:
    """Shows: F26, F27"""
    value, refused = _outcome(kind, body, guarded)
    if refused is not None:
        assert refused.name in DOCUMENTED["request" if kind in OPERATIONS else "peer"]
        assert refused.message
    elif b"\\u0000" not in body:
        assert decode(kind, msgspec.json.encode(value)) == value


def _outcome(kind: str, body: bytes, guarded: bool) -> tuple[Any, AgentError | None]:
    try:
        if guarded:
            return decode(kind, body), None
        if kind in OPERATIONS:
            return codec.read_request(OPERATIONS[kind], body, new_id, lenient=True), None
        return (codec.decode_stream_item(body) if kind == "stream_item" else OF_PEERS[kind][1](body)), None
    except AgentError as refused:
        return None, refused


@given(tree=TREES, kind=st.sampled_from(sorted(OPERATIONS)))
def test_the_quick_way_and_the_lenient_way_agree(tree: Any, kind: str) -> None:
    body = json.dumps(tree).encode()

    def outcome(lenient: bool) -> Any:
        try:
            return codec.read_request(OPERATIONS[kind], body, new_id, lenient=lenient)
        except AgentError as refused:
            return refused.name

    if b"_" not in body:
        assert outcome(False) == outcome(True)
