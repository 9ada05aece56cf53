"""The power goes: what was not synced is gone or torn. What was promised before is there nevertheless."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import judge
from tests.acceptance.load import Client, Told
from tests.acceptance.nodes import HERE, Caller, serving, until_quiet
from tests.acceptance.powercut import Cuts, Disk, Promise, Write, acks, deeds, strace

pytestmark = pytest.mark.usefixtures("strace")

SEED = int(os.environ.get("SEED", "1"))
CUTS = 20
CLIENTS = 4
OPERATIONS = 10


async def record(folder: Path, operations: int = OPERATIONS, **environment: str) -> Path:
    """A node at work under strace, and then stopped; the trace."""
    trace = folder / "trace"
    told = Told(folder / "told.jsonl")
    async with serving(folder, HERE / "recorded.py", WAL_PAGES_MAX="60", **environment) as node:
        await node.start(*strace(trace))
        async with Caller(node.url) as caller:

            async def work(number: int) -> None:
                client = Client(node, told, caller, f"{SEED}.{number}")
                for _ in range(operations):
                    await client.operate()

            await asyncio.gather(*[work(number) for number in range(CLIENTS)])
            await until_quiet(caller)
        assert await node.stop() == 0
    told.close()
    return trace


def cut(trace: Path, folder: Path, images: Path, cuts: int) -> Cuts:
    """Cut the power after promises and in the middle of writes, in three ways each, and judge what is left."""
    chance = random.Random(f"{SEED}")
    sequence = list(deeds(trace, folder))
    moments = [place for place, deed in enumerate(sequence) if isinstance(deed, Promise)]
    writes = [place for place, deed in enumerate(sequence) if isinstance(deed, Write) and place > moments[0]]
    chosen = {*chance.sample(moments, cuts // 2), *chance.sample(writes, cuts - cuts // 2)}
    disk, found, promises = Disk(folder), Cuts(promises=len(moments)), []
    for place, deed in enumerate(sequence):
        disk.do(deed)
        if isinstance(deed, Promise):
            promises.append(deed)
        if place not in chosen:
            continue
        for variant, luck in (("none", None), ("some", chance), ("others", chance)):
            image = images / f"{place}-{variant}"
            found.writes_lost += disk.image(image, luck)
            verdict = judge(image / "store.db", acks(promises), None, quiet=False)
            found.wrong += [
                f"cut after deed {place}, {variant} of the unsynced: {words}" for words in verdict.wrong
            ]
            found.images += 1
            if not verdict.wrong:
                shutil.rmtree(image)
    found.syncs = disk.syncs
    return found


def say(what: str, found: Cuts, began: float) -> None:
    print(
        f"\nF03 {what} seed={SEED} promises={found.promises} syncs={found.syncs} images={found.images}"
        f" writes_lost={found.writes_lost} wrong={len(found.wrong)} lost={sum('lost:' in one for one in found.wrong)}"
        f" {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )


@pytest.mark.slow
@pytest.mark.within(180)
async def test_a_power_cut_loses_nothing_that_was_promised(tmp_path: Path, scale: int):
    """Shows: F03"""
    began = time.monotonic()
    folder = tmp_path / "node"
    folder.mkdir()
    trace = await record(folder, OPERATIONS * scale)
    found = cut(trace, folder, tmp_path / "images", CUTS * scale)
    say("full", found, began)
    assert found.wrong == [], "\n".join(found.wrong[:20])
    assert found.images == 3 * CUTS * scale
    assert found.writes_lost > found.images / 6, "cuts at which everything was synced show nothing"


@pytest.mark.within(180)
async def test_the_power_cut_would_find_a_store_that_syncs_less(tmp_path: Path):
    """Shows: F03"""
    began = time.monotonic()
    folder = tmp_path / "node"
    folder.mkdir()
    trace = await record(folder, SYNCHRONOUS="normal")
    found = cut(trace, folder, tmp_path / "images", CUTS)
    say("negative control, synchronous=normal", found, began)
    assert any("lost:" in words for words in found.wrong)
    assert not any("integrity" in words for words in found.wrong)


@pytest.mark.within(180)
async def test_a_node_goes_on_from_what_a_power_cut_left(tmp_path: Path):
    """Shows: F03"""
    folder, after = tmp_path / "node", tmp_path / "after"
    folder.mkdir()
    trace = await record(folder)
    sequence = list(deeds(trace, folder))
    moments = [place for place, deed in enumerate(sequence) if isinstance(deed, Promise)]
    disk = Disk(folder)
    middle = moments[len(moments) // 2]
    for deed in sequence[: middle + 1]:
        disk.do(deed)
    disk.image(after, random.Random(f"{SEED}"))
    async with serving(after) as node:
        await node.start()
        async with Caller(node.url) as caller:
            await until_quiet(caller)
        assert await node.stop() == 0
    promised = [deed for deed in sequence[: middle + 1] if isinstance(deed, Promise)]
    verdict = judge(after / "store.db", acks(promised), None)
    assert verdict.wrong == [], str(verdict)
