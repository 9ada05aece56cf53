"""A stream that is cut: the task is followed to its end, and the work is asked for once."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.client import Client, Cut, TimedOut, Unreachable
from dragoman.model.errors import AgentError, Fault
from dragoman.model.events import Logged, TaskCreated
from dragoman.model.task import State
from tests.client.scripted import (
    TASK,
    Exchange,
    Stop,
    card,
    chunk,
    folded,
    moved,
    opened,
    reply,
    serving,
    task_bytes,
)

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

    The first stream is cut after `budget` bytes; one more event happens behind every look.
    """

    def __init__(self, budget: int | None, ids: bool, durable: bool) -> None:
        self.budget, self.ids, self.durable = budget, ids, durable
        self.happened = 0
        self.keys: set[str] = set()
        self.whole = 0

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.method == "SendStreamingMessage":
            exchange.budget, self.budget = self.budget, None
            self.keys.add(exchange.headers["idempotency-key"])
            await self.tell(exchange, 0)
            self.whole = exchange.written
            return
        self.happened = min(self.happened + 1, len(LOG))
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(folded(LOG[: self.happened])))
            return
        after = int(exchange.headers.get("last-event-id", "0")) if self.durable else 0
        if self.happened == len(LOG) and not after:
            await exchange.error(-32004)
        else:
            await self.tell(exchange, after or self.happened, again=True)

    async def tell(self, exchange: Exchange, start: int, again: bool = False) -> None:
        await exchange.stream()
        if again:
            await exchange.frame(TaskCreated(folded(LOG[:start])), start if self.ids else None)
        for seq, event in enumerate(LOG[start:], start + 1):
            self.happened = max(self.happened, seq)
            await exchange.frame(event, seq if self.ids else None)
        await exchange.end()


async def _cut_after(budget: int | None, ids: bool, durable: bool) -> tuple[Teller, list[Logged] | None]:
    """What is seen of LOG when the first stream ends after so many bytes; None when it had to give up."""
    teller = Teller(budget, ids, durable)
    async with serving(teller, card=card(durable=durable)) as peer, Client(peer.url) as agent:
        try:
            seen = [logged async for logged in agent.stream("go")]
        except Cut as cut:
            # Nothing had come and nothing was promised: then it says so, and does not send again.
            if durable or peer.count("SendStreamingMessage") != 1 or "list()" not in str(cut):
                raise
            return teller, None
        assert not agent.faults
        assert len(teller.keys) == 1
        assert peer.count("SendStreamingMessage") == 1 or durable
        return teller, seen


@pytest.mark.parametrize(
    ("ids", "durable", "stride"),
    [(False, False, 3), (True, False, 3), (True, True, 1)],
    ids=["bare", "ids", "durable"],
)
async def test_wherever_a_stream_is_cut_the_final_fold_is_the_truth(
    ids: bool, durable: bool, stride: int, scale: int
) -> None:
    """Shows: S4-040, F04, F05"""
    teller, _ = await _cut_after(None, ids, durable)
    gate = asyncio.Semaphore(16)

    async def told_anything(budget: int) -> bool:
        async with gate:
            _, seen = await _cut_after(budget, ids, durable)
        if seen is None:
            return False
        assert folded(one.event for one in seen) == TRUTH, budget
        if durable:
            # With a cursor each event comes once and in order.
            assert [one.seq for one in seen] == list(range(1, len(LOG) + 1)), budget
        return True

    budgets = range(0, teller.whole, 1 if scale > 1 else stride)
    told = await asyncio.gather(*(told_anything(budget) for budget in budgets))
    assert told == sorted(told)
    assert all(told) == durable


