"""What the table of losses means for vectors: which requests a version cannot ask, and how it tells the rest."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any

from dragoman.wire.losses import LOSSES
from dragoman.wire.versions import Dialect

__all__ = ["ASKED", "TOLD", "as_heard", "as_read", "as_told", "can_ask", "losses_of"]

Words = dict[str, Any]
# The keys of a part's metadata that say what has no place of its own.
WRAPPED, BESIDE = "data_part_compat", "urn:dragoman:part"


def losses_of(dialect: Dialect, side: str) -> list[str]:
    return [
        loss.name
        for loss in LOSSES
        if loss.side == side and dialect.version in loss.versions and dialect.binding in loss.bindings
    ]


# Whether a request wants what a version cannot ask.
ASKED: dict[str, Callable[[Words], bool]] = {
    "tenant": lambda asked: bool(asked.get("tenant")),
    "no history": lambda asked: (
        0
        in (
            asked.get("history_length"),
            asked.get("configuration", {}).get("history_length"),
        )
    ),
    "return immediately": lambda asked: asked.get("configuration", {}).get("return_immediately", False),
}


def can_ask(dialect: Dialect, asked: Words) -> bool:
    """Whether a request, in words, can be asked in this version over this binding."""
    return not any(ASKED[name](asked) for name in losses_of(dialect, "asked"))


def told_otherwise(dialect: Dialect) -> bool:
    """Whether a version over a binding tells anything in vectors otherwise than it was."""
    return any(name not in RARE for name in losses_of(dialect, "told"))


def _is_message(node: Words) -> bool:
    return "role" in node and "parts" in node


def _lose_message_ids(node: Words) -> None:
    if _is_message(node):
        node["message_id"] = "*"


def _lose_reference_ids(node: Words) -> None:
    node.pop("reference_task_ids", None)


def _lose_extensions(node: Words) -> None:
    if _is_message(node) or "artifact_id" in node:
        node.pop("extensions", None)


def _lose_artifact_ids(node: Words) -> None:
    if "artifact_id" in node:
        node["artifact_id"] = "*"


def _rename_state(before: str, after: str) -> Callable[[Words], None]:
    def rename(node: Words) -> None:
        status = node.get("status")
        if isinstance(status, dict) and status.get("state") == before:
            status["state"] = after

    return rename


def _make_a_task(node: Words) -> None:
    """An answer that is a message, and the event that says so, become a task that is over."""
    if node.keys() == {"message"} and _is_message(node["message"]):
        message = {**node.pop("message"), "task_id": "*"}
        node["task"] = {"id": "*", "status": {"state": "completed", "message": message}}
        if "context_id" in message:
            node["task"]["context_id"] = message["context_id"]


def _lose_places(node: Words) -> None:
    """Every message in a task or in news of it is of that task."""
    status = node.get("status")
    if not isinstance(status, dict) or "state" not in status:
        return
    said = [status["message"]] if "message" in status else []
    for message in (*said, *node.get("history", ())):
        message["task_id"] = node.get("id", node.get("task_id"))
        message.pop("context_id", None)
        if "context_id" in node:
            message["context_id"] = node["context_id"]


def _is_part(node: Words) -> bool:
    return sum(kind in node for kind in ("text", "raw", "url", "data")) == 1


def _lose_marks(node: Words) -> None:
    """Files have places of their own for all they say, so nothing moves into their metadata."""
    metadata = node.get("metadata")
    if _is_part(node) and isinstance(metadata, dict) and not node.keys() & {"raw", "url"}:
        for mark in (BESIDE, WRAPPED) if "data" in node else (BESIDE,):
            metadata.pop(mark, None)


def _lose_empty_metadata(node: Words) -> None:
    if _is_part(node) and node.get("metadata") == {}:
        del node["metadata"]


def _lose_likeness(node: Words) -> None:
    if _is_part(node) and node.get("raw"):
        try:
            raw = base64.b64decode(base64.b64decode(node["raw"]), validate=True)
        except binascii.Error:
            return
        node["raw"] = base64.b64encode(raw).decode()


# In this order: some make what others then lose something of.
TOLD: dict[str, Callable[[Words], None]] = {
    "messages as answers": _make_a_task,
    "places of messages": _lose_places,
    "message ids": _lose_message_ids,
    "reference ids": _lose_reference_ids,
    "extensions": _lose_extensions,
    "artifact ids": _lose_artifact_ids,
    "rejected": _rename_state("rejected", "failed"),
    "auth-required": _rename_state("auth-required", "input-required"),
    "marks in metadata": _lose_marks,
    "empty metadata": _lose_empty_metadata,
    "bytes like base64": _lose_likeness,
}
# What is lost here and not there, as it happens.
VAGUE = ("empty metadata",)
ANSWERS = ("messages as answers", "places of messages")


def as_told(dialect: Dialect, expected: Words, *, but: str = "") -> Words:
    """What is expected, as far as this version over this binding can say it; `but` is a loss left out."""
    return _lost(expected, [name for name in losses_of(dialect, "told") if name != but])


def as_heard(dialect: Dialect, asked: Words, *, but: str = "") -> Words:
    """What arrives of a request, in words, that can be asked."""
    lost = [name for name in losses_of(dialect, "told") if name != but and name not in ANSWERS]
    return _lost(asked, lost)


def as_read(dialect: Dialect, seen: Words) -> Words:
    """What was read, without what may or may not have been lost."""
    return _lost(seen, [name for name in losses_of(dialect, "told") if name in VAGUE])


def _lost(words: Words, lost: list[str]) -> Words:
    copy: Words = _copied(words)
    for name, lose in TOLD.items():
        if name in lost:
            for node in _nodes(copy):
                lose(node)
    return copy


def _copied(tree: Any) -> Any:
    match tree:
        case dict():
            return {name: _copied(value) for name, value in tree.items()}
        case list():
            return [_copied(value) for value in tree]
        case _:
            return tree


def _nodes(tree: Any) -> Iterator[Words]:
    match tree:
        case dict():
            yield tree
            for value in list(tree.values()):
                yield from _nodes(value)
        case list():
            for value in tree:
                yield from _nodes(value)


# No vector holds these.
RARE = ("marks in metadata", "bytes like base64")
