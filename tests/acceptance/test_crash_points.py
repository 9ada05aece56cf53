"""Killed at every sync and around it: a turn with two chunks, a step, a chunk, a question, a chunk."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.checker import Verdict, judge
from tests.acceptance.load import Client, Tended, Told
from tests.acceptance.nodes import Caller, Died, serving

pytestmark = pytest.mark.usefixtures("strace")

SCRIPT = "c c s c a c"
SYNCS = "fsync,fdatasync"
# More points than a scenario has: a campaign that gets there does not end by itself.
POINTS_MAX = 2000
AT_ONCE = 3


def strace(calls: str, when: int, folder: Path, *more: str) -> list[str]:
    """Runs a command that is killed as it enters its n-th such call, counted in each thread.

    Not with --seccomp-bpf: strace 6.1 then only ever counts to one.
    """
    kill = f"inject={calls}:signal=SIGKILL:when={when}"
    return ["strace", "-f", "-o", str(folder / "trace"), *more, "-e", f"trace={calls}", "-e", kill]


async def story(client: Client) -> None:
    client.told.note("begun", story="story")
    task = await client.stream(SCRIPT)
    said = await client.get(task)
    if said["status"]["state"] == "TASK_STATE_INPUT_REQUIRED":
        said = await client.send("yes", task=task)
    assert said["status"]["state"] == "TASK_STATE_COMPLETED", said
    client.told.note("done", story="story")


async def killed_at(folder: Path, tracer: list[str]) -> tuple[bool, Verdict]:
    """One run that may be killed once, brought to its end; whether it was, and what the judge says."""
    told = Told(folder / "told.jsonl")
    was_killed = False
    async with serving(folder) as node:
        try:
            await node.start(*tracer)
        except Died:
            was_killed = True
            await node.start(fresh=False)
        starts = len(node.ready_seconds)
        async with Caller(node.url) as caller:
            tended = Tended(node)
            try:
                await story(Client(node, told, caller, "one"))
                code = await tended.stop()
            finally:
                await tended.aclose()
        was_killed |= len(node.ready_seconds) > starts
        if code != 0:
            # Killed in the middle of a graceful stop.
            was_killed = True
            await node.start(fresh=False)
            assert await node.stop() == 0
    told.close()
    return was_killed, judge(folder / "store.db", told.all, node.effects)


async def every_point(folder: Path, calls: str, empty: Path | None, stride: int, *more: str) -> int:
    """Kill at the first, the second … such call, until a run is through without being killed."""
    wrong: list[str] = []
    killed = 0
    points = iter(range(1, POINTS_MAX, stride))
    is_through = False

    async def work() -> None:
        nonlocal killed, is_through
        while not is_through and (point := next(points, 0)):
            place = folder / f"{point}"
            place.mkdir(parents=True)
            if empty is not None:
                shutil.copyfile(empty, place / "store.db")
            was_killed, verdict = await killed_at(place, strace(calls, point, place, *more))
            is_through |= not was_killed
            killed += was_killed
            wrong.extend(f"point {point}: {words}" for words in verdict.wrong)

    await asyncio.gather(*[work() for _ in range(AT_ONCE)])
    assert wrong == [], "\n".join(wrong)
    return killed


async def empty_store(folder: Path) -> Path:
    """A store's file with its schema and nothing in it."""
    folder.mkdir()
    async with serving(folder) as node:
        await node.start()
        assert await node.stop() == 0
    return folder / "store.db"


@pytest.mark.within(240)
async def test_a_turn_killed_at_each_sync_says_what_it_says_uninterrupted(tmp_path: Path):
    """Shows: F02"""
    began = time.monotonic()
    empty = await empty_store(tmp_path / "empty")
    # strace counts per thread: over a store that is there, only the thread that commits syncs.
    killed = await every_point(tmp_path / "turn", SYNCS, empty, 1)
    print(
        f"\nF02 syncs of a turn: {killed} killed, 0 wrong, {time.monotonic() - began:.1f} s", file=sys.stderr
    )
    assert killed >= 7


@pytest.mark.within(240)
async def test_a_store_killed_at_each_sync_of_its_making_is_made_by_the_next_start(tmp_path: Path):
    """Shows: F02"""
    began = time.monotonic()
    point, killed = 1, True
    while killed:
        place = tmp_path / f"{point}"
        place.mkdir()
        async with serving(place) as node:
            try:
                await node.start(*strace(SYNCS, point, place))
                killed = False
                node.kill()
                await node.ended()
            except Died:
                point += 1
            await node.start(fresh=False)
            assert await node.stop() == 0
        verdict = judge(place / "store.db", [], None)
        assert verdict.wrong == [], str(verdict)
    print(
        f"\nF02 syncs of a new store: {point - 1} killed, {time.monotonic() - began:.1f} s", file=sys.stderr
    )
    assert point > 1


@pytest.mark.slow
@pytest.mark.within(240)
@pytest.mark.parametrize(
    ("calls", "stride", "what"),
    [("pwrite64", 9, "before a commit is whole"), ("write,writev,sendto,sendmsg", 3, "committed, not told")],
)
async def test_a_turn_killed_around_its_syncs_says_what_it_says_uninterrupted(
    tmp_path: Path, scale: int, calls: str, stride: int, what: str
):
    """Shows: F02"""
    began = time.monotonic()
    empty = await empty_store(tmp_path / "empty")
    stride = max(1, stride // scale)
    killed = await every_point(tmp_path / "turn", calls, empty, stride)
    print(f"\nF02 {what}: {killed} killed, 0 wrong, {time.monotonic() - began:.1f} s", file=sys.stderr)
    assert killed >= 3
