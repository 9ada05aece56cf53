"""The examples do what they say: each is served on a loopback port and talked to through the client."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest

from dragoman import ArtifactChanged, Client, Message, Node, Part, Role, State, Task
from dragoman.app.cli.loading import load_agents
from dragoman.app.config import Config, NodeConfig, StoreConfig

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(autouse=True)
def restored_path() -> Iterator[None]:
    """Loading a file puts its folder on the path, as Python does."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@asynccontextmanager
async def served(name: str, store: str = "memory:") -> AsyncIterator[tuple[Client, ModuleType]]:
    """A node with an example, a client for it, and the example's module."""
    agents = load_agents([str(EXAMPLES / f"{name}.py")])
    module = [it for key, it in sys.modules.items() if key.startswith(f"dragoman_file_{name}_")][-1]
    config = Config(node=NodeConfig(port=0, drain_seconds=1), store=StoreConfig(url=store))
    async with Node(agents, config) as node, Client(node.url) as client:
        yield client, module


def answer(task: Task, *parts: Part) -> Message:
    return Message(f"answer to {task.id}", Role.USER, parts, task.context_id, task.id)


async def test_echo_says_what_was_said():
    async with served("echo") as (client, _):
        task = await client.send("Hello?")
    assert isinstance(task, Task)
    assert (task.state, task.text) == (State.COMPLETED, "Hello?")


async def test_streaming_tells_its_words_one_by_one():
    async with served("streaming") as (client, _):
        events = [logged.event async for logged in client.stream("to be or")]
    chunks = [event.artifact.text for event in events if isinstance(event, ArtifactChanged)]
    assert chunks == ["ot ", "eb ", "ro "]


async def test_durable_goes_on_after_a_restart_and_reserves_once(tmp_path: Path):
    store = f"sqlite:{tmp_path / 'orders.db'}"
    reserved: list[str] = []

    async def reserve(wish: str) -> str:
        reserved.append(wish)
        return f"R-{len(reserved)}"

    async with served("durable", store) as (client, module):
        module.reserve = reserve  # type: ignore[attr-defined]
        asked = await client.send("a blue bicycle")
        assert isinstance(asked, Task)
        assert asked.state is State.INPUT_REQUIRED
        assert re.search("a blue bicycle as R-1", asked.text)
    async with served("durable", store) as (client, module):
        module.reserve = reserve  # type: ignore[attr-defined]
        ended = await client.send(answer(asked, Part(text="yes")))
    assert isinstance(ended, Task)
    assert (ended.id, ended.state, ended.text) == (
        asked.id,
        State.COMPLETED,
        "R-1 is ordered: a blue bicycle.",
    )
    assert reserved == ["a blue bicycle"]


async def test_durable_lets_go_when_the_answer_is_no():
    async with served("durable") as (client, _):
        asked = await client.send("a blue bicycle")
        assert isinstance(asked, Task)
        ended = await client.send(answer(asked, Part(text="no")))
    assert isinstance(ended, Task)
    assert ended.text.endswith("is let go.")


async def test_kyc_asks_for_the_passport_and_passes():
    """The exchange of the A2A walk-through, in its words.

    Shows: N13
    """
    scan = Part(url="https://files.example.com/88412/passport.png", filename="passport.png")
    async with served("kyc") as (client, _):
        asked = await client.send("Run a KYC check on applicant 88412.")
        assert isinstance(asked, Task)
        assert asked.state is State.INPUT_REQUIRED
        assert asked.text == "Provide a passport scan for applicant 88412."
        ended = await client.send(answer(asked, scan))
    assert isinstance(ended, Task)
    assert ended.state is State.COMPLETED
    [artifact] = ended.artifacts
    assert artifact.name == "kyc_result"
    assert artifact.text == "KYC PASS: identity verified, no sanctions match."


@pytest.mark.parametrize("media_type", ["", "image/png", "application/pdf"])
async def test_kyc_takes_a_scan_that_comes_with_the_request(media_type: str):
    parts = (Part(text="Check applicant 7"), Part(raw=b"\x89PNG", filename="scan", media_type=media_type))
    async with served("kyc") as (client, _):
        task = await client.send(Message("m", Role.USER, parts))
    assert isinstance(task, Task)
    assert task.state is State.COMPLETED


async def test_kyc_asks_again_when_the_answer_has_no_file():
    async with served("kyc") as (client, _):
        asked = await client.send("Check applicant 7")
        assert isinstance(asked, Task)
        again = await client.send(answer(asked, Part(text="I have none")))
    assert isinstance(again, Task)
    assert again.state is State.INPUT_REQUIRED


async def test_kyc_has_the_card_of_the_walk_through():
    """Shows: N13"""
    async with served("kyc") as (client, _):
        card = await client.card()
    assert (card.name, card.version) == ("compliance-checker", "2.1.0")
    assert card.description == (
        "Validates documents against regulatory requirements for financial services. "
        "Supports KYC, AML, and SOX compliance checks."
    )
    assert card.capabilities.streaming is True
    assert card.capabilities.push_notifications is False
    modes = {skill.id: (skill.name, skill.input_modes, skill.output_modes) for skill in card.skills}
    assert modes == {
        "kyc_check": ("KYC Compliance Check", ("text", "file"), ("text",)),
        "aml_screening": ("AML Screening", ("text",), ("text",)),
    }
