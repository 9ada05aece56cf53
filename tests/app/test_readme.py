"""What the README and the pages for beginners show works as it is written, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman import Client, Node
from dragoman.app.cli.loading import load_agents
from dragoman.app.cli.setting_up import AGENT
from dragoman.app.config import Config, NodeConfig
from tests.app.commands import ROOT

README = (ROOT / "README.md").read_text()
AGENT_PY, CLIENT_PY = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


async def test_the_agent_and_the_client_of_the_readme_talk_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT_PY)
    agents = load_agents([str(tmp_path / "agent.py")])
    async with Node(agents, Config(node=NodeConfig(port=0))) as node:
        lines = CLIENT_PY.replace("http://127.0.0.1:8421", node.url).splitlines()
        program = "async def main():\n" + "\n".join(f"    {line}" for line in lines)
        names: dict[str, object] = {}
        exec(program, names)
        await names["main"]()  # type: ignore[operator]
        printed = capsys.readouterr().out.strip()
        assert printed == "6 € for a bell, yes?"
        assert f'"{printed}"' in CLIENT_PY
        async with Client(node.url) as shop:
            asked = await shop.send("a bell")
            answered = await shop.send("yes", task_id=asked.id)  # type: ignore[union-attr]
    assert answered.text == "Ordered. Thank you!"  # type: ignore[union-attr]


def test_the_tutorial_shows_the_agent_that_init_writes():
    tutorial = (ROOT / "docs" / "tutorial" / "first-agent.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL)[0]
    assert shown.split() == [
        word for word in AGENT[AGENT.index("async def") :].split() if word in shown.split()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    near = [link for link in links if "://" not in link]
    assert [link for link in near if not (page.parent / link).exists()] == []


def test_the_readme_fits_on_a_screen():
    assert len(README.splitlines()) <= 110
