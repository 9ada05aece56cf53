"""The table of states, and what each command decides in each of them. Demanded by the lifecycle text (S4)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.tasks import (
    ACTIVE,
    INFERRED,
    INTERRUPTED,
    SETTLED,
    TERMINAL,
    TRANSITIONS,
    Add,
    Cancel,
    Fold,
    Give,
    Move,
    Open,
    Say,
    apply,
    decide,
    is_legal,
    is_reachable,
)
from dragoman.model.errors import AgentError
from dragoman.model.events import CancelAsked, MessageAdded, StatusChanged, TaskCreated, decode, encode
from dragoman.model.task import Artifact, Message, Part, Role, State
from tools import docs, lifecycle

AT = lifecycle.AT
VECTORS = lifecycle.VECTORS
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
S = State

# By hand, from the lifecycle text and resolution C9: from (down) to (across).
# unknown submitted working input auth completed failed canceled rejected
COLUMNS = (
    S.UNKNOWN, S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED,
    S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED,
)  # fmt: skip
TABLE = {
    S.UNKNOWN:        "x x x x x x x x x",
    S.SUBMITTED:      "x . x x x . x x x",
    S.WORKING:        "x . x x x x x x x",
    S.INPUT_REQUIRED: "x . x x . . x x .",
    S.AUTH_REQUIRED:  "x . x . x x x x x",
    S.COMPLETED:      ". . . . . . . . .",
    S.FAILED:         ". . . . . . . . .",
    S.CANCELED:       ". . . . . . . . .",
    S.REJECTED:       ". . . . . . . . .",
}  # fmt: skip
LEGAL = {
    (start, end)
    for start, row in TABLE.items()
    for end, cell in zip(COLUMNS, row.split(), strict=True)
    if cell == "x"
}
PAIRS = [(start, end) for start in State for end in State]


def word(value: Any) -> str | None:
    return value.word if isinstance(value, State) else None


@pytest.mark.parametrize(("start", "end"), PAIRS, ids=word)
def test_each_of_the_81_pairs_is_legal_or_not_as_written(start: State, end: State):
    """Shows: S4-010, S4-011, S4-012, S4-013, S4-014, S4-015, S4-016, S4-025"""
    assert is_legal(start, end) is ((start, end) in LEGAL)


@pytest.mark.parametrize(("start", "end"), PAIRS, ids=word)
def test_the_agent_moves_a_task_along_legal_edges_only(start: State, end: State):
    """Shows: S4-018, S4-025"""
    fold = lifecycle.fold_of(start)
    if (start, end) in LEGAL:
        [event] = decide(fold, Move(end), AT)
        fold.apply(event)
        assert fold.status.state is end
    else:
        with pytest.raises(AgentError) as wrong:
            decide(fold, Move(end), AT)
        assert wrong.value.name == "InvalidAgentResponse"


def test_terminal_states_are_those_without_exits():
    """Shows: S4-010, S4-019, S4-024"""
    assert {S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED} == TERMINAL
    assert {state for state in State if not TRANSITIONS[state]} == TERMINAL
    assert {S.INPUT_REQUIRED, S.AUTH_REQUIRED} == INTERRUPTED
    assert SETTLED == TERMINAL | INTERRUPTED
    assert {S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED} == ACTIVE


def test_every_active_state_can_be_canceled():
    """Shows: S4-017"""
    for state in ACTIVE:
        [event] = decide(lifecycle.fold_of(state), Cancel(), AT)
        assert isinstance(event, StatusChanged)
        assert event.status.state is S.CANCELED


def test_a_cancel_of_a_canceled_task_changes_nothing():
    """Shows: S4-022"""
    assert decide(lifecycle.fold_of(S.CANCELED), Cancel(), AT) == ()
    assert decide(lifecycle.fold_of(S.CANCELED), Cancel(with_grace=True), AT) == ()


@pytest.mark.parametrize("state", sorted(TERMINAL - {S.CANCELED}), ids=word)
def test_a_late_cancel_changes_nothing_and_says_so(state: State):
    """Shows: S4-022"""
    with pytest.raises(AgentError) as wrong:
        decide(lifecycle.fold_of(state), Cancel(), AT)
    assert wrong.value.name == "TaskNotCancelable"
    assert state.word in wrong.value.message


def test_a_second_request_to_stop_gracefully_changes_nothing():
    fold = lifecycle.fold_of(S.WORKING)
    [asked] = decide(fold, Cancel(with_grace=True), AT)
    assert isinstance(asked, CancelAsked)
    fold.apply(asked)
    assert fold.status.state is S.WORKING
    assert decide(fold, Cancel(with_grace=True), AT) == ()


def test_reachable_is_what_a_walk_along_the_edges_can_come_to():
    """Shows: S4-023"""
    for start in State:
        seen, todo = {start}, [start]
        while todo:
            at = todo.pop()
            if at is S.UNKNOWN and start is not S.UNKNOWN:
                continue  # what we lost sight of says nothing of what may come
            todo += [end for end in State if (at, end) in LEGAL and end not in seen]
            seen |= {end for end in State if (at, end) in LEGAL}
        assert {end for end in State if is_reachable(start, end)} == seen


def test_a_later_look_never_finds_a_task_submitted_again():
    """Shows: S4-023"""
    assert [state for state in State if is_reachable(state, S.SUBMITTED)] == [S.UNKNOWN, S.SUBMITTED]


def test_nothing_but_itself_is_reachable_from_a_terminal_state():
    for start in TERMINAL:
        assert [end for end in State if is_reachable(start, end)] == [start]


def test_the_only_edge_that_may_be_skipped_is_inferred_through_working():
    """Shows: S4-025"""
    assert {(S.SUBMITTED, S.COMPLETED): S.WORKING} == INFERRED
    for (start, end), via in INFERRED.items():
        assert not is_legal(start, end)
        assert is_legal(start, via)
        assert is_legal(via, end)


def test_an_answer_files_the_question_before_itself():
    """Shows: S4-013"""
    fold = lifecycle.fold_of(S.WORKING)
    question = Message("q", Role.AGENT, (Part(text="which?"),), "c1", "t1")
    for event in decide(fold, Move(S.INPUT_REQUIRED, question), AT):
        fold.apply(event)
    moved, added = decide(fold, Add(Message("a", Role.USER, (Part(text="this"),))), AT)
    assert isinstance(moved, StatusChanged)
    assert isinstance(added, MessageAdded)
    for event in (moved, added):
        fold.apply(event)
    assert fold.status.state is S.WORKING
    assert [message.message_id for message in fold.history] == ["m1", "q", "a"]
    assert fold.history[-1].task_id == "t1"
    assert fold.history[-1].context_id == "c1"


def test_the_agents_earlier_words_are_kept_in_history_when_newer_ones_come():
    fold = lifecycle.fold_of(S.WORKING)
    for n in (1, 2):
        words = Message(f"w{n}", Role.AGENT, (Part(text=f"{n}"),))
        for event in decide(fold, Move(S.WORKING, words), AT):
            fold.apply(event)
    assert [message.message_id for message in fold.history] == ["m1", "w1"]
    assert fold.status.message is not None
    assert fold.status.message.message_id == "w2"


def test_a_chunk_for_an_artifact_nobody_saw_begins_it():
    fold = lifecycle.fold_of(S.WORKING)
    chunk = Artifact("unseen", (Part(text="x"),))
    [event] = decide(fold, Give(chunk, append=True), AT)
    assert not event.artifact_update.append  # type: ignore[union-attr]
    fold.apply(event)
    [event] = decide(fold, Give(chunk, append=True), AT)
    fold.apply(event)
    assert fold.task().artifacts[-1].text == "xx"


def test_a_whole_artifact_replaces_what_chunks_had_grown():
    fold = lifecycle.fold_of(S.WORKING)
    chunk = Artifact("seen", (Part(text="b"),), metadata={"n": 1})
    for give in (
        Give(chunk, append=True),
        Give(chunk, append=True),
        Give(Artifact("seen", (Part(text="z"),))),
    ):
        for event in decide(fold, give, AT):
            fold.apply(event)
    assert [artifact.text for artifact in fold.task().artifacts] == ["z"]


def test_a_task_that_was_told_of_cannot_become_a_bare_message():
    fold = lifecycle.fold_of(S.SUBMITTED)
    assert decide(fold, Say(lifecycle.WORDS), AT)
    for event in decide(fold, Move(S.WORKING), AT):
        fold.apply(event)
    with pytest.raises(AgentError, match="InvalidAgentResponse"):
        decide(fold, Say(lifecycle.WORDS), AT)


@pytest.mark.parametrize("command", [Add(lifecycle.SAID), Cancel(), Move(S.WORKING), Give(Artifact("a", ()))])
def test_after_a_bare_message_nothing_more_happens(command: Any):
    fold = lifecycle.fold_of(S.SUBMITTED)
    for event in decide(fold, Say(lifecycle.WORDS), AT):
        fold.apply(event)
    assert fold.is_settled
    assert fold.is_over
    with pytest.raises(AgentError):
        decide(fold, command, AT)


def test_opening_names_task_and_context_in_the_first_message():
    [event] = decide(Fold(), Open("t9", "c9", Message("m", Role.USER, (Part(text="hi"),)), {"a": 1}), AT)
    assert isinstance(event, TaskCreated)
    assert event.task.history[0].task_id == "t9"
    assert event.task.history[0].context_id == "c9"
    assert event.task.metadata == {"a": 1}
    assert event.task.state is S.SUBMITTED


def test_applying_one_event_to_a_task_leaves_the_task_as_it_was():
    task = lifecycle.before(S.WORKING)
    [event] = decide(Fold(task), Move(S.COMPLETED), AT)
    assert apply(task, event).state is S.COMPLETED
    assert task.state is S.WORKING


# The vectors: every state x every command, with what it must give.


def load(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return cases


@pytest.mark.parametrize("name", sorted(lifecycle.COMMANDS))
def test_every_state_and_command_gives_what_the_vectors_say(name: str):
    """Shows: S4-018, S4-019, S4-025"""
    kept = load(name)
    assert list(lifecycle.cases(name)) == kept
    assert {case["state"] for case in kept} == {state.word for state in State}
    for case in kept:
        for spelled in case.get("events", ()):
            event = decode(json.dumps(spelled, separators=(",", ":")).encode())
            assert json.loads(encode(event)) == spelled


def test_every_vector_file_belongs_to_a_command():
    assert sorted(path.stem for path in VECTORS.iterdir()) == sorted(lifecycle.COMMANDS)


def test_a_terminal_state_absorbs_every_command_in_the_vectors():
    """Shows: S4-019, S4-024"""
    words = {state.word for state in TERMINAL}
    for name in lifecycle.COMMANDS.keys() - {"open"}:
        for case in load(name):
            if case["state"] in words and name != "say":
                assert case.get("events", []) == [], case


@pytest.mark.parametrize("name", sorted(docs.PAGES))
def test_the_reference_pages_are_as_the_tables_draw_them(name: str):
    """Shows: S4-025"""
    assert (REFERENCE / name).read_text() == docs.PAGES[name](), "run `make docs`"


def test_the_lifecycle_requirements_have_rows():
    rows = tomllib.loads((Path(__file__).parents[1] / "requirements.toml").read_text())["requirement"]
    assert {f"S4-0{n}" for n in range(10, 26)} <= {row["id"] for row in rows}
