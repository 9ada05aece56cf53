"""Streams cut by kill -9: whoever comes back with a cursor misses nothing and hears nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import Client as OurClient
from tests.acceptance.checker import Folded, expected, judge
from tests.acceptance.load import UNSUPPORTED, Client, Tended, Told
from tests.acceptance.nodes import Caller, Node, Refused, aclosing, serving

SEED = int(os.environ.get("SEED", "1"))
READERS = 8
RECONNECTS = 100
# A thousand chunks, with a remembered point after each hundred. Some are slow, so that a kill finds the
# agent at work, and not only what sockets still hold.
SCRIPT = " ".join(["t20 c80 s"] * 10)
# For a single reader.
SLOW_SCRIPT = " ".join(["t100 s"] * 10)
EVENTS_BETWEEN_KILLS = (500, 4000)


@asynccontextmanager
async def dying(folder: Path, told: Told, between: tuple[int, int]) -> AsyncIterator[Node]:
    """A node that is killed whenever so many events were shown since its start, and started again."""
    chance = random.Random(f"{SEED}")
    async with serving(folder) as node:
        left = chance.randint(*between)

        def count(kind: str) -> None:
            nonlocal left
            left -= kind == "event"
            if left == 0:
                node.kill()

        def again() -> None:
            nonlocal left
            left = chance.randint(*between)

        await node.start()
        told.on = count
        tended = Tended(node, again)
        try:
            yield node
            told.on = lambda kind: None
            if await tended.stop() != 0:
                # The last kill came as the last reader ended.
                await node.start()
                assert await node.stop() == 0
        finally:
            await tended.aclose()


async def read(client: Client, task: str) -> tuple[list[tuple[int, Any]], int]:
    """All events of a task from its first, through however many connections; and how many those were more than one."""
    heard: list[tuple[int, Any]] = []
    connections = 0

    async def follow() -> None:
        nonlocal connections
        connections += 1
        number, after = client.told.stream(), heard[-1][0] if heard else 0
        async with aclosing(client.caller.watch("SubscribeToTask", {"id": task}, after=after)) as events:
            async for seq, event in events:
                client.told.note("event", stream=number, task=task, after=after, id=seq, data=event)
                if seq != after:
                    heard.append((seq, event))

    await client.again(follow)
    return heard, connections - 1


@pytest.mark.slow
@pytest.mark.within(180)
async def test_eight_readers_cut_by_kills_come_back_and_hear_the_same_log_once(tmp_path: Path, scale: int):
    """Shows: F04"""
    began = time.monotonic()
    told = Told(tmp_path / "told.jsonl")
    reconnects = tasks = 0
    async with dying(tmp_path, told, EVENTS_BETWEEN_KILLS) as node, Caller(node.url) as caller:
        clients = [Client(node, told, caller, f"{SEED}.{number}") for number in range(READERS)]
        while reconnects < RECONNECTS * scale:
            tasks += 1
            task = (await clients[0].send(SCRIPT, now=True))["id"]
            heard = await asyncio.gather(*[read(client, task) for client in clients])
            reconnects += sum(more for _, more in heard)
            first = heard[0][0]
            assert all(events == first for events, _ in heard)
            await clients[0].get(task)
    told.close()
    verdict = judge(tmp_path / "store.db", told.all, tmp_path / "effects")
    print(
        f"\nF04 seed={SEED} reconnects={reconnects} {verdict} {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert verdict.wrong == [], str(verdict)
    assert verdict.figures["completed"] == tasks


@pytest.mark.slow
@pytest.mark.within(180)
async def test_a_plain_client_that_comes_back_without_a_cursor_ends_with_the_true_artifact(
    tmp_path: Path, scale: int
):
    """Shows: F05"""
    began = time.monotonic()
    told = Told(tmp_path / "told.jsonl")
    reconnects = tasks = 0

    async def read_plainly(client: Client, task: str) -> int:
        folded, connections = Folded(), 0

        async def follow() -> None:
            nonlocal connections
            connections += 1
            number, is_first = client.told.stream(), True
            try:
                async with aclosing(client.caller.watch("SubscribeToTask", {"id": task})) as events:
                    async for seq, event in events:
                        assert ("task" in event) == is_first, "a stream begins with its task"
                        is_first = False
                        client.told.note("event", stream=number, task=task, after=None, id=seq, data=event)
                        folded.apply(event)
            except Refused as refused:
                if refused.code != UNSUPPORTED:
                    raise
                folded.apply({"task": await client.get(task)})

        await client.again(follow)
        assert (folded.state, folded.text) == ("completed", expected(SCRIPT))
        return connections - 1

    async with dying(tmp_path, told, EVENTS_BETWEEN_KILLS) as node, Caller(node.url) as caller:
        clients = [Client(node, told, caller, f"{SEED}.{number}") for number in range(READERS)]
        while reconnects < RECONNECTS // 2 * scale:
            tasks += 1
            task = (await clients[0].send(SCRIPT, now=True))["id"]
            reconnects += sum(await asyncio.gather(*[read_plainly(client, task) for client in clients]))
    told.close()
    verdict = judge(tmp_path / "store.db", told.all, tmp_path / "effects")
    print(
        f"\nF05 seed={SEED} reconnects={reconnects} {verdict} {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert verdict.wrong == [], str(verdict)


@pytest.mark.within(120)
async def test_our_client_goes_on_through_kills_as_if_nothing_had_happened(tmp_path: Path):
    """Shows: F04"""
    began = time.monotonic()
    told = Told(tmp_path / "told.jsonl")
    async with dying(tmp_path, told, (150, 450)) as node, OurClient(node.url) as client:

        async def hear() -> list[tuple[int, bytes]]:
            heard = []
            async for logged in client.stream(SLOW_SCRIPT):
                told.counts["event"] += 1
                told.on("event")
                heard.append((logged.seq, logged.data))
            return heard

        tasks: list[list[tuple[int, bytes]]] = []
        # A kill may come when all is said and only sockets still hold it: then another task is followed.
        while len(node.ready_seconds) - 1 < 2:
            tasks.append(await hear())
        deaths = len(node.ready_seconds) - 1
    told.close()
    notes = [
        {"kind": "event", "stream": number, "task": task, "after": 0, "id": seq, "data": json.loads(data)}
        for number, heard in enumerate(tasks)
        for task in [json.loads(heard[0][1])["task"]["id"]]
        for seq, data in heard
    ]
    with_log = judge(tmp_path / "store.db", notes, tmp_path / "effects")
    print(
        f"\nF04 our client: {deaths} kills, {len(notes)} events, {time.monotonic() - began:.1f} s",
        file=sys.stderr,
    )
    assert with_log.wrong == [], str(with_log)
    assert with_log.figures["tasks"] == with_log.figures["completed"] == len(tasks)
