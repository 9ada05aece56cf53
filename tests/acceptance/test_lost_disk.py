"""A sync fails: from then on nothing is promised, the process ends, and the next one starts from what is there."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import judge
from tests.acceptance.load import Client, Tended, Told
from tests.acceptance.nodes import HERE, Caller, serving, until_quiet
from tests.acceptance.powercut import Disk, Promise, acks, deeds, strace

pytestmark = pytest.mark.usefixtures("strace")

SEED = int(os.environ.get("SEED", "1"))
RUNS = 5
CLIENTS = 4
OPERATIONS = 4
SYNCS = "fsync,fdatasync"
# The last bound is about how many syncs those operations take.
WHICH = (1, 30)


async def run(folder: Path, seed: int) -> tuple[int, int, list[str]]:
    """One life with a disk that fails at some sync and stays failed, and the life after it."""
    which = random.Random(f"{seed}").randint(*WHICH)
    trace, told = folder / "trace", Told(folder / "told.jsonl")
    async with serving(folder, HERE / "recorded.py", WAL_PAGES_MAX="60") as node:
        # The file is made before: what fails here is the sync of somebody's work.
        await node.start(fresh=False)
        assert await node.stop() == 0
        made = node.path.read_bytes()
        await node.start(*strace(trace, f"{SYNCS}:error=EIO:when={which}+"))
        async with Caller(node.url) as caller:
            tended = Tended(node)
            try:

                async def work(number: int) -> None:
                    client = Client(node, told, caller, f"{seed}.{number}")
                    for _ in range(OPERATIONS):
                        await client.operate()

                await asyncio.gather(*[work(number) for number in range(CLIENTS)])
                await until_quiet(caller)
                assert await tended.stop() == 0
            finally:
                await tended.aclose()
    told.close()
    wrong = list(judge(folder / "store.db", told.all, node.effects).wrong)
    (code,) = tended.codes
    if code <= 0:
        wrong.append(f"the process ended with {code}")
    # What it promised before it ended must be there without the sync that failed and all that came after it.
    sequence = list(deeds(trace, folder))
    disk = Disk(folder)
    disk.hold(node.path, made)
    for deed in sequence:
        disk.do(deed)
    disk.image(folder / "image", None)
    promised = [deed for deed in sequence if isinstance(deed, Promise)]
    wrong += judge(folder / "image" / "store.db", acks(promised), None, quiet=False).wrong
    return code, len(promised), wrong


@pytest.mark.slow
@pytest.mark.within(120)
async def test_after_a_failed_sync_nothing_is_promised_and_the_process_ends(tmp_path: Path, scale: int):
    """Shows: F17"""
    began = time.monotonic()
    wrong, promised, codes = [], 0, set()
    # A campaign is twenty times as long, not ten.
    runs = RUNS * scale * (2 if scale > 1 else 1)
    for number in range(runs):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        code, promises, problems = await run(folder, SEED * 1000 + number)
        promised += promises
        codes.add(code)
        wrong += [f"run {number}: {problem}" for problem in problems]
    print(
        f"\nF17 seed={SEED} runs={runs} codes={codes} promised before={promised} wrong={len(wrong)}"
        f" {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert promised > 0
    assert wrong == [], "\n".join(wrong)
