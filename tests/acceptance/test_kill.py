"""kill -9 at random moments under load, and a judge that trusts nobody."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import judge, keep_journals
from tests.acceptance.load import Killer, Told, loaded
from tests.acceptance.nodes import Caller, serving, until_quiet

SEED = int(os.environ.get("SEED", "1"))
KILLS = int(os.environ.get("KILLS", "100"))
CLIENTS = 8
# At most; a long campaign lets the node live longer, for 50,000 acknowledgements in a thousand lives.
ACKS_BETWEEN_KILLS = 80


@pytest.mark.slow
@pytest.mark.within(180)
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, scale: int):
    """Shows: F01"""
    told = Told(tmp_path / "told.jsonl")
    began = time.monotonic()
    async with serving(tmp_path) as node:
        killer = Killer(node, told, f"{SEED}")
        await loaded(node, told, SEED, CLIENTS, killer.run(KILLS * scale, ACKS_BETWEEN_KILLS * min(scale, 2)))
        async with Caller(node.url) as caller:
            await until_quiet(caller)
        keep_journals(node.path, node.effects, time.monotonic_ns())
        code = await node.stop()
    told.close()
    verdict = judge(node.path, told.all, node.effects)
    ready = statistics.median(node.ready_seconds)
    print(
        f"\nF01 seed={SEED} kills={killer.kills} {verdict}"
        f"\n    ready median {ready * 1000:.0f} ms, all {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert verdict.wrong == [], str(verdict)
    assert killer.kills == KILLS * scale
    assert code == 0
