"""A disk that fills up and is freed again: new work is refused, what is there is read and canceled, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.checker import expected, judge, lines
from tests.acceptance.load import Client, Told
from tests.acceptance.nodes import Caller, Refused, serving, until_quiet

SEED = int(os.environ.get("SEED", "1"))
CYCLES = 10
CLIENTS = 4
STORE_FULL = -32091
# For all that a campaign writes; what is filled is the rest.
DISK_MEGABYTES = 48
# How often a send of this size may still find room behind the filler.
SENDS_MAX = 2000
BIG = "f20"


@pytest.fixture
def disk(tmp_path: Path, scale: int) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES * scale}m", "tmpfs", place],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        words = f"no small disk here, so no test of a full one: {done.stderr.strip() or 'mount failed'}"
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail(words)
        pytest.skip(words)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(disk: Path) -> None:
    """Take all the room there is."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while filler.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


async def refused(client: Client) -> Refused:
    """Send until there is no room for more; what is accepted before that is kept."""
    for _ in range(SENDS_MAX):
        try:
            await client.send(BIG, now=True)
        except Refused as refusal:
            return refusal
    raise AssertionError("a full disk took everything")


async def accepted(client: Client, seconds: float = 20.0) -> None:
    """Until a send is taken again: nobody restarts the node for it."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                await client.send("c")
                return
            except Refused as refusal:
                assert refusal.code == STORE_FULL, refusal
                await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.within(120)
async def test_a_full_disk_refuses_new_work_and_reads_what_is_there_until_there_is_room(
    tmp_path: Path, disk: Path, scale: int
):
    """Shows: F16"""
    began = time.monotonic()
    told = Told(tmp_path / "told.jsonl")
    refusals = canceled = 0
    async with serving(tmp_path, disk=disk) as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            for _ in range(CYCLES * scale):
                done = await client.send("c3 s c")
                asking = await client.send("c a c")
                fill(disk)
                refusal = await refused(client)
                refusals += 1
                assert refusal.code == STORE_FULL, refusal
                assert refusal.status == 503
                assert int(refusal.headers["Retry-After"]) > 0
                # What is there is still read …
                again = await client.get(done["id"])
                assert again["status"]["state"] == "TASK_STATE_COMPLETED"
                assert again["artifacts"][0]["parts"][0]["text"] == expected("c")
                assert (await caller.ask("ListTasks", {"pageSize": 5}))["tasks"]
                (disk / "filler").unlink()
                await accepted(client)
                await client.cancel(asking["id"])
                canceled += (await client.get(asking["id"]))["status"]["state"] == "TASK_STATE_CANCELED"
            await until_quiet(caller)
        assert await node.stop() == 0
        told.close()
        verdict = judge(node.path, told.all, node.effects)
    print(
        f"\nF16 seed={SEED} cycles={refusals} canceled={canceled} {verdict} {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert verdict.wrong == [], str(verdict)
    assert canceled == CYCLES * scale


async def noted(effects: Path, what: str, seconds: float = 20.0) -> None:
    """Until an agent has written this down."""
    async with asyncio.timeout(seconds):
        while not any(one["what"] == what for file in effects.glob("*.jsonl") for one in lines(file)):
            await asyncio.sleep(0.01)


async def test_a_turn_that_met_a_full_disk_goes_on_when_there_is_room(tmp_path: Path, disk: Path):
    """Shows: F16"""
    told = Told(tmp_path / "told.jsonl")
    gate = tmp_path / "gate"
    async with serving(tmp_path, disk=disk, GATE=str(gate)) as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            task = await client.send("c2 s w c200 s c", now=True)
            await noted(node.effects, "back")
            fill(disk)
            await refused(client)
            gate.touch()
            await noted(node.effects, "passed")
            await refused(client)
            (disk / "filler").unlink()
            await accepted(client)
            await until_quiet(caller)
            assert (await client.get(task["id"]))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert await node.stop() == 0
        told.close()
        verdict = judge(node.path, told.all, node.effects)
    assert verdict.wrong == [], str(verdict)


async def test_a_task_is_canceled_on_a_full_disk(tmp_path: Path, disk: Path):
    """Shows: F16"""
    told = Told(tmp_path / "told.jsonl")
    async with serving(tmp_path, disk=disk) as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            asking = await client.send("c a c")
            fill(disk)
            await refused(client)
            await client.cancel(asking["id"])
            assert (await client.get(asking["id"]))["status"]["state"] == "TASK_STATE_CANCELED"


async def test_a_node_that_died_on_a_full_disk_starts_on_it_and_reads(tmp_path: Path, disk: Path):
    """Shows: F16"""
    told = Told(tmp_path / "told.jsonl")
    async with serving(tmp_path, disk=disk, GATE=str(tmp_path / "gate")) as node:
        await node.start()
        async with Caller(node.url) as caller:
            client = Client(node, told, caller, f"{SEED}")
            task = await client.send("c s w c", now=True)
            await noted(node.effects, "back")
            node.kill()
            await node.ended()
            fill(disk)
            await node.start()
            assert (await client.get(task["id"]))["status"]["state"] == "TASK_STATE_WORKING"