@pytest.mark.parametrize("ids", [False, True])
async def test_a_peer_that_resumes_without_the_task_is_asked_for_the_truth(ids: bool) -> None:
    """Shows: S4-040, F05"""

    async def script(exchange: Exchange) -> None:
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(TRUTH if exchange.number > 3 or ids else folded(LOG[:3])))
            return
        await exchange.stream()
        if exchange.method == "SendStreamingMessage":
            for seq, event in enumerate(LOG[:3], 1):
                await exchange.frame(event, seq if ids else None)
            raise Stop
        # Events 4 and 5 are lost on the way.
        for seq, event in enumerate(LOG[5:], 6):
            await exchange.frame(event, seq if ids else None)
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == TRUTH
        assert "without the task" in str(agent.faults[0])


async def test_a_stream_closed_while_the_task_works_counts_as_cut() -> None:
    """Shows: S4-040"""

    async def script(exchange: Exchange) -> None:
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(TRUTH))
            return
        await exchange.stream()
        await exchange.frame(opened())
        await exchange.frame(moved(State.WORKING))
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        seen = [one.event async for one in agent.stream("go")]
        assert folded(seen) == TRUTH
        assert [one.method for one in peer.asked[1:]] == ["SendStreamingMessage", "GetTask"]


@pytest.mark.parametrize("state", [State.INPUT_REQUIRED, State.AUTH_REQUIRED])
async def test_a_close_while_the_agent_waits_for_somebody_is_the_end(state: State) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        for event in (opened(), moved(State.WORKING), moved(state, "who?")):
            await exchange.frame(event)
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        seen = [one.event async for one in agent.stream("go")]
        assert folded(seen).state is state
        assert len(peer.asked) == 2


async def test_the_stream_ends_at_a_terminal_state_though_the_peer_keeps_it_open() -> None:
    """Shows: S4-021"""
    never = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        for event in (*LOG, moved(State.WORKING), chunk("late")):
            await exchange.frame(event)
        await never.wait()

    async with serving(script) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == TRUTH


async def test_resuming_is_given_up_after_the_attempts_and_says_what_was_last_seen() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.method == "SendStreamingMessage":
            await exchange.stream()
            await exchange.frame(opened(), 1)
            await exchange.frame(moved(State.WORKING), 2)
        raise Stop

    async with serving(script) as peer, Client(peer.url, resume_attempts=2) as agent:
        with pytest.raises(Cut, match=r"task t-1 working, event 2.*subscribe\('t-1'\)") as caught:
            _ = [one async for one in agent.stream("go")]
        assert caught.value.seen["state"] is State.WORKING
        assert [one.method for one in peer.asked[1:]] == ["SendStreamingMessage", *["SubscribeToTask"] * 2]


async def test_a_peer_that_only_repeats_its_snapshot_does_not_keep_us_busy() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.frame(opened(), 1)
        await exchange.end()

    async with serving(script) as peer, Client(peer.url, resume_attempts=3) as agent:
        with pytest.raises(Cut):
            _ = [one async for one in agent.stream("go")]
        assert peer.count("SubscribeToTask") == 3


async def test_a_peer_that_cannot_subscribe_is_polled() -> None:
    """Shows: S4-040"""
    looks = iter(range(2, 99))

    async def script(exchange: Exchange) -> None:
        if exchange.method == "SubscribeToTask":
            await exchange.error(-32601)
        elif exchange.method == "GetTask":
            await exchange.result(task_bytes(folded(LOG[: next(looks) * 3])))
        else:
            await exchange.stream()
            await exchange.frame(opened())
            raise Stop

    async with serving(script) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == TRUTH
        assert peer.count("SendStreamingMessage") == 1


async def test_an_agent_that_does_not_stream_is_asked_to_wait() -> None:
    async def script(exchange: Exchange) -> None:
        assert exchange.method == "SendMessage"
        await exchange.result(TaskCreated(TRUTH))

    async with serving(script, card=card(streaming=False)) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == TRUTH


