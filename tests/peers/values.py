"""What is said between peers, as plain values: read from the JSON of any version, whoever wrote it down.

Ours and other parties' programs spell one thing in several ways. The cases are written in the words of these
values alone. Nothing here uses our codecs: they are what is tested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Card", "Item", "Json", "Message", "Page", "Task", "fold", "spell_message", "spell_wishes"]

Json = dict[str, Any]
# How 0.3 holds JSON that is no object, by the convention of a2a-sdk.
WRAPPED = "data_part_compat"


@dataclass(frozen=True)
class Card:
    """`ways` are the interfaces: binding and version."""

    name: str
    streams: bool
    skills: int
    ways: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, said: Json) -> Card:
        version = said.get("protocolVersion") or ""
        listed = said.get("supportedInterfaces")
        if listed is not None:
            ways = [(it["protocolBinding"], it.get("protocolVersion", "")) for it in listed]
        else:
            more = [it["transport"] for it in said.get("additionalInterfaces") or ()]
            ways = [(binding, version) for binding in (said.get("preferredTransport") or "JSONRPC", *more)]
        return cls(
            said["name"],
            (said.get("capabilities") or {}).get("streaming") is True,
            len(said["skills"]),
            tuple((binding, ".".join(version.split(".")[:2])) for binding, version in dict.fromkeys(ways)),
        )


@dataclass(frozen=True)
class Message:
    parts: tuple[Json, ...]
    context_id: str = ""
    task_id: str = ""

    @classmethod
    def read(cls, said: Json) -> Message:
        return cls(
            parts_of(said), said.get("contextId") or said.get("sessionId") or "", said.get("taskId") or ""
        )

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True)
class Task:
    """`artifacts` are the parts of each, by its id."""

    id: str
    state: str
    context_id: str = ""
    says: Message | None = None
    artifacts: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    history: tuple[Message, ...] = ()

    @classmethod
    def read(cls, said: Json) -> Task:
        state, says = status_of(said["status"])
        return cls(
            said["id"],
            state,
            said.get("contextId") or said.get("sessionId") or "",
            says,
            {
                one.get("artifactId") or str(one.get("index") or n): parts_of(one)
                for n, one in enumerate(said.get("artifacts") or ())
            },
            tuple(Message.read(message) for message in said.get("history") or ()),
        )

    @property
    def parts(self) -> tuple[Json, ...]:
        return tuple(part for parts in self.artifacts.values() for part in parts)

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def question(self) -> str:
        return self.says.text if self.says is not None else ""


@dataclass(frozen=True)
class Page:
    tasks: tuple[Task, ...]
    next: str
    total: int

    @classmethod
    def read(cls, said: Json) -> Page:
        tasks = tuple(Task.read(one) for one in said.get("tasks") or ())
        return cls(tasks, said.get("nextPageToken") or "", said.get("totalSize") or 0)


@dataclass(frozen=True)
class Item:
    """One item of a stream: a task, a message, a status or a piece of an artifact."""

    kind: str
    task: Task | None = None
    message: Message | None = None
    state: str = ""
    artifact_id: str = ""
    parts: tuple[Json, ...] = ()
    append: bool = False

    @classmethod
    def read(cls, said: Json) -> Item:
        for name in ("task", "message", "msg", "statusUpdate", "artifactUpdate"):
            # A bare status update has no such member, and a bare message none that is an object.
            if isinstance(said.get(name), dict) and "kind" not in said:
                said = said[name]
                break
        if "artifact" in said:
            artifact = said["artifact"]
            name = artifact.get("artifactId") or str(artifact.get("index") or 0)
            append = bool(said.get("append") or artifact.get("append"))
            return cls("artifact", artifact_id=name, parts=parts_of(artifact), append=append)
        if "status" not in said:
            return cls("message", message=Message.read(said))
        if "id" in said and "taskId" not in said and "final" not in said:
            task = Task.read(said)
            return cls("task", task=task, state=task.state)
        return cls("status", state=status_of(said["status"])[0])


@dataclass
class Seen:
    """A stream, folded the way the protocol says."""

    kinds: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    artifacts: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    task_id: str = ""

    @property
    def text(self) -> str:
        return text_of(part for parts in self.artifacts.values() for part in parts)


def fold(items: Iterable[Item]) -> Seen:
    seen = Seen()
    for item in items:
        seen.kinds.append(item.kind)
        if item.state:
            seen.states.append(item.state)
        if item.task is not None:
            seen.task_id = item.task.id
            seen.artifacts = dict(item.task.artifacts)
        elif item.kind == "artifact":
            before = seen.artifacts.get(item.artifact_id, ()) if item.append else ()
            seen.artifacts[item.artifact_id] = before + item.parts
    return seen


def status_of(said: Json) -> tuple[str, Message | None]:
    words = said.get("message")
    state = said["state"].upper().replace("-", "_").removeprefix("TASK_STATE_")
    return state.replace("CANCELLED", "CANCELED"), Message.read(words) if words else None


def text_of(parts: Iterable[Json]) -> str:
    return "".join(part.get("text", "") for part in parts)


def parts_of(said: Json) -> tuple[Json, ...]:
    return tuple(read_part(part) for part in said.get("parts") or said.get("content") or ())


def read_part(said: Json) -> Json:
    """A part as 1.0 has it: what is empty is not said."""
    flat = {name: value for name, value in said.items() if name not in ("kind", "type", "file")}
    if (file := said.get("file")) is not None:
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        flat |= {names[name]: value for name, value in file.items() if value is not None}
    metadata = flat.pop("metadata", None) or {}
    if metadata.get(WRAPPED):
        flat["data"] = flat["data"]["value"]
        metadata = {name: value for name, value in metadata.items() if name != WRAPPED}
    if metadata:
        flat["metadata"] = metadata
    content = ("text", "raw", "url", "data")
    return {name: value for name, value in flat.items() if name in content or value not in ("", None)}


def spell_message(spelling: str, message: Json) -> Json:
    """A message of 1.0 in one of the spellings that other parties' programs take: `1.0`, `kind` or `type`."""
    if spelling == "1.0":
        return message
    role = message["role"].removeprefix("ROLE_").lower()
    parts = [_spell_part(part, spelling) for part in message["parts"]]
    kind = {"kind": "message"} if spelling == "kind" else {}
    return {**message, **kind, "role": role, "parts": parts}


def _spell_part(part: Json, mark: str) -> Json:
    beside = {"metadata": part["metadata"]} if "metadata" in part else {}
    if "text" in part:
        return {mark: "text", "text": part["text"], **beside}
    if "data" in part:
        data = part["data"]
        if isinstance(data, dict):
            return {mark: "data", "data": data, **beside}
        return {mark: "data", "data": {"value": data}, "metadata": {WRAPPED: True}}
    names = {"raw": "bytes", "url": "uri", "filename": "name", "mediaType": "mimeType"}
    return {mark: "file", "file": {names[name]: part[name] for name in names if name in part}, **beside}


def spell_wishes(spelling: str, wait: bool, history_length: int | None) -> Json:
    """How the caller wants to be answered; what is so by default is not said."""
    wishes: Json = {}
    if not wait:
        wishes |= {"returnImmediately": True} if spelling == "1.0" else {"blocking": False}
    if history_length is not None:
        wishes["historyLength"] = history_length
    return wishes
