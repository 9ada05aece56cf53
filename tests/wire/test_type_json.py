"""The stream of 0.1: its last event brings the artifacts, and who folds what is read holds what there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.tasks import TERMINAL, Fold
from dragoman.model.events import ArtifactChanged, Event, Logged, StatusChanged, TaskCreated, encode
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task
from dragoman.wire import type_json as codec
from tests.wire.values import PATIENT

IDS = st.sampled_from(["a", "b", "c"])
PARTS = st.lists(st.sampled_from("xyz").map(lambda text: Part(text=text)), min_size=1, max_size=2).map(tuple)
METADATA = st.none() | st.dictionaries(st.sampled_from("kl"), st.integers(0, 2), max_size=2)
ARTIFACTS = st.builds(Artifact, IDS, PARTS, st.sampled_from(["", "n"]), st.sampled_from(["", "d"]), METADATA)
CHANGES = st.builds(
    ArtifactChanged.of, st.just("t"), st.just("c"), ARTIFACTS, st.booleans(), st.booleans(), METADATA
)
WORDS = st.none() | st.just(Message("m", Role.AGENT, (Part(text="still at it"),), "c", "t"))
NEWS = st.builds(
    StatusChanged.of, st.just("t"), st.just("c"), st.builds(Status, st.just(State.WORKING), WORDS), METADATA
)
SHOWN = st.builds(
    Task,
    st.just("t"),
    st.just(Status(State.WORKING)),
    st.just("c"),
    st.lists(ARTIFACTS, max_size=2, unique_by=lambda artifact: artifact.artifact_id).map(tuple),
).map(TaskCreated)
ENDS = st.sampled_from(sorted(TERMINAL)).map(lambda state: StatusChanged.of("t", "c", Status(state)))
# A gateway shows a task again when it had to look what became of it.
LOGS = st.builds(
    lambda first, middle, end: (first, *middle, *([] if end is None else [end])),
    SHOWN,
    st.lists(CHANGES | CHANGES | NEWS | SHOWN, max_size=8),
    st.none() | ENDS,
)


def runs(events: Sequence[Event], cuts: Sequence[bool]) -> list[list[Logged]]:
    """These events in runs: a new one begins where the cut says so."""
    found: list[list[Logged]] = [[]]
    for seq, (event, cut) in enumerate(zip(events, cuts, strict=True), 1):
        if cut and found[-1]:
            found.append([])
        found[-1].append(Logged(seq, encode(event), event))
    return found


def held(fold: Fold) -> list[Any]:
    """The artifacts, but for their ids: in 0.1 these are their numbers."""
    return [(one.name, one.description, one.parts, one.metadata) for one in fold.task().artifacts]


@settings(PATIENT, max_examples=400)
@given(events=LOGS, data=st.data())
def test_however_a_stream_is_cut_its_reader_holds_the_artifacts(events: Any, data: st.DataObject) -> None:
    """Shows: S4-035, C3"""
    cuts = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    tell = codec.teller(TERMINAL, "named")
    there, here = Fold(), Fold()
    for run in runs(events, cuts):
        for logged in run:
            there.apply(logged.event)
        for _, said in tell(run):
            for event in codec.read_item(said):
                here.apply(event)
        # Nothing is held back for a later run.
        assert held(here) == held(there)
        assert [one.artifact_id for one in here.task().artifacts] == [str(n) for n in range(len(held(here)))]


@PATIENT
@given(events=LOGS, data=st.data())
def test_the_places_of_a_stream_grow_and_its_last_event_says_so(events: Any, data: st.DataObject) -> None:
    """Shows: C15, S4-032, S4-033"""
    cuts = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    tell = codec.teller(TERMINAL, "named")
    told = [item for run in runs(events, cuts) for item in tell(run)]
    places = [seq for seq, _ in told]
    assert places == sorted(set(places))
    items = [json.loads(said) for _, said in told]
    assert {item["id"] for item in items} == {"named"}
    is_over = isinstance(events[-1], StatusChanged) and events[-1].status.state in TERMINAL
    assert [item.get("final", False) for item in items] == [False] * (len(items) - 1) + [is_over]
