"""Whatever the model can say survives the way through any version and back, but for what the table of losses lists."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given

from dragoman.client.judge import Judge
from dragoman.core.tasks import TERMINAL
from dragoman.model.errors import ERRORS, AgentError
from dragoman.model.events import Event, Logged, Replied, TaskCreated, encode
from dragoman.model.operations import OPERATIONS, Page, Request, Send
from dragoman.model.peer import Answer
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task, replace
from dragoman.wire import jsonrpc, rest, rest_asking
from dragoman.wire.losses import LOSSES, lost_in
from dragoman.wire.versions import DIALECTS, NEWEST, Dialect
from tests.suite.losses import ASKED, TOLD, as_heard, as_read, as_told, can_ask, losses_of
from tests.suite.words import differences, in_words
from tests.wire.values import PATIENT, events, messages, new_id, requests, tasks

ENDS = TERMINAL
IDS = {key: f"{key[1]} over {key[0]}" for key in DIALECTS}
IN_EVERY_DIALECT = pytest.mark.parametrize(
    "dialect", [pytest.param(dialect, id=IDS[key]) for key, dialect in DIALECTS.items()]
)
REPLIES = {Task: "task", Message: "message", Page: "page"}


# The way there and back.


def answered(dialect: Dialect, value: Task | Message) -> Any:
    """The value, as one reads it who asked."""
    operation = OPERATIONS["get" if isinstance(value, Task) else "send"]
    # Where callers name tasks, there is a name for what has none.
    name = "named" if dialect.names_tasks and isinstance(value, Message) else ""
    said = dialect.codec.spell_reply(operation, Answer(type(value), value), name)
    return dialect.codec.read_reply(operation, said).value


def streamed(dialect: Dialect, event: Event) -> Event:
    """The event, as one hears it who follows."""
    name = "named" if dialect.names_tasks and isinstance(event, Replied) else ""
    [(_, said)] = dialect.codec.teller(ENDS, name)([Logged(1, encode(event), event)])
    [heard] = dialect.codec.read_item(said)
    if isinstance(event, TaskCreated | Replied) and not dialect.begins_with_task:
        # The first status shows the task.
        [heard] = Judge(begins_with_task=False).hear(heard)
    return heard


def asked(dialect: Dialect, name: str, request: Request) -> Request:
    """The request, as the binding reads it at the other end."""
    operation = OPERATIONS[name]
    if dialect.binding == "JSONRPC":
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": dialect.name_of(operation),
            "params": msgspec.Raw(dialect.codec.spell_request(operation, request)),
        }
        question = jsonrpc.Asked()
        version = b"" if dialect.names_tasks else dialect.version.encode()
        question.read("POST", msgspec.json.encode(call), new_id, header=version)
        return question.request
    method, path, body = rest_asking.spell(dialect, operation, request)
    path, _, query = path.partition("?")
    place = rest.place_of(path)
    assert place is not None, path
    rules = rest.Rules(form_0_3="once" if dialect.version.endswith("once") else "proto")
    answering = rest.Asked(place, rules, {})
    answering.read(method, body, new_id, header=dialect.header.encode(), query=query.encode())
    return answering.request


def named(dialect: Dialect, request: Request) -> Request:
    """As callers ask who name their tasks."""
    if dialect.names_tasks and isinstance(request, Send) and not request.message.task_id:
        return replace(request, message=replace(request.message, task_id="named"))
    return request


def compare(dialect: Dialect, expected: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    return list(differences(expected, as_read(dialect, seen), {}))


@IN_EVERY_DIALECT
@PATIENT
@given(value=tasks() | messages())
def test_an_answer_survives_but_for_what_is_listed(dialect: Dialect, value: Task | Message) -> None:
    seen = answered(dialect, value)
    expected = as_told(dialect, {REPLIES[type(value)]: in_words(value)})
    assert compare(dialect, expected, {REPLIES[type(seen)]: in_words(seen)}) == []


@IN_EVERY_DIALECT
@PATIENT
@given(event=events())
def test_an_event_survives_but_for_what_is_listed(dialect: Dialect, event: Event) -> None:
    seen = streamed(dialect, event)
    assert compare(dialect, as_told(dialect, in_words(event)), in_words(seen)) == []


@IN_EVERY_DIALECT
@PATIENT
@given(drawn=requests())
def test_a_request_survives_if_it_can_be_asked(dialect: Dialect, drawn: tuple[str, Request]) -> None:
    name, request = drawn
    assume(dialect.name_of(OPERATIONS[name]))
    request = named(dialect, request)
    words = in_words(request)
    seen = in_words(asked(dialect, name, request))
    arrived = compare(dialect, as_heard(dialect, words), seen) == []
    assert arrived == can_ask(dialect, words)


@IN_EVERY_DIALECT
@pytest.mark.parametrize("name", ERRORS)
def test_every_error_survives_in_every_version(dialect: Dialect, name: str) -> None:
    """The name, the words, the place: a reason is said beside the code, whose meaning has changed over time."""
    said = AgentError(ERRORS[name], "Why.", at="message.parts[0]", metadata={"taskId": "t"})
    heard = dialect.codec.read_error(
        msgspec.json.decode(msgspec.json.encode(dialect.codec.spell_error(said)))
    )
    assert (heard.name, heard.message, heard.at, heard.metadata) == (name, "Why.", said.at, said.metadata)


# What is listed is lost.

HI = Part(text="hi")
MESSAGE = Message("m1", Role.AGENT, (HI,), "c1", "t1")
TASK = Task("t1", Status(State.WORKING), "c1", (Artifact("a1", (HI,)),))


def saying(*parts: Part, **members: Any) -> Task:
    return replace(TASK, history=(replace(MESSAGE, parts=parts or (HI,), **members),))


# For each loss something of which it takes away a part.
TELLS: dict[str, Task | Message] = {
    "messages as answers": MESSAGE,
    "places of messages": saying(task_id="", context_id=""),
    "message ids": saying(),
    "reference ids": saying(reference_task_ids=("t0",)),
    "extensions": saying(extensions=("urn:e",)),
    "artifact ids": TASK,
    "rejected": replace(TASK, status=Status(State.REJECTED)),
    "auth-required": replace(TASK, status=Status(State.AUTH_REQUIRED)),
    "marks in metadata": saying(Part(data={}, metadata={"data_part_compat": False, "k": 1})),
    "empty metadata": saying(Part(text="hi", media_type="text/x", metadata={})),
    "bytes like base64": saying(Part(raw=b"abcd")),
}
SEND = Send(replace(MESSAGE, role=Role.USER))
ASKS: dict[str, Send] = {
    "tenant": replace(SEND, tenant="a"),
    "no history": replace(SEND, configuration=replace(SEND.configuration, history_length=0)),
    "return immediately": replace(SEND, configuration=replace(SEND.configuration, return_immediately=True)),
}


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        pytest.param(dialect, name, id=f"{name} in {IDS[key]}")
        for key, dialect in DIALECTS.items()
        for name in lost_in(*key)
    ],
)
def test_what_is_listed_is_lost_where_it_is_listed(dialect: Dialect, name: str) -> None:
    if name in ASKS:
        asked_for = in_words(ASKS[name])
        seen = in_words(asked(dialect, "send", ASKS[name]))
        assert not can_ask(dialect, asked_for)
        assert list(differences(as_heard(dialect, asked_for), seen, {})) != []
        return
    value = TELLS[name]
    words = {REPLIES[type(value)]: in_words(value)}
    answer = answered(dialect, value)
    seen = {REPLIES[type(answer)]: in_words(answer)}
    assert list(differences(as_told(dialect, words), seen, {})) == []
    assert list(differences(as_told(dialect, words, but=name), seen, {})) != []


def test_the_table_of_losses_has_a_row_for_each_and_nothing_else() -> None:
    told = {loss.name for loss in LOSSES if loss.side == "told"}
    assert told == TELLS.keys() == TOLD.keys()
    assert {loss.name for loss in LOSSES if loss.side == "asked"} == ASKS.keys() == ASKED.keys()
    for loss in LOSSES:
        assert [key for key in DIALECTS if key[0] in loss.bindings and key[1] in loss.versions], loss
        assert loss.words.endswith("."), loss
    rows = [(name, *key) for key in DIALECTS for name in lost_in(*key)]
    assert len(rows) == len(set(rows)), "a loss is listed twice for one dialect"


def test_nothing_is_lost_in_the_newest_version() -> None:
    for binding in ("JSONRPC", "HTTP+JSON"):
        assert lost_in(binding, NEWEST) == []
        assert losses_of(DIALECTS[binding, NEWEST], "told") == []
