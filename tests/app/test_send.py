"""`dragoman send`: what is said, how the answer is shown, and how it can go wrong."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.app import commands
from tests.app.agents import HOSTILE, SHOWN
from tests.app.commands import DRAGOMAN, Ran

Run = Callable[..., Ran]


def test_it_waits_and_shows_the_answer_with_the_ids_to_go_on(run: Run, url: str):
    ran = run("send", f"{url}/echo", "hello")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Artifact: answer\nText:\nhello\n\nTask: ")
    assert ran.field("State") == "completed"
    assert len(ran.field("Context")) == 36


def test_json_is_one_document_of_the_protocol(run: Run, url: str):
    ran = run("send", f"{url}/echo", "hello", "-o", "json")
    assert ran.code == 0
    assert ran.value["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert ran.value["task"]["artifacts"][0]["parts"] == [{"text": "hello"}]


def test_an_answer_without_a_task_is_a_message(run: Run, url: str):
    assert run("send", f"{url}/talking", "hello", "-o", "json").value["message"]["parts"] == [
        {"text": "Only words"}
    ]
    assert run("send", f"{url}/talking", "hello").out.startswith("Message:\nOnly words\n\n")


def test_a_stream_in_json_is_one_event_per_line_and_the_end_is_last(run: Run, url: str):
    ran = run("send", f"{url}/counting", "3", "--stream", "-o", "json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert "task" in events[0]
    chunks = [event["artifactUpdate"]["artifact"]["parts"] for event in events if "artifactUpdate" in event]
    assert chunks == [[{"text": "0\n"}], [{"text": "1\n"}], [{"text": "2\n"}]]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_stream_in_text_joins_the_chunks_and_restates_the_ids(run: Run, url: str):
    ran = run("send", f"{url}/counting", "3", "--stream")
    assert "Artifact: answer\nText:\n0\n1\n2\n\nState: completed\n" in ran.out
    labels = [line.partition(":")[0] for line in ran.out.splitlines()]
    assert labels[-3:] == ["Task", "Context", "State"]


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_question_comes_with_the_command_that_answers_it(
    run: Run, url: str, home: Path, stream: tuple[str, ...]
):
    """Shows: N1"""
    asked = run("send", f"{url}/asker", "paint it", *stream)
    assert asked.code == 0
    assert "Message:\nWhich colour?\n" in asked.out
    assert asked.field("State") == "input-required"
    words = shlex.split(asked.field("Resume"))
    assert words[-1] == "your answer"
    answered = run(*words[words.index("send") : -1], "Green", "-o", "json")
    assert answered.value["task"]["id"] == asked.field("Task")
    assert answered.value["task"]["artifacts"][0]["parts"] == [{"text": "Green it is"}]


def test_parts_keep_the_order_in_which_they_were_typed(run: Run, url: str, home: Path):
    (home / "scan.bin").write_bytes(b"\x00\x01")
    (home / "form.json").write_text('{"a": 1}')
    words = ["--data", "form.json", "--file", "scan.bin", "--media-type", "image/png", "--text", "after"]
    ran = run("send", f"{url}/mixed", "first", *words, "--file", "https://x.example/y.pdf", "-o", "json")
    parts = ran.value["task"]["history"][0]["parts"]
    assert parts == [
        {"text": "first"},
        {"data": {"a": 1}},
        {"raw": "AAE=", "filename": "scan.bin", "mediaType": "image/png"},
        {"text": "after"},
        {"url": "https://x.example/y.pdf", "filename": "y.pdf", "mediaType": "application/pdf"},
    ]


def test_text_and_values_can_come_from_stdin(run: Run, url: str):
    assert run("send", f"{url}/echo", "-", "-q", stdin="from a pipe").out == "from a pipe\n"
    assert "data:" in run("send", f"{url}/mixed", "--data", "-", "-q", stdin="[1]").out


def test_files_and_values_in_an_answer_are_named(run: Run, url: str):
    ran = run("send", f"{url}/mixed", "hello")
    assert 'Data:\n{\n  "n": 1\n}\n\n' in ran.out
    assert ran.field("File") == "report.pdf (application/pdf, 4 bytes)"


def test_quiet_is_only_what_the_agent_said(run: Run, url: str):
    assert run("send", f"{url}/echo", "hello", "-q").out == "hello\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--media-type", "a/b", "hello"], "comes after"),
        ([], "nothing to say"),
        (["--data", "{"], "not JSON"),
        (["hello", "--metadata", "[]"], "object"),
        (["hello", "--timeout", "soon"], "span of time"),
        (["hello", "--history", "-1"], "at least 0"),
        (["hello", "--header", "none"], "NAME:VALUE"),
        (["hello", "-o", "yaml"], "neither text nor json"),
        (["hello", "--colour"], "No such option"),
    ],
)
def test_what_is_typed_wrongly_exits_with_2_and_says_where(run: Run, words: list[str], says: str):
    ran = run("send", "http://127.0.0.1:1", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("A2ACLI_ERR_USAGE: ")
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_a_task_id_that_is_refused_never_becomes_a_task(run: Run, url: str):
    before = run("task", "list", f"{url}/echo", "-o", "json").value["totalSize"]
    ran = run("send", f"{url}/echo", "hello", "--task-id", "nobody", "-o", "json")
    assert (ran.code, ran.error["code"], ran.error["a2aCode"]) == (1, "TaskNotFoundError", -32001)
    assert run("task", "list", f"{url}/echo", "-o", "json").value["totalSize"] == before


def test_the_same_key_twice_is_one_task(run: Run, url: str):
    once = run("send", f"{url}/echo", "hello", "--key", "k1", "--message-id", "m1", "-o", "json")
    again = run("send", f"{url}/echo", "hello", "--key", "k1", "--message-id", "m1", "-o", "json")
    assert once.value["task"]["id"] == again.value["task"]["id"]


def test_async_answers_at_once_and_says_how_to_follow(run: Run, url: str):
    ran = run("send", f"{url}/staying", "hello", "--async")
    assert ran.code == 0
    assert ran.field("State") in ("submitted", "working")
    assert f"task get {url}/staying {ran.field('Task')} --wait" in ran.err


@pytest.mark.parametrize(
    ("agent", "state", "exits"),
    [
        ("echo", "completed", 0),
        ("failing", "failed", 10),
        ("declining", "rejected", 12),
        ("asker", "input-required", 13),
        ("doorman", "auth-required", 14),
    ],
)
def test_how_the_task_ended_is_an_exit_code_only_when_asked_for(
    run: Run, url: str, agent: str, state: str, exits: int
):
    plain = run("send", f"{url}/{agent}", "hello")
    assert (plain.code, plain.field("State")) == (0, state)
    assert run("send", f"{url}/{agent}", "hello", "--exit-status", "--stream").code == exits


def test_a_timeout_says_what_was_last_seen_and_leaves_the_task_alone(run: Run, url: str):
    assert run("send", f"{url}/staying", "hello", "--timeout", "0.2s").code == 5
    begun = run("send", f"{url}/staying", "hello", "--async").field("Task")
    ran = run("task", "get", f"{url}/staying", begun, "--wait", "--timeout", "1s", "-o", "json")
    assert (ran.code, ran.error["code"]) == (5, "A2ACLI_ERR_TIMEOUT")
    assert begun in ran.error["message"]
    words = shlex.split(ran.error["hint"])
    found = run(*words[words.index("task") : words.index("--wait")])
    assert found.field("State") == "working"


def test_an_interrupt_exits_with_130_and_leaves_the_task_alone(run: Run, url: str, home: Path):
    """S38's neighbour in C.5: SIGINT is 130 and the agent's task goes on."""
    with commands.process(home, "send", f"{url}/staying", "hello", "--stream") as waiting:
        task_id = waiting.until("Task: ").removeprefix("Task: ")
        waiting.until("Reading page 3")
        ran = waiting.end(signal.SIGINT)
    assert ran.code == 130
    assert task_id in ran.err
    assert "Traceback" not in ran.err
    assert run("task", "get", f"{url}/staying", task_id).field("State") == "working"


def test_an_agents_text_does_nothing_to_the_terminal(run: Run, url: str):
    """Terminal escapes are taken out (S38), also when they are cut between chunks."""
    for stream in ((), ("--stream",)):
        assert run("send", f"{url}/hostile", "hello", "-q", *stream).out == SHOWN
    assert run("send", f"{url}/hostile", "hello", "-q", "--raw").out.replace("\r", "") == HOSTILE.replace(
        "\r", ""
    )


def test_json_keeps_the_agents_text_without_showing_it_to_the_terminal(run: Run, url: str):
    ran = run("send", f"{url}/hostile", "hello", "-o", "json")
    parts = ran.value["task"]["artifacts"][0]["parts"]
    assert "".join(part["text"] for part in parts) == HOSTILE
    assert {c for c in ran.out if c < " " or "\x7f" <= c <= "\x9f" or c in "\u202e\u2066"} == {"\n"}


def test_whoever_reads_no_further_breaks_nothing(home: Path, url: str):
    words = [*DRAGOMAN, "send", f"{url}/counting", "20000", "--stream"]
    with subprocess.Popen(
        words, env=commands.environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as sending:
        assert sending.stdout is not None
        assert sending.stderr is not None
        sending.stdout.readline()
        sending.stdout.close()
        assert sending.stderr.read() == b""
        assert sending.wait(commands.SECONDS) == 0


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}])
def test_no_locale_and_no_terminal_is_too_poor(run: Run, url: str, locale: dict[str, str]):
    ran = run("send", f"{url}/echo", "Ünï→", "-o", "json", more=locale)
    assert ran.value["task"]["artifacts"][0]["parts"] == [{"text": "Ünï→"}]
    shown = run("send", f"{url}/echo", "Ünï", more=locale)
    assert shown.code == 0
    assert "\x1b" not in shown.out + shown.err


def test_progress_is_for_people_at_a_terminal_and_beside_the_result(home: Path, url: str):
    terminal, stderr = pty.openpty()
    words = [*DRAGOMAN, "send", f"{url}/staying", "hello"]
    more = {"TERM": "xterm", "NO_COLOR": "1"}
    said = ""
    try:
        with subprocess.Popen(
            words, env=commands.environment(home, more), stdout=subprocess.PIPE, stderr=stderr
        ) as waiting:
            while "working Reading page 3" not in said:
                ready, _, _ = select.select([terminal], [], [], commands.SECONDS)
                assert ready, said
                said += os.read(terminal, 65536).decode()
            waiting.send_signal(signal.SIGINT)
            out, _ = waiting.communicate(timeout=commands.SECONDS)
    finally:
        os.close(terminal)
        os.close(stderr)
    assert out == b""
    # Nothing but moving the cursor: NO_COLOR is obeyed.
    assert "\x1b[3" not in said


class _Door(BaseHTTPRequestHandler):
    """Answers every question in one way."""

    status, body = 401, b"{}"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def door(status: int, body: bytes) -> Iterator[str]:
    kind = type("Door", (_Door,), {"status": status, "body": body})
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(commands.SECONDS)


def test_a_door_that_is_closed_exits_with_4_and_no_secret_is_shown(run: Run):
    with door(401, b"{}") as closed:
        without = run("send", closed, "hello", "-o", "json")
        given = run("send", closed, "hello", "--debug", more={"A2ACLI_BEARER": "s3cret"})
    assert (without.code, without.error["code"]) == (4, "A2ACLI_ERR_CREDENTIALS_MISSING")
    assert "--bearer" in without.error["hint"]
    assert given.code == 4
    assert "A2ACLI_ERR_AUTH_FAILED" in given.err
    assert "s3cret" not in given.err + given.out


@pytest.mark.parametrize(
    ("status", "body", "code", "exits"),
    [(404, b"{}", "A2ACLI_ERR_CARD_NOT_FOUND", 3), (200, b'{"name": 1}', "A2ACLI_ERR_CARD_INVALID", 1)],
)
def test_a_card_that_is_missing_or_broken_is_told_apart(
    run: Run, status: int, body: bytes, code: str, exits: int
):
    with door(status, body) as there:
        ran = run("send", there, "hello", "-o", "json")
    assert (ran.error["code"], ran.code) == (code, exits)


def test_nobody_there_exits_with_3(run: Run):
    ran = run("send", "http://127.0.0.1:1", "hello", "-o", "json")
    assert (ran.code, ran.error["code"], ran.err) == (3, "A2ACLI_ERR_UNREACHABLE", "")
