"""One node with all test agents, for the tests that only talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app import commands
from tests.app.commands import AGENTS, Ran


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the agents are: `{url}/agents/NAME`."""
    with commands.node(tmp_path_factory.mktemp("node"), "serve", str(AGENTS), "--port", "0") as (_, address):
        yield f"{address}/agents"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The state folder, and where commands are run."""
    return tmp_path


@pytest.fixture
def run(home: Path) -> Callable[..., Ran]:
    """Runs one command."""

    def command(
        *words: str, more: dict[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
    ) -> Ran:
        return commands.run(home, *words, more=more, cwd=cwd, stdin=stdin)

    return command
