"""The state machine as a peer has to keep it: every pair, and everything else it may get wrong."""

from __future__ import annotations

from itertools import product

import pytest

from dragoman.client.judge import Judge
from dragoman.core.tasks import INFERRED, TERMINAL, TRANSITIONS, is_reachable
from dragoman.model.events import Event, Replied, StatusChanged, TaskCreated
from dragoman.model.task import Message, Part, Role, State, Status, Task
from tests.client.scripted import TASK, chunk, folded, moved, opened

PAIRS = list(product(State, State))
REPLY = Replied(Message("m", Role.AGENT, (Part(text="hi"),)))


def _after(state: State) -> Judge:
    judge = Judge()
    judge.hear(opened(state))
    return judge


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.word)
def test_a_step_is_taken_only_when_the_table_has_it(before: State, after: State) -> None:
    """Shows: S4-018, S4-019, S4-023, F22"""
    judge = _after(before)
    event = moved(after)
    happened = judge.hear(event)
    if after in TRANSITIONS[before]:
        assert happened == (event,)
        assert judge.state is after
        assert not judge.faults
    elif (before, after) in INFERRED:
        assert [one.status.state for one in happened] == [INFERRED[before, after], after]
        assert not judge.faults
    else:
        assert happened == ()
        assert judge.state is before
        assert len(judge.faults) == 1


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.word)
def test_a_snapshot_is_believed_only_when_the_state_can_be_reached(before: State, after: State) -> None:
    """Shows: F22"""
    judge = _after(before)
    happened = judge.look(opened(after).task)
    assert bool(happened) == is_reachable(before, after)
    assert judge.state is (after if happened else before)


@pytest.mark.parametrize("state", sorted(TERMINAL), ids=lambda state: state.word)
def test_after_the_end_nothing_is_heard(state: State) -> None:
    """Shows: S4-019, S4-024"""
    judge = _after(state)
    for event in (chunk("x"), moved(State.WORKING), opened(), REPLY):
        assert judge.hear(event) == ()
    assert judge.state is state
    assert not judge.is_doubtful


@pytest.mark.parametrize(
    "event",
    [
        StatusChanged.of("other", "c", Status(State.FAILED)),
        TaskCreated(Task("other", Status(State.FAILED))),
        REPLY,
    ],
)
def test_what_belongs_elsewhere_changes_nothing(event: Event) -> None:
    """Shows: F22"""
    judge = _after(State.WORKING)
    assert judge.hear(event) == ()
    assert (judge.state, judge.task_id, judge.is_doubtful) == (State.WORKING, TASK, True)


@pytest.mark.parametrize("first", [moved(State.WORKING), chunk("x", append=False)])
def test_a_stream_that_does_not_begin_with_the_task_still_folds_to_one(first: Event) -> None:
    judge = Judge()
    happened = [*judge.hear(first), *judge.hear(chunk("y")), *judge.hear(moved(State.COMPLETED))]
    task = folded(happened)
    assert (task.id, task.state) == (TASK, State.COMPLETED)
    assert judge.is_doubtful


def test_a_message_is_a_whole_answer() -> None:
    judge = Judge()
    assert judge.hear(REPLY) == (REPLY,)
    assert judge.is_over
    assert judge.hear(opened()) == ()
