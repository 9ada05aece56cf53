"""The quick way through 0.3's messages agrees with the tolerant one; and whom neither version is said, is told both."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from dragoman.model.errors import AgentError
from dragoman.model.operations import OPERATIONS, Configuration, Send
from dragoman.model.task import Message, Part, Role
from dragoman.wire import guard
from dragoman.wire.kind_json import KIND
from dragoman.wire.versions import DIALECTS, UNSAID, shown
from tests.wire.test_any_bytes import bent
from tests.wire.values import PATIENT, new_id

SEND = OPERATIONS["send"]
HELLO = Send(
    Message("m", Role.USER, (Part(text="a"), Part(text="b")), "c", "t"), Configuration(("text/plain",))
)
SPELLED = KIND.spell_request(SEND, HELLO)


def outcome(body: bytes, *, lenient: bool) -> Any:
    try:
        return KIND.read_request(SEND, body, new_id, lenient=lenient)
    except AgentError as refused:
        return refused.name, refused.at


@settings(PATIENT, max_examples=1000)
@given(body=bent(SPELLED))
def test_the_quick_way_and_the_tolerant_way_agree(body: bytes) -> None:
    assert outcome(body, lenient=False) == outcome(body, lenient=True)


@pytest.mark.parametrize(
    ("at", "member", "said"),
    [
        ((), "tenant", "t"),
        (("message",), "sessionId", "s"),
        (("message",), "session_id", "s"),
        (("message",), "content", [{"text": "more"}]),
        (("message",), "reference_task_ids", ["t0"]),
        (("message", "parts", 0), "mediaType", "text/markdown"),
        (("message", "parts", 0), "mime_type", "text/markdown"),
        (("message", "parts", 0), "filename", "a.md"),
        (("configuration",), "pushNotification", {"url": "https://w.example/"}),
        (("configuration",), "push_notification_config", {"url": "https://w.example/"}),
        (("configuration",), "return_immediately", True),
        (("configuration",), "history_length", 3),
    ],
)
def test_a_member_that_most_do_not_say_is_not_lost_on_the_quick_way(
    at: tuple[Any, ...], member: str, said: Any
) -> None:
    tree = json.loads(SPELLED)
    if member == "session_id" or member == "sessionId":
        del tree["message"]["contextId"]
    node = tree
    for key in at:
        node = node[key]
    node[member] = said
    body = json.dumps(tree).encode()
    as_guarded = KIND.read_request(SEND, body, new_id, lenient=guard.check(body).lenient)
    assert as_guarded == KIND.read_request(SEND, body, new_id, lenient=True)


UNSURE = UNSAID["JSONRPC"][0]


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        (b'{"kind":"task","artifacts":[{"parts":[{"kind":"text","text":"a"}]}]}', ["kind"]),
        (b'{"id":"t","artifacts":[{"parts":[{"type" : "text","text":"a"}]}]}', ["type"]),
        (b'{"id":"t","artifacts":[{"parts":[{"type":"file"},{"kind":"file"}]}]}', ["type", "kind"]),
        (b'{"kind":"task","id":"t"}', ["type", "kind"]),
        (b"", ["type", "kind"]),
    ],
)
def test_a_peer_that_says_no_version_is_answered_as_its_own_parts_show(said: bytes, marks: list[str]) -> None:
    """Shows: C3"""
    spelled = json.loads(shown(UNSURE, said).codec.spell_request(SEND, HELLO))
    for part in spelled["message"]["parts"]:
        assert [name for name in part if name != "text"] == marks
    # What is read stands inside a body.
    assert shown(UNSURE, msgspec.Raw(said)) is shown(UNSURE, said)


def test_whose_version_is_known_is_spoken_to_in_it_whatever_it_says() -> None:
    for dialect in DIALECTS.values():
        assert shown(dialect, b'{"parts":[{"type":"text","text":"a"}]}') is dialect
