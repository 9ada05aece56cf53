"""What the table of losses means for vectors: which requests a version cannot ask, and how it tells the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.wire.losses import LOSSES
from dragoman.wire.versions import Dialect

__all__ = ["as_told", "can_ask", "losses_of"]

Words = dict[str, Any]


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
        status = {"state": "completed", "message": message}
        node["task"] = {"id": "*", "status": status, "context_id": message.get("context_id", "*")}


TOLD: dict[str, Callable[[Words], None]] = {
    "messages as answers": _make_a_task,
    "message ids": _lose_message_ids,
    "reference ids": _lose_reference_ids,
    "extensions": _lose_extensions,
    "artifact ids": _lose_artifact_ids,
    "rejected": _rename_state("rejected", "failed"),
    "auth-required": _rename_state("auth-required", "input-required"),
    # No vector holds these: the round trips of the codecs do.
    "marks in metadata": lambda node: None,
    "bytes like base64": lambda node: None,
}


def as_told(dialect: Dialect, expected: Words) -> Words:
    """What is expected, as far as this version over this binding can say it."""
    copy = _copied(expected)
    lost = losses_of(dialect, "told")
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
