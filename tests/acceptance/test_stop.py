"""SIGTERM: the node answers what it can, tells streams where to go on, and ends well; the next one goes on."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import judge, keep_journals, lines
from tests.acceptance.load import Client, Told, loaded
from tests.acceptance.nodes import Caller, serving, until_quiet

SEED = int(os.environ.get("SEED", "1"))
STOPS = 10
CLIENTS = 8
# Streams are told at once; turns that run get this long.
DRAIN_SECONDS = "5"
STOP_SECONDS_MAX = 15.0


@pytest.mark.slow
@pytest.mark.within(120)
async def test_a_node_stopped_under_load_ends_well_and_the_next_one_goes_on(tmp_path: Path, scale: int):
    """Shows: F01, F04"""
    began = time.monotonic()
    told = Told(tmp_path / "told.jsonl")
    chance = random.Random(f"{SEED}")
    codes, seconds, callers = [], [], []
    async with serving(tmp_path, DRAGOMAN_NODE_DRAIN_SECONDS=DRAIN_SECONDS) as node:
        left, is_due = 0, asyncio.Event()

        def count(kind: str) -> None:
            nonlocal left
            left -= kind in ("ack", "event")
            if left == 0:
                is_due.set()

        async def stops() -> None:
            nonlocal left
            await node.start(fresh=False)
            for _ in range(STOPS * scale):
                is_due.clear()
                left = chance.randint(10, 300)
                await is_due.wait()
                asked = time.monotonic()
                codes.append(await node.stop())
                seconds.append(time.monotonic() - asked)
                keep_journals(node.path, node.effects, time.monotonic_ns())
                await node.start(fresh=False)

        told.on = count
        await loaded(node, told, SEED, CLIENTS, stops(), callers.append)
        async with Caller(node.url) as caller:
            await until_quiet(caller)
        codes.append(await node.stop())
    told.close()
    verdict = judge(node.path, told.all, node.effects)
    hints = sum(caller.hints for caller in callers)
    print(
        f"\nF38 seed={SEED} stops={len(codes)} hints={hints} slowest={max(seconds):.2f} s {verdict}"
        f" {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert verdict.wrong == [], str(verdict)
    assert set(codes) == {0}
    assert max(seconds) < STOP_SECONDS_MAX
    assert hints > 0
    assert sum(caller.wrong_hints for caller in callers) == 0


async def test_a_turn_that_outlives_the_drain_goes_on_in_the_next_process(tmp_path: Path):
    """Shows: F01"""
    told = Told(tmp_path / "told.jsonl")
    gate = tmp_path / "gate"
    async with serving(tmp_path, GATE=str(gate), DRAGOMAN_NODE_DRAIN_SECONDS="0.2") as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            task = await client.send("c2 s w c s c", now=True)
            async with asyncio.timeout(20):
                while not any(
                    one["what"] == "back" for file in node.effects.glob("*.jsonl") for one in lines(file)
                ):
                    await asyncio.sleep(0.01)
            assert await node.stop() == 0
            keep_journals(node.path, node.effects, time.monotonic_ns())
            gate.touch()
            await node.start()
            await until_quiet(caller)
            assert (await client.get(task["id"]))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert await node.stop() == 0
    told.close()
    verdict = judge(node.path, told.all, node.effects)
    assert verdict.wrong == [], str(verdict)


async def test_a_second_sigterm_ends_the_node_at_once(tmp_path: Path):
    async with serving(tmp_path, GATE=str(tmp_path / "gate")) as node:
        await node.start()
        told = Told(tmp_path / "told.jsonl")
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            await client.send("c s w", now=True)
            async with asyncio.timeout(20):
                while not any(
                    one["what"] == "back" for file in node.effects.glob("*.jsonl") for one in lines(file)
                ):
                    await asyncio.sleep(0.01)
            node.kill(15)
            # The first has arrived when the node takes no more requests.
            async with asyncio.timeout(20):
                while await is_open(node.port):
                    await asyncio.sleep(0.01)
            node.kill(15)
            assert await node.ended() == 128 + 15
        told.close()
    verdict = judge(node.path, told.all, node.effects, quiet=False)
    assert verdict.wrong == [], str(verdict)


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
