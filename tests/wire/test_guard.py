"""What the guard refuses in the bytes of a body, and that it is never the guard that falls over."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import AgentError
from dragoman.wire import guard


def refusal(body: bytes, limit_bytes: int = guard.BODY_BYTES_MAX) -> AgentError:
    with pytest.raises(AgentError) as refused:
        guard.check(body, limit_bytes)
    return refused.value


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert guard.check(b'"123"', 5) == guard.Facts(lenient=False)
    assert refusal(b'"1234"', 5).name == "TooLarge"


@pytest.mark.parametrize(
    ("body", "name", "says"),
    [
        (b'{"a":"\xff"}', "ParseError", "byte 6"),
        (b'{"a":"\xc0\x80"}', "ParseError", "byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "ParseError", "byte 6"),
        (b'{"\xff":1}', "ParseError", "byte 2"),
        (b"\xef\xbb\xbf{}", "ParseError", "byte order mark"),
        (b"\xff\xfe{\0}\0", "ParseError", "byte order mark"),
        (b'{"a":"\0"}', "ParseError", "byte 6"),
        (b'{"a":"x\\u0000"}', "InvalidParams", "byte 7"),
        (b'{"a":"\\\\\\u0000"}', "InvalidParams", "byte 8"),
        (b'{"\\u0000":1}', "InvalidParams", "byte 2"),
        (b'{"a":"\\ud800"}', "ParseError", "\\ud800"),
        (b'{"a":"\\uDC00"}', "ParseError", "\\uDC00"),
        (b'{"a":"\\udc00\\ud800"}', "ParseError", "\\udc00"),
        (b'{"a":"\\ud83d\\ude00\\ude00"}', "ParseError", "\\ude00"),
        (b'{"a":"\\ud83dx\\ude00"}', "ParseError", "\\ud83d"),
        (b'{"a":{"id":1,"id":2}}', "InvalidParams", "a.id"),
        (b'{"a":[0,{"id":1,"b":[],"id":1}]}', "InvalidParams", "a[1].id"),
        (b'{"a":1,"\\u0061":2}', "InvalidParams", "member a "),
        (b'{"":1,"":2}', "InvalidParams", "member is there twice"),
        (b'{"a\\"b":1, "a\\u0022b" :2}', "InvalidParams", 'a"b'),
        (b'{"a":NaN,"b":{"a":1}}', "ParseError", "NaN"),
        (b'{"a":1,"b":{"a":x}}', "ParseError", "character 16"),
        (nested(65), "ParseError", "64 levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "ParseError", "64 levels"),
        (b"[" * 100_000, "ParseError", "64 levels"),
        (b"[]" * 40 + nested(65), "ParseError", "64 levels"),
        (b'["[",' + nested(64) + b',"]"]', "ParseError", "64 levels"),
        (b"[]" * 80 + b"]]", "ParseError", "brackets"),
        (b"[" + b"[]," * guard.CONTAINERS_MAX + b"[]]", "TooLarge", "objects and arrays"),
    ],
)
def test_what_no_body_may_hold_is_refused_and_said_where(body: bytes, name: str, says: str) -> None:
    """Shows: F26, F27"""
    refused = refusal(body)
    assert refused.name == name
    assert says in refused.message


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"a":"\\\\u0000"}',
        b'{"a":"\\\\ud800"}',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\\ud83d\\ude00\\ud83d\\ude00"}',
        b'{"a":"\\uD83D\\uDE00"}',
        '{"a":"é\U0001f600\x7f"}'.encode(),
        b'{"a":{"b":1},"b":{"a":2}}',
        b'{"a":"b","b":"a","c":"a\\":"}',
        b'{"text":"a\\"text\\":1"}',
        b'[{"a":1},{"a":1}]',
        b'{"":1}',
        b'["","",{"":""}]',
        b'["a" , "a"]',
        nested(64),
        b"[" + b"[]," * 200 + b"[]]",
        b'["' + b"[" * 500 + b'"]',
        b'["' + b'[\\"' * 500 + b'\\\\","' + b"{" * 90 + b'"]',
        b'{"a":1e400,"b":{"a":' + b"1" * 5000 + b"}}",
    ],
)
def test_what_only_looks_wrong_is_let_through(body: bytes) -> None:
    """Shows: F26, F27"""
    guard.check(body)


def test_a_doubled_key_in_a_large_body_is_left_alone() -> None:
    guard.check(b'{"a":1,"a":"' + b"x" * guard.DUPLICATES_BYTES_MAX + b'"}')


def test_a_long_key_is_not_sent_back_whole() -> None:
    key = b'"' + b"k" * 5000 + b'":1'
    assert len(refusal(b"{" + key + b"," + key + b"}").message) < 300


@pytest.mark.parametrize(
    ("body", "lenient"),
    [
        (b'{"message":{"message_id":"m"}}', True),
        (b'{"history_length" : 1}', True),
        (b'{"status_timestamp_after"\n:1}', True),
        (b'{"messageId":"message_id","role":"ROLE_USER"}', False),
        (b'{"metadata":{"user_id":1,"_id":2}}', False),
        (b'{"metadata":{"context_id":1}}', True),
        (b'{"a":"' + b"x" * 100_000 + b'","context_id":1}', True),
    ],
)
def test_a_member_in_snake_case_is_noticed(body: bytes, lenient: bool) -> None:
    assert guard.check(body).lenient is lenient


STRUCTURE = [
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"\\",
    b'\\"',
    b",",
    b":",
    b'"a":',
    b"1",
    b" ",
    b"\\u0000",
    b"\xff",
    b'{"a":',
]


def test_ten_thousand_tries_of_deep_bodies_end_in_an_answer() -> None:
    """Shows: F26"""
    dice = random.Random(26)
    for _ in range(10_000):
        levels = dice.choice((63, 64, 65, 66, 1000, 2000))
        opens, closes = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"[":', b"}]"), (b'["]",', b"]")))
        here = 2 if opens == b'[{"[":' else 1
        body = opens * levels + b"1" + closes * levels
        if levels * here > guard.DEPTH_MAX:
            assert refusal(body).name == "ParseError"
        else:
            guard.check(body)


@given(pieces=st.lists(st.sampled_from(STRUCTURE), max_size=300), times=st.integers(1, 40))
def test_any_bytes_pass_or_are_refused_by_a_documented_error(pieces: list[bytes], times: int) -> None:
    """Shows: F26, F27"""
    refused = None
    try:
        guard.check(b"".join(pieces) * times)
    except AgentError as wrong:
        refused = wrong
    assert refused is None or refused.name in {"ParseError", "InvalidParams", "TooLarge"}


TEXTS = st.text(st.sampled_from('ab_\\"[]{}:, é\U0001f600'), max_size=5)
TREES: Any = st.recursive(
    st.none() | TEXTS | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=60,
)


@given(tree=TREES, ascii_only=st.booleans(), around=st.integers(0, 80), spaced=st.booleans())
def test_what_json_writes_passes_exactly_when_it_is_not_too_deep(
    tree: Any, ascii_only: bool, around: int, spaced: bool
) -> None:
    """Shows: F26, F27"""
    for _ in range(around):
        tree = [tree]
    body = json.dumps(tree, ensure_ascii=ascii_only, indent=1 if spaced else None).encode()
    if depth_of(tree) > guard.DEPTH_MAX:
        assert "64 levels" in refusal(body).message
    else:
        guard.check(body)


def depth_of(tree: Any) -> int:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(pairs=st.lists(st.tuples(TEXTS, st.integers() | TEXTS), max_size=6), escapes=st.booleans())
def test_an_object_passes_exactly_when_its_keys_differ(pairs: list[tuple[str, Any]], escapes: bool) -> None:
    """Shows: F27"""
    body = (
        "{" + ",".join(f"{spell(key, escapes)}: {json.dumps(value)}" for key, value in pairs) + "}"
    ).encode()
    if len({key for key, _ in pairs}) == len(pairs):
        guard.check(body)
    else:
        assert "twice" in refusal(body).message


def spell(key: str, escapes: bool) -> str:
    """A key as JSON, its first letter as an escape or not: equal keys need not look equal."""
    if escapes and key[:1] == "a":
        return '"\\u0061' + json.dumps(key[1:])[1:]
    return json.dumps(key, ensure_ascii=False)
