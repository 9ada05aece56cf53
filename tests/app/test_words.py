"""What can be typed is explained, quickly, and the same in the reference; and what helps to begin works."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from dragoman import __version__
from dragoman.app.cli.program import app
from dragoman.app.cli.reference import page
from tests.app import commands
from tests.app.commands import ROOT, Ran

Run = Callable[..., Ran]


def every_command() -> dict[str, object]:
    """Each command by the words that call it."""
    found: dict[str, object] = {}

    def visit(command: object, words: tuple[str, ...]) -> None:
        below = getattr(command, "commands", {})
        for name, child in below.items():
            visit(child, (*words, name))
        if not below:
            found[" ".join(words)] = command

    visit(typer.main.get_command(app), ())
    return found


COMMANDS = every_command()


def test_every_command_says_what_it_does_and_shows_how():
    for words, command in COMMANDS.items():
        assert command.help, words  # type: ignore[attr-defined]
        if words != "version":
            assert f"dragoman {words}" in (command.epilog or ""), words  # type: ignore[attr-defined]


def test_every_option_says_what_it_does():
    for words, command in COMMANDS.items():
        for param in command.params:  # type: ignore[attr-defined]
            assert param.help, (words, param.name)


def test_the_reference_page_is_what_can_be_typed():
    written = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert page() == written, "make docs"


@pytest.mark.parametrize("words", [["--help"], ["send", "--help"], ["task", "get", "--help"], ["version"]])
def test_help_loads_nothing_that_it_does_not_need(home: Path, words: list[str]):
    """Help within 150 ms: what would cost more than that is not loaded."""
    program = (
        "import sys\nsys.argv = ['dragoman', *sys.argv[1:]]\nfrom dragoman.app.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=commands.environment(home),
        capture_output=True,
        text=True,
        timeout=commands.SECONDS,
        check=True,
    )
    heavy = {"aiohttp", "apsw", "pydantic", "rich", "uvicorn", "uvloop", "asyncio"}
    assert set(ran.stderr.split()) & heavy == set()


def test_help_is_there_by_many_names(run: Run):
    assert run("help", "task", "get").out == run("task", "get", "--help").out == run("task", "get", "-h").out
    none = run()
    assert none.code == 2
    assert "dragoman up" in none.err


def test_a_slip_of_the_pen_is_answered_with_what_was_meant(run: Run):
    ran = run("sned", "hello")
    assert (ran.code, ran.out) == (2, "")
    assert "send" in ran.err


def test_the_version_is_told(run: Run):
    assert run("version").out == run("--version").out == f"dragoman {__version__}\n"
    assert run("version", "-o", "json").value == {"version": __version__}


def test_bash_learns_to_complete(run: Run):
    script = run("completion", "bash").out
    assert "_DRAGOMAN_COMPLETE" in script
    more = {"_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": "dragoman task ca", "COMP_CWORD": "2"}
    assert run(more=more).out.split() == ["cancel"]
    assert run("completion", "cmd").code == 2


def test_config_show_names_the_source_of_each_setting(run: Run, home: Path):
    (home / "dragoman.toml").write_text("[node]\nport = 9000\n[tasks]\nattempts_max = 5\n")
    ran = run("config", "show", more={"DRAGOMAN_NODE_PORT": "9001"})
    assert "node.port: 9001 (DRAGOMAN_NODE_PORT)\n" in ran.out
    assert "tasks.attempts_max: 5 (dragoman.toml)\n" in ran.out
    assert "node.host: 127.0.0.1 (default)\n" in ran.out
    as_json = run("config", "show", "-o", "json").value
    assert as_json["node.port"] == {"value": 9000, "source": "dragoman.toml"}


def test_a_setting_that_is_misspelled_is_answered_with_the_right_one(run: Run, home: Path):
    (home / "dragoman.toml").write_text("[node]\nprot = 9000\n")
    ran = run("config", "show")
    assert ran.code == 2
    assert "'port'" in ran.err


def test_a_first_agent_runs_at_once(run: Run, home: Path):
    wrote = run("init", "agent", "hello")
    assert (wrote.code, wrote.out) == (0, "Wrote: hello/agent.py\n")
    assert "serve hello/agent.py" in wrote.err
    with commands.node(home, "serve", "hello/agent.py", "--port", "0") as (node, url):
        asked = run("send", url, "hello")
        assert run("send", url, "--task-id", asked.field("Task"), "Ada", "-q").out == "Hello, Ada!\n"
        assert node.end(signal.SIGTERM).code == 0
    again = run("init", "agent", "hello")
    assert again.code == 1
    assert "is there already" in again.err


def test_the_doctor_says_what_blocks_a_node_and_who_it_is(run: Run, home: Path):
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        ran = run("doctor", "--port", str(port), "-o", "json")
    found = {finding["what"]: finding for finding in ran.value["findings"]}
    assert (ran.code, ran.value["ok"]) == (1, False)
    assert found["port"]["state"] == "blocked"
    assert f"process {os.getpid()}" in found["port"]["words"]
    assert {"python", "config", "clock", "disk", "store"} <= set(found)
    assert "synchronous=FULL" in found["store"]["words"]


def test_the_doctor_finds_a_file_that_is_no_store_and_a_setting_that_cannot_be(run: Run, home: Path):
    (home / "letter.db").write_text("Dear reader " * 1000)
    ran = run("doctor", "--port", "0", "--store", "sqlite:letter.db")
    assert ran.code == 1
    assert "blocked  store" in ran.out
    (home / "dragoman.toml").write_text("[node]\nport = 'x'\n")
    assert run("doctor", "-o", "json").value["findings"][0]["state"] == "blocked"


def test_the_doctor_leaves_nothing_behind(run: Run, home: Path):
    assert run("doctor", "--port", "0").code == 0
    assert list(home.iterdir()) == []


def test_json_errors_are_one_object(run: Run):
    ran = run("task", "get", "-o", "json")
    assert ran.code == 2
    assert json.loads(ran.out)["error"].keys() == {"code", "message", "hint", "a2aCode"}
