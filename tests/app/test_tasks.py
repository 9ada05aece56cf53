"""`dragoman task …` and `card get`: tasks that are there, read, followed and stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.app import commands
from tests.app.commands import Ran

Run = Callable[..., Ran]


def test_get_shows_what_a_task_brought(run: Run, url: str):
    sent = run("send", f"{url}/echo", "hello")
    ran = run("task", "get", f"{url}/echo", sent.field("Task"))
    assert ran.out == sent.out
    as_json = run("task", "get", f"{url}/echo", sent.field("Task"), "-o", "json")
    assert as_json.value["id"] == sent.field("Task")


def test_get_with_a_history_shows_who_said_what(run: Run, url: str):
    asked = run("send", f"{url}/asker", "paint it")
    ran = run("task", "get", f"{url}/asker", asked.field("Task"), "--history", "5")
    assert ran.out.startswith("From: user\nMessage:\npaint it\n\n")


def test_get_can_wait_until_the_task_needs_nobody(run: Run, url: str, home: Path):
    task_id = run("send", f"{url}/staying", "hello", "--async").field("Task")
    words = ["task", "get", f"{url}/staying", task_id, "--wait", "--poll-interval", "50ms", "-o", "json"]
    with commands.process(home, *words) as waiting:
        assert run("task", "cancel", f"{url}/staying", task_id).field("State") == "canceled"
        assert json.loads(waiting.line())["status"]["state"] == "TASK_STATE_CANCELED"
        assert waiting.end().code == 0


def test_list_filters_and_pages(run: Run, url: str):
    # A context of its own: other tests ask the same agent.
    made = [
        run("send", f"{url}/declining", "hello", "--context-id", "listed").field("Task") for _ in range(3)
    ]
    asked = (
        "task",
        "list",
        f"{url}/declining",
        "--context-id",
        "listed",
        "--state",
        "rejected",
        "-o",
        "json",
    )
    first = run(*asked, "--page-size", "2").value
    assert len(first["tasks"]) == 2
    rest = run(*asked, "--page-token", first["nextPageToken"]).value
    assert [task["id"] for task in first["tasks"] + rest["tasks"]] == made[::-1]
    none = run("task", "list", f"{url}/declining", "--state", "working", "-o", "json").value
    assert none["tasks"] == []


def test_list_shows_one_task_after_the_other(run: Run, url: str):
    sent = run("send", f"{url}/talking", "hello")
    one = run("send", f"{url}/echo", "hello", "--context-id", sent.field("Context"))
    ran = run("task", "list", f"{url}/echo", "--context-id", sent.field("Context"))
    assert ran.out.startswith(
        f"Task: {one.field('Task')}\nContext: {sent.field('Context')}\nState: completed\nSince: "
    )
    assert ran.field("Total") == "1"


def test_list_in_json_can_be_one_task_per_line(run: Run, url: str):
    run("send", f"{url}/echo", "hello")
    ran = run("task", "list", f"{url}/echo", "--stream", "--page-size", "1", "-o", "json")
    assert json.loads(ran.out.splitlines()[0])["status"]


def test_a_state_that_is_none_is_a_usage_error(run: Run):
    ran = run("task", "list", "http://127.0.0.1:1", "--state", "done")
    assert ran.code == 2
    assert "input-required" in ran.err


def test_canceling_what_is_over_is_the_protocols_error(run: Run, url: str):
    task_id = run("send", f"{url}/echo", "hello").field("Task")
    ran = run("task", "cancel", f"{url}/echo", task_id, "-o", "json")
    assert (ran.code, ran.error["code"], ran.error["a2aCode"]) == (1, "TaskNotCancelableError", -32002)


def test_subscribe_follows_a_task_to_its_end(run: Run, url: str, home: Path):
    task_id = run("send", f"{url}/staying", "hello", "--async").field("Task")
    with commands.process(home, "task", "subscribe", f"{url}/staying", task_id) as following:
        assert following.line() == f"Task: {task_id}"
        run("task", "cancel", f"{url}/staying", task_id)
        ran = following.end()
    assert ran.code == 0
    assert ran.field("State") == "canceled"


def test_subscribing_to_what_is_over_shows_it(run: Run, url: str):
    task_id = run("send", f"{url}/echo", "hello").field("Task")
    assert run("task", "subscribe", f"{url}/echo", task_id, "-o", "json").value["id"] == task_id
    lines = run("task", "subscribe", f"{url}/echo", task_id, "-o", "json", "--stream").out.splitlines()
    assert json.loads(lines[-1])["task"]["id"] == task_id


def test_card_get_shows_who_an_agent_is(run: Run, url: str):
    ran = run("card", "get", f"{url}/echo")
    assert (ran.field("Name"), ran.field("Streaming")) == ("echo", "yes")
    assert f"Interface: JSONRPC 1.0 {url}/echo" in ran.out.splitlines()
    assert ran.field("Skill") == "say_again: say again"
    assert run("card", "get", f"{url}/echo", "-o", "json").value["name"] == "echo"
    # A host and a port are enough of an address.
    assert run("card", "get", url.removeprefix("http://").removesuffix("/agents")).field("Name") == "echo"
    assert run("card", "get", "-a", f"{url}/asker").field("Name") == "asker"
