"""Any sequence of commands: the invariants of a task hold whatever is tried, by whom, in what order."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.core.tasks import (
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    Add,
    Cancel,
    Command,
    Fold,
    Give,
    Move,
    Open,
    Say,
    apply,
    decide,
)
from dragoman.model.errors import AgentError
from dragoman.model.events import Event, MessageAdded, Replied, StatusChanged, decode, encode
from dragoman.model.task import Artifact, Message, Part, Role, State, Task

AT = "2026-01-15T12:00:00.000Z"

words = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3),
)
metadata = st.none() | st.dictionaries(st.text(min_size=1, max_size=4), json_values, max_size=3)
parts = st.lists(
    st.builds(lambda text: Part(text=text), words)
    | st.builds(lambda raw: Part(raw=raw, media_type="a/b"), st.binary(max_size=8))
    | st.builds(lambda value: Part(data=value), json_values),
    min_size=1,
    max_size=3,
).map(tuple)
user = st.builds(Message, words.filter(bool), st.just(Role.USER), parts, metadata=metadata)
agent = st.builds(Message, words.filter(bool), st.just(Role.AGENT), parts, metadata=metadata)
artifacts = st.builds(Artifact, st.sampled_from(["a", "b", "c"]), parts, words, metadata=metadata)


class Lifecycle(RuleBasedStateMachine):
    """One task. `decide` may refuse; what it gives is applied, and then everything must still be true."""

    fold: Fold
    log: list[Event]
    stepwise: Task

    @initialize(message=user, about=metadata)
    def open(self, message: Message, about: dict[str, Any] | None) -> None:
        self.fold, self.log = Fold(), []
        self.stepwise = Fold().task()
        self.attempt(Open("t", "c", message, about))
        assert self.fold.status.state is State.SUBMITTED

    def attempt(self, command: Command) -> bool:
        """Decide and apply; whether it was allowed. A refusal leaves everything as it was."""
        before, was = self.fold.task(), self.fold.status.state
        was_over = self.fold.is_over
        try:
            events = decide(self.fold, command, AT)
        except AgentError as wrong:
            assert self.fold.task() == before
            assert wrong.name in ("UnsupportedOperation", "TaskNotCancelable", "InvalidAgentResponse")
            return False
        assert not (was_over and events), "terminal is for ever"
        for event in events:
            if isinstance(event, StatusChanged):
                assert event.status.state in TRANSITIONS[self.fold.status.state]
            data = encode(event)
            assert b"\n" not in data, "a stored event is one line"
            assert decode(data) == event
            self.fold.apply(event)
            self.log.append(event)
            self.stepwise = apply(self.stepwise, event)
        if was in TERMINAL:
            assert self.fold.status.state is was
        return True

    @rule(message=user)
    def a_caller_says_more(self, message: Message) -> None:
        was_over, was = self.fold.is_over, self.fold.status.state
        assert self.attempt(Add(message)) is not was_over
        if not was_over:
            assert isinstance(self.log[-1], MessageAdded)
            assert (self.fold.status.state is State.WORKING) if was in INTERRUPTED else True

    @rule(grace=st.booleans(), why=metadata)
    def a_caller_cancels(self, grace: bool, why: dict[str, Any] | None) -> None:
        was, had_reply = self.fold.status.state, self.fold.reply is not None
        allowed = self.attempt(Cancel(why, grace))
        assert allowed is (was is State.CANCELED or (was not in TERMINAL and not had_reply))
        if allowed and not grace:
            assert self.fold.status.state is State.CANCELED

    @rule(state=st.sampled_from(State), message=st.none() | agent, about=metadata)
    def the_agent_moves_it(self, state: State, message: Message | None, about: dict[str, Any] | None) -> None:
        legal = self.fold.reply is None and state in TRANSITIONS[self.fold.status.state]
        assert self.attempt(Move(state, message, about)) is legal

    @rule(artifact=artifacts, append=st.booleans(), last=st.booleans())
    def the_agent_gives_something(self, artifact: Artifact, append: bool, last: bool) -> None:
        was = {name: len(grown.value().parts) for name, grown in self.fold.artifacts.items()}
        if self.attempt(Give(artifact, append, last)):
            now = len(self.fold.artifacts[artifact.artifact_id].value().parts)
            grew = append and artifact.artifact_id in was
            assert now == len(artifact.parts) + (was[artifact.artifact_id] if grew else 0)

    @precondition(lambda self: not self.fold.is_told)
    @rule(message=agent)
    def the_agent_answers_with_a_message(self, message: Message) -> None:
        if not self.fold.is_over:
            assert self.attempt(Say(message))
            assert isinstance(self.log[-1], Replied)

    @invariant()
    def folding_the_whole_log_gives_the_same(self) -> None:
        again = Fold()
        for event in self.log:
            again.apply(decode(encode(event)))
        assert again.task() == self.fold.task()
        assert again.reply == self.fold.reply
        assert again.is_over == self.fold.is_over

    @invariant()
    def applying_one_by_one_gives_the_same(self) -> None:
        assert self.stepwise == self.fold.task()

    @invariant()
    def a_snapshot_taken_anywhere_leads_to_the_same(self) -> None:
        half = len(self.log) // 2 + 1
        early = Fold()
        for event in self.log[:half]:
            early.apply(event)
        late = Fold(early.task())
        for event in self.log[half:]:
            late.apply(event)
        assert late.task() == self.fold.task()

    @invariant()
    def the_first_message_stays_the_first(self) -> None:
        assert self.fold.history[0].role is Role.USER


Lifecycle.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAnyCommandSequenceKeepsTheInvariants = Lifecycle.TestCase
