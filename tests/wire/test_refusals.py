"""An error says its reason on the wire, and a peer's is told by it: whatever its version calls it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import AgentError, error
from dragoman.wire import refusals
from tests.wire.values import json_values

TREES = json_values()


def test_an_error_names_its_reason_and_the_member_that_is_wrong() -> None:
    assert refusals.details_of(error("TaskNotFound", taskId="t")) == [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
            "metadata": {"taskId": "t"},
        }
    ]
    assert refusals.details_of(error("InvalidParams", "Expected a string.", at="message.messageId"))[1] == {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"field": "message.messageId", "description": "Expected a string."}],
    }


def test_an_error_survives_the_wire() -> None:
    said = error("InvalidParams", "Expected a string.", at="message.messageId", hint="x")
    heard = refusals.read_error(
        {"code": said.row.code, "message": said.message, "data": refusals.details_of(said)}
    )
    assert (heard.row, heard.message, heard.at, heard.metadata) == (
        said.row,
        said.message,
        said.at,
        said.metadata,
    )


REASON = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_CANCELABLE"}


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ({"code": -32603, "message": "m", "data": [{"@type": "other"}, REASON]}, "TaskNotCancelable"),
        ({"code": -32603, "message": "m", "data": REASON}, "TaskNotCancelable"),
        ({"code": -32603, "data": {"reason": "TASK_NOT_CANCELABLE"}}, "TaskNotCancelable"),
        ({"code": -32001, "data": [{**REASON, "reason": "NOBODY_KNOWS"}]}, "TaskNotFound"),
        ({"code": -32001, "message": "m"}, "TaskNotFound"),
        ({"code": -32001, "message": None, "data": "text"}, "TaskNotFound"),
        ({"code": -32001, "data": None}, "TaskNotFound"),
        ({"code": -1, "message": "m"}, "Internal"),
        ({"code": "x", "message": ["m"]}, "Internal"),
        ({}, "Internal"),
        ("x", "InvalidAgentResponse"),
        (None, "InvalidAgentResponse"),
    ],
)
def test_a_peers_error_is_told_by_its_reason_then_by_its_code(wire: Any, name: str) -> None:
    assert refusals.read_error(wire).name == name


@given(wire=TREES | st.dictionaries(st.sampled_from(["code", "message", "data"]), TREES))
def test_any_error_object_is_some_error(wire: Any) -> None:
    assert isinstance(refusals.read_error(wire), AgentError)
