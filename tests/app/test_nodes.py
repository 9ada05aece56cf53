"""`dragoman serve` and `up`: what is served, what is said where, and how a node ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app import commands
from tests.app.commands import AGENTS, Ran

Run = Callable[..., Ran]

ECHO = """
from dragoman import Agent, Turn

async def echo(turn: Turn):
    return turn.text
"""


def fetched(url: str) -> object:
    with urllib.request.urlopen(url, timeout=commands.SECONDS) as response:
        return json.load(response)


def names(url: str) -> list[str]:
    return [agent["name"] for agent in fetched(url)["agents"]]  # type: ignore[index]


def test_serve_serves_the_agents_of_a_file_and_says_where(home: Path):
    """Shows: N2"""
    (home / "two.py").write_text(f"{ECHO}\none = Agent('one', echo)\ntwo = Agent('two', echo)\nsame = one\n")
    with commands.node(home, "serve", "two.py", "--port", "0", "--store", "sqlite:two.db") as (node, url):
        assert names(url) == ["one", "two"]
        assert fetched(f"{url}/.well-known/agent-card.json")["name"] == "one"  # type: ignore[index]
        ran = node.end(signal.SIGTERM)
    # Whoever reads stdout gets that line and nothing else; nobody watches stderr, so it is silent.
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize("target", ["one.py:agent", "one.py:echo", "one.py:by name", "one:agent"])
def test_serve_takes_an_agent_by_its_name_or_a_plain_function(home: Path, target: str):
    """Shows: N2"""
    (home / "one.py").write_text(f"{ECHO}\nagent = Agent('by name', echo)\n")
    with commands.node(home, "serve", target, "--port", "0") as (_, url):
        assert names(url) == ["echo" if target.endswith("echo") else "by name"]


def test_a_file_may_have_any_name_and_import_its_neighbours(home: Path):
    folder = home / "there"
    folder.mkdir()
    (folder / "neighbour.py").write_text("WORD = 'hi'\n")
    (folder / "json.py").write_text(f"{ECHO}\nfrom neighbour import WORD\nagent = Agent(WORD, echo)\n")
    with commands.node(home, "serve", "there/json.py", "--port", "0") as (_, url):
        assert names(url) == ["hi"]


@pytest.mark.parametrize(
    ("text", "target", "says"),
    [
        (None, "gone.py", "there is no file gone.py"),
        (None, "gone", "neither a file nor a module"),
        (ECHO, "a.py", "serve a.py:echo"),
        (ECHO, "a.py:nobody", "has no 'nobody'"),
        ("x = (", "a.py", "SyntaxError"),
        ("import nowhere", "a.py", "No module named 'nowhere'"),
        (f"{ECHO}\na = Agent('x', echo)\nb = Agent('x', echo)", "a.py", "two agents are named 'x'"),
        (f"{ECHO}\na = Agent('x')", "a.py", "has no code"),
    ],
)
def test_what_cannot_be_served_is_told_precisely(
    run: Run, home: Path, text: str | None, target: str, says: str
):
    if text is not None:
        (home / "a.py").write_text(text)
    ran = run("serve", target, "--port", "0")
    assert (ran.code, ran.out) == (1, "")
    assert "DRAGOMAN_ERR_AGENT_FILE: " in ran.err
    assert says in ran.err
    assert "dragoman/app/cli" not in ran.err


@pytest.mark.parametrize("words", [["--port", "http"], ["--store", "tape:"], ["--input-deadline", "soon"]])
def test_settings_that_cannot_be_exit_with_2(run: Run, words: list[str]):
    ran = run("serve", str(AGENTS), "--port", "0", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("A2ACLI_ERR_USAGE: ")


def test_a_port_in_use_is_named(run: Run):
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        ran = run("serve", str(AGENTS), "--port", str(port))
    assert ran.code == 1
    assert f"DRAGOMAN_ERR_ADDRESS: 127.0.0.1:{port}" in ran.err


def test_a_file_that_is_no_store_is_named(run: Run, home: Path):
    (home / "letter.db").write_text("Dear reader, this is no database at all. " * 100)
    ran = run("serve", str(AGENTS), "--port", "0", "--store", "sqlite:letter.db")
    assert ran.code == 1
    assert "DRAGOMAN_ERR_STORE: the store sqlite:letter.db cannot be opened" in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_node_cleanly_while_a_turn_runs(home: Path, run: Run, number: signal.Signals):
    """Shows: N2"""
    more = {"DRAGOMAN_NODE_DRAIN_SECONDS": "0.1"}
    with commands.node(home, "serve", f"{AGENTS}:staying", "--port", "0", more=more) as (node, url):
        assert run("send", url, "hello", "--async").code == 0
        ran = node.end(number)
    assert ran.code == 0
    assert "Traceback" not in ran.err


def test_a_second_signal_ends_a_node_at_once(home: Path, run: Run):
    with commands.node(home, "serve", f"{AGENTS}:staying", "--port", "0") as (node, url):
        assert run("send", url, "hello", "--async").code == 0
        node.popen.send_signal(signal.SIGTERM)
        # It is draining as soon as it takes no more connections.
        port = int(url.rpartition(":")[2])
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)):
                    break
        assert node.end(signal.SIGTERM).code == 128 + signal.SIGTERM


def test_a_question_fails_after_the_nodes_input_deadline(home: Path, run: Run):
    """Shows: N2"""
    words = ["serve", f"{AGENTS}:asker", "--port", "0", "--input-deadline", "200ms"]
    with commands.node(home, *words) as (_, url):
        task_id = run("send", url, "hello").field("Task")
        ran = run("task", "subscribe", url, task_id, "--stream", "--exit-status")
        while ran.field("State") == "input-required":
            ran = run("task", "get", url, task_id)
    assert ran.field("State") == "failed"


def test_the_log_is_one_json_object_per_line(home: Path, run: Run):
    """Shows: N1"""
    (home / "a.py").write_text(
        f"{ECHO}\n@Agent('bad')\nasync def agent(turn):\n    raise ValueError('one\\ntwo')\n"
    )
    with commands.node(home, "serve", "a.py", "--port", "0", "--log-format", "json") as (node, url):
        assert run("send", url, "hello").field("State") == "failed"
        ran = node.end(signal.SIGTERM)
    lines = [json.loads(line) for line in ran.err.splitlines()]
    [told] = [line for line in lines if line["level"] == "error"]
    assert told["logger"].startswith("dragoman.")
    assert any("one" in line for line in told["trace"])


def test_up_is_a_node_that_asks_streams_and_stays(home: Path, run: Run):
    """Shows: N1"""
    with commands.node(home, "up", "--port", "0", "--log-format", "json") as (node, url):
        assert fetched(f"{url}/healthz") == {"status": "ok"}
        # Without a TARGET, commands talk to the node that has this machine's store open.
        asked = run("send", "plan a picnic")
        assert asked.field("State") == "input-required"
        answered = run("send", "--task-id", asked.field("Task"), "six", "--stream")
        assert "A plan for: plan a picnic" in answered.out
        assert run("task", "list").field("Total") == "1"
        again = run("up", "--port", "0")
        assert again.code == 1
        assert (
            f"DRAGOMAN_ERR_STORE_HELD: {home / 'tasks.db'} is open in process {node.popen.pid}" in again.err
        )
        assert run("doctor", "-o", "json").value["ok"] is True
        said = node.end(signal.SIGTERM).err
    assert f"send {url} 'plan a picnic'" in said
    with commands.node(home, "up", "--port", "0") as (_, url):
        assert run("task", "get", asked.field("Task")).field("State") == "completed"
    assert (home / "tasks.db").stat().st_mode & 0o077 == 0


def test_up_reads_its_configuration_and_flags_win(home: Path):
    """Shows: N1"""
    (home / "other.toml").write_text('[node]\nport = 1\n[store]\nurl = "memory:"\n[log]\nformat = "json"\n')
    with commands.node(home, "up", "--config", "other.toml", "--port", "0") as (_, url):
        assert fetched(f"{url}/healthz") == {"status": "ok"}
    assert not (home / "tasks.db").exists()


def test_without_a_target_and_a_node_it_says_how_to_start_one(run: Run):
    ran = run("send", "hello", "-o", "json")
    assert (ran.code, ran.error["code"]) == (3, "A2ACLI_ERR_UNREACHABLE")
    assert "dragoman up" in ran.error["hint"]


def test_a_node_of_another_store_is_found_by_that_store(home: Path, run: Run):
    words = ["serve", f"{AGENTS}:echo", f"{AGENTS}:asker", "--port", "0", "--store", "sqlite:mine.db"]
    with commands.node(home, *words):
        assert run("send", "--store", "sqlite:mine.db", "hello", "-q").out == "hello\n"
        assert run("send", "--store", "sqlite:mine.db", "asker", "hello").field("State") == "input-required"
        # What dragoman.toml says of the store is true for clients too.
        (home / "dragoman.toml").write_text('[store]\nurl = "sqlite:mine.db"\n')
        assert run("send", "hello", "-q").out == "hello\n"


def test_a_nodes_state_folder_is_nobody_elses_to_read(home: Path):
    place = home / "deep" / "home"
    with commands.node(home, "up", "--port", "0", more={"DRAGOMAN_HOME": str(place)}):
        assert os.stat(place).st_mode & 0o077 == 0
