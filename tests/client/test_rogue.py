"""A peer that breaks the state machine on the wire is not believed, and is asked what really holds."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from dragoman.client import Client
from dragoman.core.tasks import INFERRED, TERMINAL, TRANSITIONS, is_reachable
from dragoman.model.errors import Fault
from dragoman.model.events import StatusChanged
from dragoman.model.task import State
from tests.client.scripted import TASK, Exchange, chunk, folded, moved, opened, reply, serving, task_bytes

LIVE = [state for state in State if state not in TERMINAL]
ILLEGAL = [
    (before, after)
    for before, after in product(LIVE, State)
    if after not in TRANSITIONS[before] and (before, after) not in INFERRED and before is not after
]


@pytest.mark.parametrize(("before", "after"), ILLEGAL, ids=lambda state: state.word)
async def test_an_illegal_step_is_dropped_and_the_task_asked_for(before: State, after: State) -> None:
    """Shows: S4-018, S4-023, F22"""
    real = next(state for state in (State.COMPLETED, State.FAILED) if is_reachable(before, state))
    truth = folded([opened(before), moved(real)])

    async def script(exchange: Exchange) -> None:
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(truth))
            return
        await exchange.stream()
        await exchange.frame(opened(before))
        await exchange.frame(moved(after))
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        seen = [one.event async for one in agent.stream("go")]
        assert not [event for event in seen if isinstance(event, StatusChanged)]
        assert folded(seen) == truth
        assert len(agent.faults) == 1
        assert isinstance(agent.faults[0], Fault)
        assert peer.count("GetTask") == 1


@pytest.mark.parametrize(
    ("good", "bad", "faults"),
    [
        (b"TASK_STATE_FAILED", b"TASK_STATE_ODD", 0),
        (b'"status":{', b'"status":7,"x":{', 1),
        (b"statusUpdate", b"x", 1),
    ],
)
async def test_what_cannot_be_read_is_not_believed_and_the_task_asked_for(
    good: bytes, bad: bytes, faults: int
) -> None:
    """Shows: F22"""
    truth = folded([opened(), moved(State.WORKING), moved(State.COMPLETED)])

    async def script(exchange: Exchange) -> None:
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(truth))
            return
        await exchange.stream()
        await exchange.frame(opened(State.WORKING))
        await exchange.frame(reply(exchange.number, moved(State.FAILED)).replace(good, bad))
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == truth
        assert len(agent.faults) == faults


async def test_a_look_in_the_middle_of_a_stream_doubles_no_chunk() -> None:
    """Shows: F22, F05"""
    rest = [chunk("b"), chunk("c")]
    truth = folded([opened(), moved(State.WORKING), chunk("a", append=False), *rest, moved(State.COMPLETED)])
    ahead = folded([opened(), moved(State.WORKING), chunk("a", append=False), *rest])
    looks = iter([ahead, truth])

    async def script(exchange: Exchange) -> None:
        if exchange.method == "GetTask":
            await exchange.result(task_bytes(next(looks)))
            return
        await exchange.stream()
        for event in (
            opened(),
            moved(State.WORKING),
            chunk("a", append=False),
            moved(State.SUBMITTED),
            *rest,
        ):
            await exchange.frame(event)
        await exchange.frame(moved(State.COMPLETED))
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        assert folded([one.event async for one in agent.stream("go")]) == truth


async def test_a_skipped_working_is_filled_in() -> None:
    """Shows: S4-014"""

    async def script(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.frame(opened(), 1)
        await exchange.frame(moved(State.COMPLETED), 2)
        await exchange.end()

    async with serving(script) as peer, Client(peer.url) as agent:
        seen = [one async for one in agent.stream("go")]
        assert [
            (one.seq, one.event.status.state) for one in seen[1:] if isinstance(one.event, StatusChanged)
        ] == [
            (0, State.WORKING),
            (2, State.COMPLETED),
        ]
        assert not agent.faults


async def test_a_task_that_was_over_is_not_believed_to_work_again() -> None:
    """Shows: S4-019, S4-023"""
    states = iter([State.WORKING, State.COMPLETED, State.WORKING, State.COMPLETED])

    async def script(exchange: Exchange) -> None:
        await exchange.result(task_bytes(opened(next(states)).task))

    async with serving(script) as peer, Client(peer.url) as agent:
        assert (await agent.get(TASK)).state is State.WORKING
        assert (await agent.get(TASK)).state is State.COMPLETED
        with pytest.raises(Fault, match="is working; it was completed"):
            await agent.get(TASK)
        assert (await agent.get(TASK)).state is State.COMPLETED


async def test_concurrent_answers_are_never_mixed_up(scale: int) -> None:
    """Shows: F24"""
    held: dict[str, Exchange] = {}

    async def script(exchange: Exchange) -> None:
        # Every seventh answer carries the id of another request that is still open.
        asked = exchange.asked["params"]["id"]
        held[asked] = exchange
        number = exchange.number + 1 if int(asked) % 7 == 0 else exchange.number
        task = opened().task
        await exchange.answer(
            reply(number, task_bytes(task).replace(b'"id":"t-1"', b'"id":"%b"' % asked.encode()))
        )

    async def ask(agent: Client, name: int) -> bool:
        try:
            task = await agent.get(str(name))
        except Fault:
            return False
        assert task.id == str(name)
        return True

    async with serving(script) as peer, Client(peer.url) as agent:
        for start in range(0, 2000 * min(scale, 5), 100):
            told = await asyncio.gather(*(ask(agent, name) for name in range(start, start + 100)))
            assert told == [name % 7 != 0 for name in range(start, start + 100)]
