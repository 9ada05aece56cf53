"""The pages of docs/reference about each version of the protocol: what we read, what we write, what is lost."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.model.errors import error
from dragoman.model.events import ArtifactChanged, Logged, StatusChanged, TaskCreated, encode
from dragoman.model.operations.a2a import OPERATIONS, Get, Send
from dragoman.model.peer import Answer
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task
from dragoman.wire.losses import LOSSES, READ_BESIDE
from dragoman.wire.rest_asking import spell
from dragoman.wire.versions import DIALECTS, Dialect

__all__ = ["PAGES", "page"]

VERSIONS = ("1.0", "0.3", "0.2", "0.1")
PAGES = {f"a2a-{version}.md": version for version in VERSIONS}
ENDS = frozenset({State.COMPLETED})
SAID = Message("m-1", Role.USER, (Part(text="hello"),), "c-1")
ANSWER = Artifact(
    "answer", (Part(text="hello"), Part(raw=b"hi", media_type="image/png", filename="a.png")), "answer"
)
TASK = Task("t-1", Status(State.COMPLETED, None, "2026-01-31T12:00:00.000Z"), "c-1", (ANSWER,), (SAID,))
EVENTS = (
    TaskCreated(Task("t-1", Status(State.SUBMITTED), "c-1")),
    ArtifactChanged.of("t-1", "c-1", Artifact("answer", (Part(text="hel"),), "answer")),
    ArtifactChanged.of("t-1", "c-1", Artifact("answer", (Part(text="lo"),)), append=True, last_chunk=True),
    StatusChanged.of("t-1", "c-1", Status(State.COMPLETED)),
)


def page(version: str) -> str:
    """One version, with a sample of each thing as its codecs really write it."""
    dialects = [one for one in DIALECTS.values() if one.version.partition("/")[0] == version]
    parts = [f"# A2A {version}\n", _opening(dialects), "## Operations\n", _operations(dialects)]
    for dialect in dialects:
        parts += [f"## As we write it over {dialect.binding}{_form(dialect)}\n", *_samples(dialect)]
    read = [f"- {words}" for words, versions in READ_BESIDE if version in versions]
    parts += ["## What is read beside that\n", "\n".join(read) + "\n"]
    lost = _lost(dialects) or ["Nothing: it is the version the model itself is in."]
    parts += ["## What is lost\n", "\n".join(lost) + "\n"]
    return "\n".join(parts)


def _lost(dialects: list[Dialect]) -> list[str]:
    lines: dict[str, list[str]] = {}
    for loss in LOSSES:
        for one in dialects:
            if one.version in loss.versions and one.binding in loss.bindings:
                lines.setdefault(f"- **{loss.name}**: {loss.words}", []).append(one.binding + _form(one))
    everywhere = {one.binding + _form(one) for one in dialects}
    return [
        words if set(where) == everywhere else f"{words} ({'; '.join(where)})"
        for words, where in lines.items()
    ]


def _form(dialect: Dialect) -> str:
    form = dialect.version.partition("/")[2]
    return f", form `{form}`" if form else ""


def _opening(dialects: list[Dialect]) -> str:
    first = dialects[0]
    asked = [f"Callers say it with `A2A-Version: {first.header}`."] if first.header else []
    if not asked:
        asked = ["Callers say it by the names of their methods; no header does."]
    asked.append(f"Extensions are asked for in `{first.extensions}`.")
    if first.names_tasks:
        asked.append(
            "Callers name their tasks; a name is its caller's own. A cancel that comes too late is no error."
        )
    if not first.ends_at_question:
        asked.append("A stream stays open while the agent waits for an answer, and ends with the task.")
    return " ".join(asked) + "\n"


def _operations(dialects: list[Dialect]) -> str:
    own = [one for one in dialects if not _form(one)]
    rows = ["| operation | " + " | ".join(one.binding for one in own) + " |", "| --- |" + " --- |" * len(own)]
    for row in OPERATIONS.values():
        names = [f"`{one.name_of(row)}`" if one.name_of(row) else "–" for one in own]
        rows.append(f"| {row.name} | {' | '.join(names)} |")
    return "\n".join(rows) + "\n"


def _samples(dialect: Dialect) -> list[str]:
    send, get = OPERATIONS["send"], OPERATIONS["get"]
    codec = dialect.codec
    task_id = "t-1" if dialect.names_tasks else ""
    asked = Send(msgspec.structs.replace(SAID, task_id=task_id))
    request: Any
    if dialect.binding == "JSONRPC":
        params = json.loads(codec.spell_request(send, asked))
        request = {"jsonrpc": "2.0", "id": 1, "method": dialect.name_of(send), "params": params}
        heading = "POST to the agent's address:"
    else:
        spelled = spell(dialect, send, asked)
        request = json.loads(spelled.body)
        read = spell(dialect, get, Get("t-1"))
        heading = f"`{spelled.method} {spelled.path}`, and `{read.method} {read.path}` to read a task:"
    answer = json.loads(codec.spell_reply(send, Answer(Task, TASK), task_id))
    run = [Logged(number, encode(event), event) for number, event in enumerate(EVENTS, 1)]
    told = [json.loads(item) for _, item in codec.teller(ENDS, task_id)(run)]
    wrong = codec.spell_error(error("TaskNotFound", "there is no task t-2"))
    return [
        heading,
        _json(request),
        "Its answer (over JSON-RPC the `result`):\n",
        _json(answer),
        "A stream of it, item by item:\n",
        "```json\n" + "\n".join(json.dumps(one, ensure_ascii=False) for one in told) + "\n```\n",
        "An error (over REST the statuses are those of the [error table](errors.md)):\n",
        _json(wrong),
    ]


def _json(value: Any) -> str:
    return "\n```json\n" + json.dumps(value, indent=1, ensure_ascii=False) + "\n```\n"
