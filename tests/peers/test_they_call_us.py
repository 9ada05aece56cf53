"""Other parties' clients talk to agents of ours: each does every case once; here is what it must see."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from tests.peers.environments import Peer, environ, shows

CLIENT_SECONDS_MAX = 300
RECONNECTS = 50


@dataclass(frozen=True)
class Case:
    """What a client does, by its program's name for it, and what it then sees."""

    name: str
    operation: str
    behaviour: str
    sees: Any


CASES = (
    Case(
        "card",
        "card",
        "the card is found and read",
        {"name": "tasks", "binding": "JSONRPC", "version": "1.0", "streaming": True, "skills": 1},
    ),
    Case(
        "send_waits",
        "SendMessage",
        "a send waits for the task and brings its artifacts",
        {"state": "COMPLETED", "text": "Grüße, 世界 🌍"},
    ),
    Case(
        "send_at_once",
        "SendMessage",
        "a send that does not wait brings an open task",
        {"open": True, "then": "CANCELED"},
    ),
    Case(
        "stream",
        "SendStreamingMessage",
        "a stream brings the task, its states and every chunk",
        {
            "first": "task",
            "states": ["SUBMITTED", "WORKING", "COMPLETED"],
            "text": "".join(f"{number} " for number in range(20)),
        },
    ),
    Case(
        "get",
        "GetTask",
        "a task is read as it ended",
        {"state": "COMPLETED", "text": "again", "same": True},
    ),
    Case(
        "history",
        "GetTask",
        "the history has the length that was asked for",
        {
            "lengths": {
                "0": [],
                "1": ["blue"],
                "2": ["Which?", "blue"],
                "100": ["ask", "Which?", "blue"],
            },
            "send 0": 0,
        },
    ),
    Case(
        "list_pages",
        "ListTasks",
        "tasks are listed by page, by context, by state, with and without artifacts",
        {
            "sizes": [2, 2, 1],
            "totals": [5],
            "newest first": True,
            "bare": True,
            "texts": ["0", "1", "2", "3", "4"],
            "failed": 0,
        },
    ),
    Case(
        "cancel",
        "CancelTask",
        "a task is canceled, and canceled again to no effect",
        {"state": "CANCELED", "again": "CANCELED"},
    ),
    Case(
        "subscribe",
        "SubscribeToTask",
        "two subscribers both get the task and the true artifact",
        {"first": ["task"] * 2, "last": ["COMPLETED"] * 2, "true": [True] * 2},
    ),
    Case(
        "ask",
        "SendMessage",
        "a question is asked, answered, and the task goes on",
        {
            "state": "INPUT_REQUIRED",
            "question": "Which?",
            "then": "COMPLETED",
            "text": "you said: blue",
            "same": True,
        },
    ),
    Case(
        "ask_in_a_stream",
        "SendStreamingMessage",
        "a stream ends at a question, and the answer opens the next",
        {"asked": "INPUT_REQUIRED", "then": "COMPLETED", "text": "you said: green"},
    ),
    Case(
        "message",
        "SendMessage",
        "an agent answers with a message alone",
        {"kind": "message", "text": "just a message", "stream": ["message"]},
    ),
    Case(
        "parts",
        "SendMessage",
        "parts of every kind go there and back unchanged, empty ones too",
        {"parts": True, "state": "COMPLETED"},
    ),
    Case("null_part", "SendMessage", "a part may be null", {"parts": ["data"]}),
    Case("large", "SendMessage", "a megabyte goes there and back", {"same": True}),
    Case("many_at_once", "SendMessage", "fifty sends at once each get their own answer", {"own": True}),
    Case(
        "ends",
        "SendMessage",
        "a failure and a rejection are told, a crash without its inside",
        {"fail": ["FAILED", "it broke"], "reject": ["REJECTED", "not for me"], "crash": ["FAILED", False]},
    ),
    Case(
        "contexts",
        "SendMessage",
        "a caller's context is kept, and a wrong one refused",
        {"kept": "a-room", "mismatch": "InvalidParams", "match": "COMPLETED"},
    ),
    Case(
        "errors",
        "every",
        "every error arrives as the client's own kind of it",
        {
            "get": "TaskNotFound",
            "cancel": "TaskNotFound",
            "cancel over": "TaskNotCancelable",
            "send to nobody": "TaskNotFound",
            "send to over": "UnsupportedOperation",
            "subscribe": "TaskNotFound",
            "subscribe over": "UnsupportedOperation",
            "media type": "ContentTypeNotSupported",
            "page size": "InvalidParams",
            "page token": "InvalidParams",
            "no parts": "InvalidParams",
            "push": "PushNotificationNotSupported",
        },
    ),
    Case(
        "versions",
        "SendMessage",
        "versions that are not spoken are refused",
        {"1.0": "task", **dict.fromkeys(("0.3", "1.7", "99.0"), "VersionNotSupported")},
    ),
)


def told(peer: Peer, *arguments: str) -> list[dict[str, Any]]:
    """What a peer's client says it saw."""
    done = subprocess.run(
        [*peer.program("client"), *arguments],
        env=environ(),
        timeout=CLIENT_SECONDS_MAX,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="session")
def seen(peer: Peer, ours: dict[str, str]) -> dict[str, dict[str, Any]]:
    """All cases, done once by this peer's client."""
    return {line["case"]: line for line in told(peer, ours["tasks"], ours["words"])}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_their_client_sees_what_the_protocol_promises(case: Case, seen: dict[str, dict[str, Any]]) -> None:
    line = seen[case.name]
    assert "broke" not in line, line["broke"]
    assert line["saw"] == case.sees


@shows("SubscribeToTask")
@pytest.mark.slow
@pytest.mark.within(300)
def test_a_reconnect_without_a_cursor_begins_with_the_task_and_ends_with_the_true_artifact(
    peer: Peer, ours: dict[str, str], scale: int
) -> None:
    """Streams of chunks are cut and resumed twice each, by a client that knows no cursors.

    Shows: F05
    """
    lines = told(peer, ours["tasks"], "reconnect", str(RECONNECTS * scale))
    assert len(lines) == RECONNECTS * scale
    assert [line for line in lines if not (line["true"] and line["last"] == "COMPLETED")] == []
    # A stream may end before its reader is back; nearly all must have been caught in the middle.
    caught = sum(line["firsts"] == ["task", "task"] for line in lines)
    assert caught >= 0.8 * len(lines), lines
