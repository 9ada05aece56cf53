"""The 1.0 codec and protobuf's json_format read the same JSON to the same values.

Where they differ is in `STRICTER` and `KINDER` and nowhere else; each row is checked to be what it says.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.errors import AgentError
from dragoman.model.operations import OPERATIONS
from dragoman.wire import guard
from dragoman.wire import proto_json_1_0 as codec
from tests.wire.values import new_id

try:
    from a2a.types import a2a_pb2 as pb
    from google.protobuf import json_format
except ImportError as missing:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip(f"NOT COMPARED WITH PROTOBUF: {missing}; install a2a-sdk==1.3.0", allow_module_level=True)

KINDS: dict[str, tuple[Any, Callable[[bytes], Any]]] = {
    "SendMessageRequest": (pb.SendMessageRequest, lambda body: _request("send", body)),
    "GetTaskRequest": (pb.GetTaskRequest, lambda body: _request("get", body)),
    "ListTasksRequest": (pb.ListTasksRequest, lambda body: _request("list", body)),
    "CancelTaskRequest": (pb.CancelTaskRequest, lambda body: _request("cancel", body)),
    "SubscribeToTaskRequest": (pb.SubscribeToTaskRequest, lambda body: _request("subscribe", body)),
    "Task": (pb.Task, codec.decode_task),
    "StreamResponse": (pb.StreamResponse, codec.decode_stream_item),
}


def _request(name: str, body: bytes) -> Any:
    return codec.read_request(OPERATIONS[name], body, new_id, lenient=guard.check(body).lenient)


# JSON for a message, made from its descriptor: mostly right, sometimes in another spelling, sometimes wrong.

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, ANYTHING, max_size=3)
WRONG = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", [], [None], {}, {"x": 1}, 10**12, "5 ", "1_0", "1e400", -0.0]
)
INTEGERS = st.one_of(
    st.integers(0, 100),
    st.integers(1, 50).map(float),
    st.integers(0, 100).map(str),
    st.sampled_from(
        ["5.0", "1e1", "2.50e1", "-3", 1e2, 2**31 - 1, 2**31, -(2**31), "2147483648", "05", "+5", "0x5"]
    ),
)
GOOD_INTEGERS = st.integers(1, 100).flatmap(
    lambda n: st.sampled_from([n, float(n), str(n), f"{n}.0", f"{n}e0"])
)
BYTES = st.binary(max_size=5).flatmap(
    lambda raw: (
        st.sampled_from(_spellings_of(raw))
        | st.sampled_from(["Y", "YQ=", "YR==", "Y Q=", "YQ==YQ==", "=", "é"])
    )
)
MOMENTS = st.sampled_from(
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.5Z",
        "2026-01-31T12:00:00.123456789-08:30",
        "2026-02-30T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999Z",
        "2026-01-31",
        "2026-1-31T12:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "2026-01-31T12:00:00",
        "2026-01-31t12:00:00z",
        "2016-12-31T23:59:60Z",
        "2026-01-31T12:00:00+1:0",
        "yesterday",
        "",
    ]
)
GOOD_MOMENTS = st.sampled_from(
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.123456789-08:30"]
)


def _spellings_of(raw: bytes) -> list[str]:
    plain, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()
    return [plain, url, plain.rstrip("="), url.rstrip("=")]


# Where something is wrong hardly anything is accepted, so `loose` is only half of what is drawn.


@functools.cache
def _right(field: Any, loose: bool) -> st.SearchStrategy[Any]:
    if field.type == field.TYPE_MESSAGE:
        match field.message_type.full_name:
            case "google.protobuf.Struct":
                return OBJECTS
            case "google.protobuf.Value":
                return ANYTHING
            case "google.protobuf.Timestamp":
                return MOMENTS if loose and field.name == "status_timestamp_after" else GOOD_MOMENTS
            case _:
                return _json_of(field.message_type, loose)
    if field.type == field.TYPE_ENUM:
        values = field.enum_type.values[1:]
        right = [value.name for value in values] + [value.number for value in values] + ["2", 2.0]
        odd = [field.enum_type.values[0].name, 0, "TASK_STATE_PAUSED", 99, -1, "user"]
        return st.sampled_from(right + odd if loose else right)
    if field.type == field.TYPE_BYTES:
        return (
            BYTES if loose else st.binary(max_size=5).flatmap(lambda raw: st.sampled_from(_spellings_of(raw)))
        )
    if field.cpp_type == field.CPPTYPE_INT32:
        return INTEGERS if loose else GOOD_INTEGERS
    if field.cpp_type == field.CPPTYPE_BOOL:
        return st.booleans()
    return TEXTS if loose or field.name not in USUAL else TEXTS.filter(bool)


@functools.cache
def _value(field: Any, loose: bool) -> st.SearchStrategy[Any]:
    one = _right(field, loose)
    least = 0 if loose or field.name != "parts" else 1
    right = st.lists(one, min_size=least, max_size=2) if field.is_repeated else one
    if field.name in USUAL and not loose:
        return right
    return st.integers(0, 30).flatmap(
        lambda dice: WRONG if loose and dice == 0 else st.none() if dice == 1 else right
    )


@functools.cache
def _json_of(descriptor: Any, loose: bool) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def draw_object(draw: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        one_of = {
            o.name: draw(st.sampled_from(list(o.fields))).name for o in descriptor.oneofs if len(o.fields) > 1
        }
        for field in draw(st.permutations(list(descriptor.fields))):
            # Not in the model yet: codecs ignore it, so a wrong one is not theirs to refuse.
            if field.name == "task_push_notification_config":
                continue
            group = field.containing_oneof.name if field.containing_oneof else ""
            if group in one_of:
                wanted = one_of[group] == field.name or (loose and draw(st.integers(0, 40)) == 0)
                spellings = [[field.json_name], [field.name]]
                made |= {
                    name: draw(_right(field, loose)) for name in draw(st.sampled_from(spellings)) if wanted
                }
                continue
            if draw(st.integers(0, 9)) < ((9 if loose else 10) if field.name in USUAL else 4):
                spellings = [[field.json_name]] * 8 + [[field.name]] * 3
                if loose:
                    spellings.append([field.name, field.json_name])
                made |= {name: draw(_value(field, loose)) for name in draw(st.sampled_from(spellings))}
        if draw(st.integers(0, 9)) == 0:
            made[draw(st.sampled_from(["kind", "x_y", "final"] + ["[x.y]"] * loose))] = draw(ANYTHING)
        return made

    return draw_object()


USUAL = ("message", "message_id", "role", "parts", "id", "status", "task_id", "artifact", "artifact_id")


# What both must agree on.


EXAMPLES = int(os.environ.get("DRAGOMAN_FUZZ_EXAMPLES", "40"))


@settings(max_examples=EXAMPLES)
@pytest.mark.parametrize("kind", KINDS)
@given(draw=st.data())
def test_json_that_is_right_is_read_by_both(kind: str, draw: st.DataObject) -> None:
    """Shows: F27"""
    wire = draw.draw(_json_of(KINDS[kind][0].DESCRIPTOR, loose=False))
    _compare(kind, wire)
    KINDS[kind][1](json.dumps(wire).encode())


@settings(max_examples=EXAMPLES)
@pytest.mark.parametrize("kind", KINDS)
@given(draw=st.data())
def test_json_that_may_be_wrong_is_refused_by_both_or_for_a_listed_reason(
    kind: str, draw: st.DataObject
) -> None:
    """Shows: F27"""
    _compare(kind, draw.draw(_json_of(KINDS[kind][0].DESCRIPTOR, loose=True)))


def _compare(kind: str, wire: Any) -> None:
    theirs_kind, decode = KINDS[kind]
    theirs = _read_by_protobuf(wire, theirs_kind)
    refused = None
    try:
        ours = decode(json.dumps(wire).encode())
    except AgentError as wrong:
        refused, ours = wrong, None
    if refused is not None:
        assert theirs is None or any(
            re.search(says, refused.message) and is_so(wire, theirs, refused.at, kind)
            for says, is_so in STRICTER
        ), f"only we refuse {wire}: {refused.message} at {refused.at}"
        return
    if theirs is None:
        assert any(is_so(wire) for is_so in KINDER), f"only protobuf refuses {wire}"
        return
    spelled = json.loads(msgspec.json.encode(ours))
    again = json_format.ParseDict(spelled, theirs_kind())
    assert _as_we_see_it(again) == _as_we_see_it(theirs) or any(is_so(wire) for is_so in OTHERWISE), wire


def _read_by_protobuf(wire: Any, kind: Any) -> Any:
    try:
        return json_format.ParseDict(wire, kind(), ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, OverflowError):
        return None


def _as_we_see_it(theirs: Any) -> Any:
    """Their value without what the model does not tell apart."""
    # An empty configuration and none are one.
    if isinstance(theirs, pb.SendMessageRequest) and not theirs.configuration.ByteSize():
        theirs.ClearField("configuration")
    if isinstance(theirs, pb.ListTasksRequest) and not theirs.include_artifacts:
        theirs.ClearField("include_artifacts")
    for status in _all(theirs, "TaskStatus"):
        # States from the future are unknown ones.
        if status.state not in pb.TaskState.values():
            status.state = pb.TASK_STATE_UNSPECIFIED
    if isinstance(theirs, pb.Task | pb.StreamResponse):
        # A peer that does not say who speaks is the agent.
        for message in _all(theirs, "Message"):
            if message.role not in (pb.ROLE_USER, pb.ROLE_AGENT):
                message.role = pb.ROLE_AGENT
    return theirs


def _all(message: Any, name: str) -> list[Any]:
    found = [message] if message.DESCRIPTOR.name == name else []
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and field.message_type.file.name.endswith("a2a.proto"):
            for one in value if field.is_repeated else [value]:
                found.extend(_all(one, name))
    return found


# Where we refuse what protobuf takes. Each predicate looks whether it is really that.


def _steps(at: str) -> list[str | int]:
    return [int(step[1:-1]) if step[0] == "[" else step for step in re.findall(r"[^.\[\]]+|\[\d+\]", at)]


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)


def _at(theirs: Any, at: str) -> Any:
    for step in _steps(at):
        theirs = theirs[step] if isinstance(step, int) else getattr(theirs, _snake(step))
    return theirs


def _said(wire: Any, at: str) -> Any:
    for step in _steps(at):
        wire = wire[step] if isinstance(step, int) else wire.get(step, wire.get(_snake(step)))
    return wire


def _is_empty(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    value = _at(theirs, at)
    return not (
        value.ByteSize() if hasattr(value, "ByteSize") else len(value) if hasattr(value, "__len__") else value
    )


def _is_not_one(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    said = _said(wire, at)
    names = ("text", "raw", "url", "data")
    return sum(name in said and (said[name] is not None or name == "data") for name in names) != 1


def _is_not_one_event(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    return kind == "StreamResponse" and theirs.WhichOneof("payload") is None


def _is_out_of_range(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    value = _at(theirs, at)
    return value < 0 or (at == "pageSize" and not 1 <= value <= 100)


def _is_no_whole_number(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    said = _said(wire, at)
    return isinstance(said, float | str) and re.fullmatch(r"-?(0|[1-9]\d*)(\.0*)?", str(said)) is None


def _is_no_known_name(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    said = _said(wire, at)
    return said in (True, False, "", 0, "0") or str(said) not in _KNOWN


_KNOWN = {*pb.Role.keys()[1:], *pb.TaskState.keys(), "1", "2", "1.0", "2.0"}


def _is_loose_base64(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    return re.fullmatch(r"[-_+/A-Za-z0-9]*={0,2}", _said(wire, at)) is None


def _is_said_twice(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    *way, last = _steps(at)
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).lstrip(".")
    return {last, _snake(str(last))} <= _said(wire, place).keys()


def _is_loose_moment(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)", _said(wire, at)) is None


def _is_no_object(wire: Any, theirs: Any, at: str, kind: str) -> bool:
    return isinstance(_said(wire, at), str | list)


STRICTER: list[tuple[str, Callable[[Any, Any, str, str], bool]]] = [
    (r" is required ", _is_empty),  # protobuf has no required members; protocol 3.4 has
    (r"exactly one of text", _is_not_one),  # protobuf takes none, and null data beside another
    (r"exactly one of task", _is_not_one_event),
    (r"an integer from ", _is_out_of_range),  # historyLength ≥ 0, pageSize 1..100
    (r"an integer", _is_no_whole_number),  # Python's int() takes " 5", "1_0", "+5", "05"
    (r"Expected one of ROLE_USER", _is_no_known_name),  # unspecified and unknown roles; true as 1; 1.9 as 1
    (
        r"Expected one of TASK_STATE",
        _is_no_known_name,
    ),  # an unknown name would be dropped: a filter that is none
    (r"Expected an object", _is_no_object),  # protobuf takes a text for an object of unknown members
    (r"base64", _is_loose_base64),  # protobuf drops what is not of the alphabet
    (r"is there twice", _is_said_twice),  # protobuf takes the last of two spellings
    (r"RFC 3339", _is_loose_moment),  # strptime takes one digit for a month
]


def _has(wire: Any, is_so: Callable[[Any, Any], bool]) -> bool:
    if isinstance(wire, dict):
        return any(is_so(name, value) or _has(value, is_so) for name, value in wire.items())
    return isinstance(wire, list) and any(_has(value, is_so) for value in wire)


# Where protobuf refuses what we take.
KINDER: list[Callable[[Any], bool]] = [
    lambda wire: _has(
        wire, lambda name, _: name == "[x.y]"
    ),  # a name of a protobuf extension is one more unknown name
    lambda wire: _has(
        wire, lambda name, value: name.lower().endswith("after") and value == ""
    ),  # an unset filter
    # What a peer says of time is handed on unread.
    lambda wire: _has(wire, lambda name, value: name == "timestamp" and isinstance(value, str)),
]

# Where both read it, and read it otherwise.
OTHERWISE: list[Callable[[Any], bool]] = [
    # To Python's int() "5 " is a number; to us it is the name of a state from the future.
    lambda wire: _has(
        wire, lambda name, value: name == "state" and isinstance(value, str) and value != value.strip()
    ),
]
