"""The codecs before 1.0 against their vectors: a value is written so, read from all of these, and these are refused.

A case has a `model` in 1.0's JSON, the `wire` it is written as, and the `reads` that mean the same. Where a version
loses something, `arrives` is what is read from its own wire. Without a `wire` the value is only ever read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.core.tasks import TERMINAL
from dragoman.model import events
from dragoman.model.errors import ERRORS, AgentError, error
from dragoman.model.events import Logged, Replied, TaskCreated
from dragoman.model.operations import OPERATIONS
from dragoman.model.peer import Answer
from dragoman.model.task import State, Task
from dragoman.wire import guard, type_json
from dragoman.wire.kind_json import BOTH, KIND, TYPE
from dragoman.wire.proto_json_0_3 import ONCE, TWICE
from dragoman.wire.versions import DIALECTS
from tests.suite.words import differences
from tests.wire.values import new_id

VECTORS = Path(__file__).parent.parent / "vectors" / "codec"
# Which folder shows which codec, and the states with which its streams end that a send has opened.
AT_QUESTION = TERMINAL | {State.INPUT_REQUIRED}
CODECS: dict[str, tuple[Any, frozenset[State]]] = {
    "v0_1": (type_json, TERMINAL),
    "v0_2_type": (TYPE, AT_QUESTION),
    "v0_2_unsaid": (BOTH, AT_QUESTION),
    "v0_3_kind": (KIND, AT_QUESTION),
    "v0_3_once": (ONCE, AT_QUESTION),
    "v0_3_proto": (TWICE, AT_QUESTION),
}
FILES = {
    (folder, path.stem): json.loads(path.read_text())
    for folder in CODECS
    for path in sorted((VECTORS / folder).glob("*.json"))
}
CASES = [
    pytest.param(*key, case, id=f"{key[0]}/{key[1]}: {case['name']}")
    for key, file in FILES.items()
    if key[1] != "stream"
    for case in file["cases"]
]
STREAMS = [
    pytest.param(key[0], case, id=f"{key[0]}: {case['name']}")
    for key, file in FILES.items()
    if key[1] == "stream"
    for case in file["cases"]
]
REJECTS = [
    pytest.param(*key, reject, id=f"{key[0]}/{key[1]}: {reject['name']}")
    for key, file in FILES.items()
    for reject in file["rejects"]
]
# In which operation each kind of value is answered.
ANSWERED = {"task": OPERATIONS["get"], "reply": OPERATIONS["send"]}


def spell(wire: Any) -> bytes:
    return json.dumps(wire, ensure_ascii=False).encode()


def event_of(model: Any) -> Any:
    return events.decode(json.dumps(model, separators=(",", ":")).encode())


def value_of(kind: str, model: Any) -> Any:
    """What a vector means: what the model itself reads, without a codec."""
    match kind:
        case "task":
            return msgspec.json.decode(spell(model), type=Task)
        case "reply":
            event = event_of(model)
            assert isinstance(event, TaskCreated | Replied)
            return event.task if isinstance(event, TaskCreated) else event.message
        case "stream_item":
            return tuple(event_of(one) for one in (model if isinstance(model, list) else [model]))
        case "error":
            return (model["name"], model["message"], model.get("at", ""), model.get("metadata", {}))
        case _:
            return msgspec.json.decode(spell(model), type=OPERATIONS[kind].request)


def write(folder: str, kind: str, case: dict[str, Any]) -> bytes:
    codec, ends = CODECS[folder]
    value = value_of(kind, case["model"])
    task_id = case.get("task_id", "")
    match kind:
        case "task" | "reply":
            return codec.spell_reply(ANSWERED[kind], Answer(type(value), value), task_id)
        case "stream_item":
            [event] = value
            [(seq, told)] = codec.teller(ends, task_id)([Logged(7, events.encode(event))])
            assert seq == 7
            return told
        case "error":
            name, message, at, metadata = value
            nuance = case["model"].get("nuance", "")
            wrong = error(name, message, at=at, nuance=nuance, **metadata)
            return msgspec.json.encode(codec.spell_error(wrong))
        case _:
            return codec.spell_request(OPERATIONS[kind], value)


def read(folder: str, kind: str, body: bytes, *, lenient: bool | None = None) -> Any:
    """Guard and codec, as a binding calls them."""
    codec, _ = CODECS[folder]
    facts = guard.check(body)
    match kind:
        case "task" | "reply":
            answer = codec.read_reply(ANSWERED[kind], body)
            assert type(answer.value) is answer.kind
            return answer.value
        case "stream_item":
            return tuple(codec.read_item(body))
        case "error":
            told = codec.read_error(msgspec.json.decode(body))
            return (told.name, told.message, told.at, told.metadata)
        case _:
            is_lenient = facts.lenient if lenient is None else lenient
            return codec.read_request(OPERATIONS[kind], body, new_id, lenient=is_lenient)


@pytest.mark.parametrize(("folder", "kind", "case"), CASES)
def test_a_value_is_written_as_its_vector_says_and_read_back(
    folder: str, kind: str, case: dict[str, Any]
) -> None:
    """Shows: S0-019, S0-020, S1-071, S1-072, S1-073, S4-030, S4-034, C3, C11"""
    if "wire" in case:
        written = write(folder, kind, case)
        assert json.loads(written) == case["wire"]
        assert read(folder, kind, written) == value_of(kind, case.get("arrives", case["model"]))


@pytest.mark.parametrize(("folder", "kind", "case"), CASES)
def test_other_spellings_of_a_value_are_read_the_same(folder: str, kind: str, case: dict[str, Any]) -> None:
    """Shows: C3, C4, C5, C7, S1-075, S1-076"""
    for wire in case.get("reads", []):
        expected = value_of(kind, case.get("arrives", case["model"]))
        assert read(folder, kind, spell(wire)) == expected, wire
        assert read(folder, kind, spell(wire), lenient=True) == expected, wire


@pytest.mark.parametrize(("folder", "kind", "reject"), REJECTS)
def test_what_is_wrong_is_refused_at_its_place(folder: str, kind: str, reject: dict[str, Any]) -> None:
    for lenient in (None, True):
        with pytest.raises(AgentError) as refused:
            read(folder, kind, spell(reject["wire"]), lenient=lenient)
        assert (refused.value.name, refused.value.at) == (reject["error"], reject["at"])
        assert refused.value.message


@pytest.mark.parametrize(("folder", "case"), STREAMS)
def test_a_stream_is_told_item_by_item_as_its_vector_says(folder: str, case: dict[str, Any]) -> None:
    """Shows: S4-031, S4-032, S4-033, S4-035, C3, C15"""
    codec, ends = CODECS[folder]
    tell = codec.teller(ends, case.get("task_id", ""))
    numbers = iter(range(1, 100))
    runs = [[Logged(next(numbers), events.encode(event_of(one))) for one in run] for run in case["runs"]]
    told = [said for run in runs for _, said in tell(run)]
    # As printed, down to the order of the members.
    assert told == [msgspec.json.encode(item) for item in case["wire"]]
    heard = [json.loads(events.encode(event)) for said in told for event in codec.read_item(said)]
    assert list(differences(case["arrives"], heard, {})) == []


def test_every_operation_of_every_dialect_has_vectors() -> None:
    shown = {id(codec): folder for folder, (codec, _) in CODECS.items()}
    for (_, version), dialect in DIALECTS.items():
        folder = shown.get(id(dialect.codec), "v1_0")
        kinds = {path.stem for path in (VECTORS / folder).glob("*.json")}
        named = {name for name, row in OPERATIONS.items() if dialect.name_of(row)} - {"stream"}
        # It differs from `v0_3_proto` in the bytes of parts alone.
        needed = {"send", "task"} if folder == "v0_3_once" else named
        assert needed <= kinds, version


def test_every_vector_is_spelled_as_the_others_are() -> None:
    for (folder, kind), file in FILES.items():
        where = f"{folder}/{kind}"
        assert file.keys() == {"kind", "cases", "rejects"}, where
        assert file["kind"] == kind, where
        for case in file["cases"]:
            parts = {"name", "source", "task_id", "model", "runs", "wire", "arrives", "reads"}
            assert case.keys() <= parts, f"{where}: {case['name']}"
            assert "wire" in case or case.get("reads"), f"{where}: {case['name']} shows nothing"
        for reject in file["rejects"]:
            assert reject.keys() == {"name", "wire", "error", "at"}, f"{where}: {reject['name']}"
            assert reject["error"] in ERRORS, f"{where}: {reject['name']}"
        for names in ([case["name"] for case in file["cases"]], [one["name"] for one in file["rejects"]]):
            assert len(names) == len(set(names)), where
