"""A node that starts over many tasks is ready at once, takes up what was under way, and repeats no step."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import judge, keep_journals, lines
from tests.acceptance.load import Client, Told
from tests.acceptance.nodes import Caller, serving, until_quiet

TASKS = 2000
ACTIVE = 50
AT_ONCE = 50
READY_SECONDS_MAX = 5.0


@pytest.mark.within(120)
async def test_a_node_killed_over_many_tasks_is_ready_soon_and_repeats_no_step(tmp_path: Path):
    """Shows: F01"""
    told = Told(tmp_path / "told.jsonl")
    gate = tmp_path / "gate"
    async with serving(tmp_path, GATE=str(gate)) as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, "1")

            async def fill() -> None:
                for _ in range(TASKS // AT_ONCE):
                    await client.send("c")

            await asyncio.gather(*[fill() for _ in range(AT_ONCE)])
            # Each has done a step and waits before the next.
            tasks = await asyncio.gather(*[client.send("c2 s w s c", now=True) for _ in range(ACTIVE)])
            async with asyncio.timeout(30):
                while len(steps(node.effects, "back")) < ACTIVE:
                    await asyncio.sleep(0.01)
            node.kill()
            await node.ended()
            keep_journals(node.path, node.effects, time.monotonic_ns())
            began = time.monotonic()
            await node.start()
            ready = time.monotonic() - began
            gate.touch()
            await until_quiet(caller)
            for task in tasks:
                assert (await client.get(task["id"]))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert await node.stop() == 0
    told.close()
    verdict = judge(node.path, told.all, node.effects)
    print(f"\nrecovery: ready in {ready:.2f} s, {verdict}", file=sys.stderr)
    assert verdict.wrong == [], str(verdict)
    assert len(steps(node.effects, "ran")) == 2 * ACTIVE
    assert ready < READY_SECONDS_MAX


def steps(effects: Path, what: str) -> list[tuple[str, str]]:
    notes = [one for file in effects.glob("[0-9]*.jsonl") for one in lines(file)]
    return [(one["task"], one["step"]) for one in notes if one["what"] == what]
