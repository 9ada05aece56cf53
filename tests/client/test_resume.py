"""A stream that is cut: the task is followed to its end, and the work is asked for once."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.client.client import Client
from dragoman.client.errors import Cut
from dragoman.model.task import State
from tests.client.scripted import Exchange, card, chunk, folded, moved, opened, serving, task_bytes

LOG = [
    opened(),
    moved(State.WORKING, "on it"),
    chunk("one ", append=False),
    chunk("two "),
    chunk("three "),
    moved(State.WORKING, "nearly"),
    chunk("four"),
    moved(State.COMPLETED),
]
TRUTH = folded(LOG)


class Teller:
    """An agent that tells LOG. `ids`: gives cursors; `durable`: honours them and keys.

    The first stream is cut after `budget` bytes; one more event happens behind every cut.
    """

    def __init__(self, budget: int, ids: bool, durable: bool) -> None:
        self.budget, self.ids, self.durable = budget, ids, durable
        self.happened = 0
        self.keys: set[str] = set()
        self.whole = 0

    async def __call__(self, exchange: Exchange) -> None:
        method = exchange.method
        if method == "SendStreamingMessage":
            self.keys.add(exchange.headers["idempotency-key"])
            first = len(self.keys) == 1 and self.happened == 0
            exchange.budget = self.budget if first else None
            self.happened = max(self.happened, 1)
            await self.tell(exchange, 0)
            self.whole = exchange.written
        elif method == "SubscribeToTask":
            self.happened = min(self.happened + 1, len(LOG))
            if self.happened == len(LOG) and not (self.durable and "last-event-id" in exchange.headers):
                await exchange.error(-32004)
                return
            await self.tell(
                exchange, int(exchange.headers.get("last-event-id", "0")) if self.durable else 0, True
            )
        else:
            assert method == "GetTask"
            self.happened = min(self.happened + 1, len(LOG))
            await exchange.result(task_bytes(folded(LOG[: self.happened])))

    async def tell(self, exchange: Exchange, after: int, again: bool = False) -> None:
        await exchange.stream()
        start = after
        if again:
            start = after or self.happened
            await exchange.frame(opened().__class__(folded(LOG[:start])), start if self.ids else None)
        for seq, event in enumerate(LOG[start:], start + 1):
            self.happened = max(self.happened, seq)
            await exchange.frame(event, seq if self.ids else None)
        await exchange.end()


async def _followed(budget: int, ids: bool, durable: bool) -> tuple[Teller, list[int], str]:
    teller = Teller(budget, ids, durable)
    async with serving(teller, card=card(durable=durable)) as peer, Client(peer.url) as agent:
        seen = []
        try:
            async for logged in agent.stream("go"):
                seen.append(logged)
        except Cut as cut:
            assert not seen and not durable
            assert "list()" in str(cut) and "may have arrived" in str(cut)
            return teller, [], "cut"
        assert folded(one.event for one in seen) == TRUTH, budget
        assert peer.count("SendStreamingMessage") == 1 or durable
        assert len(teller.keys) == 1
        assert not agent.faults
        return teller, [one.seq for one in seen], "whole"


@pytest.mark.parametrize(("ids", "durable"), [(False, False), (True, False), (True, True)])
async def test_wherever_a_stream_is_cut_the_final_fold_equals_the_truth(ids: bool, durable: bool) -> None:
    """Shows: S4-040, F04, F05"""
    teller, _, _ = await _followed(10**9, ids, durable)
    gate = asyncio.Semaphore(32)

    async def one(budget: int) -> str:
        async with gate:
            _, seqs, how = await _followed(budget, ids, durable)
            if durable:
                assert seqs == list(range(1, len(LOG) + 1)), (budget, seqs)
            return how

    ends = await asyncio.gather(*(one(budget) for budget in range(teller.whole)))
    first = ends.index("whole")
    assert all(end == "whole" for end in ends[first:])
    assert first == 0 if durable else first > 0
