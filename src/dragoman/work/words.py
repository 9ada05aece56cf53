"""What an agent may say, and how it becomes parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.task import Message, Part

__all__ = ["Words", "as_parts"]

Words = str | bytes | dict[str, Any] | list[Any] | Part | Message | Sequence[Part]


def as_parts(words: Words) -> tuple[Part, ...]:
    """Text, bytes, JSON values, parts, or a message's own parts."""
    match words:
        case str():
            return (Part(text=words),)
        case bytes():
            return (Part(raw=words, media_type="application/octet-stream"),)
        case Part():
            return (words,)
        case Message():
            return words.parts
        case list() | tuple() if words and all(isinstance(part, Part) for part in words):
            return tuple(words)
        case _:
            return (Part(data=words),)