async def test_subscribing_after_a_seq_asks_for_the_log_from_there() -> None:
    """Shows: F04"""

    async def script(exchange: Exchange) -> None:
        assert exchange.headers["last-event-id"] == "3"
        await exchange.stream()
        await exchange.frame(TaskCreated(folded(LOG[:3])), 3)
        for seq, event in enumerate(LOG[3:], 4):
            await exchange.frame(event, seq)
        await exchange.end()

    async with serving(script, card=card(durable=True)) as peer, Client(peer.url) as agent:
        seen = [one async for one in agent.subscribe(TASK, after=3)]
        assert [one.seq for one in seen] == [3, 4, 5, 6, 7, 8]
        assert folded(one.event for one in seen) == TRUTH


async def test_a_timed_out_stream_names_what_was_last_seen() -> None:
    never = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.frame(opened(), 1)
        await exchange.frame(moved(State.WORKING), 2)
        await never.wait()

    async with serving(script) as peer, Client(peer.url, timeout_seconds=0.1) as agent:
        with pytest.raises(
            TimedOut, match=r"stream is open.*task t-1 working, event 2.*subscribe\('t-1'\)"
        ) as caught:
            _ = [one async for one in agent.stream("go")]
        seen = caught.value.seen
        assert (seen["task_id"], seen["state"], seen["seq"], seen["is_stream_open"]) == (
            TASK,
            State.WORKING,
            2,
            True,
        )


async def test_a_card_that_does_not_come_is_not_waited_for_for_ever() -> None:
    async def script(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async with serving(script, card=None) as peer, Client(peer.url, timeout_seconds=0.05) as agent:
        with pytest.raises(TimedOut, match="gave no card"):
            await agent.send("go")


async def test_an_unreachable_agent_is_said_at_once() -> None:
    async with serving(Teller(None, True, True)) as peer:
        url = peer.url
    async with Client(url) as agent:
        with pytest.raises(Unreachable, match=url):
            await agent.send("go")


@pytest.mark.parametrize(("durable", "sends"), [(True, 2), (False, 1)])
async def test_a_waiting_send_that_is_cut_is_repeated_only_when_the_agent_promises_one_task(
    durable: bool, sends: int
) -> None:
    """Shows: S4-040"""
    keys = []

    async def script(exchange: Exchange) -> None:
        keys.append(exchange.headers["idempotency-key"])
        if len(keys) == 1:
            raise Stop
        await exchange.result(TaskCreated(TRUTH))

    async with serving(script, card=card(durable=durable)) as peer, Client(peer.url) as agent:
        if durable:
            assert await agent.send("go") == TRUTH
        else:
            with pytest.raises(Cut, match="may have arrived"):
                await agent.send("go")
        assert len(keys) == sends
        assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        (lambda n: reply(n + 1, moved(State.FAILED)), "with id"),
        (lambda n: b'{"jsonrpc":"2.0","result":{}}', "with id missing"),
        (lambda n: b"[" + reply(n, moved(State.FAILED)) + b"]", "a batch"),
        (lambda n: b"<html>", "no JSON-RPC answer"),
        (lambda n: b'{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1}}' % n, "at once"),
        (lambda n: b"x" * 300_000, "larger than"),
    ],
)
async def test_an_item_that_is_no_answer_to_us_is_the_peers_fault(broken, seen: str) -> None:  # type: ignore[no-untyped-def]
    """Shows: F23, F24"""

    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.frame(opened())
        await exchange.frame(broken(exchange.number))

    async with serving(script) as peer, Client(peer.url, body_bytes_max=200_000) as agent:
        told = agent.stream("go")
        assert (await anext(told)).event == opened()
        with pytest.raises(Fault, match=seen):
            await anext(told)
        assert len(agent.faults) == 1


async def test_an_error_of_the_agent_inside_a_stream_arrives_as_its_own_kind() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.piece(
            b'data: {"jsonrpc":"2.0","id":%d,"error":{"code":-32005,"message":"no"}}\n\n' % exchange.number
        )

    async with serving(script) as peer, Client(peer.url) as agent:
        with pytest.raises(AgentError, match="ContentTypeNotSupported"):
            _ = [one async for one in agent.stream("go")]
