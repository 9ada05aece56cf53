"""Vectors speak in words of the model: its names, states as people read them, bytes in base64.

Here words become model values and back, and what was seen is compared with what was expected.
"""

from __future__ import annotations

import base64
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from dragoman import Role, State

__all__ = ["differences", "filled", "in_words", "value_of"]

STATES = {state.word: state for state in State}
REST = "..."


def value_of(kind: Any, words: Any) -> Any:
    """The model value that words say. A word the model does not know is a mistake of the vector."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        # Always `X | None` or `X | UnsetType`, and who leaves it out does not get here.
        kind = typing.get_args(kind)[0]
    if words is None:
        return None
    if typing.get_origin(kind) is tuple:
        return tuple(value_of(typing.get_args(kind)[0], word) for word in words)
    if isinstance(kind, type) and issubclass(kind, Struct):
        types_ = {field.name: field.type for field in msgspec.structs.fields(kind)}
        return kind(**{name: value_of(types_[name], word) for name, word in words.items()})
    if kind is State:
        return STATES[words]
    if kind is Role:
        return Role[words.upper()]
    if kind is bytes:
        return base64.b64decode(words, validate=True)
    return words


def in_words(value: Any) -> Any:
    """A model value in words, without what is as it is by default."""
    match value:
        case Struct():
            fields = msgspec.structs.fields(type(value))
            named = [(field, getattr(value, field.name)) for field in fields]
            return {
                field.name: in_words(it)
                for field, it in named
                if it is not field.default and it != field.default
            }
        case State():
            return value.word
        case Role():
            return value.name.lower()
        case bytes():
            return base64.b64encode(value).decode()
        case tuple():
            return [in_words(item) for item in value]
        case _:
            return value


def filled(words: Any, names: dict[str, Any]) -> Any:
    """Words with each `$name` replaced by what was seen under it before."""
    match words:
        case str() if words.startswith("$"):
            return names[words]
        case dict():
            return {key: filled(word, names) for key, word in words.items()}
        case list():
            return [filled(word, names) for word in words]
        case _:
            return words


def differences(expected: Any, seen: Any, names: dict[str, Any], place: str = "") -> Iterator[str]:
    """How what was seen is not as expected, by place.

    `"*"` is anything but nothing; `"$name"` is anything at first and then always the same;
    `{"one_of": […]}` is one of those; a member `"...": true` allows members that are not named.
    """
    match expected:
        case "*":
            if seen in (None, ""):
                yield f"{place}: there should be something"
        case str() if expected.startswith("$"):
            if names.setdefault(expected, seen) != seen:
                yield f"{place}: {seen!r} is not {expected}, which was {names[expected]!r}"
        case {"one_of": choices, **rest} if not rest:
            if seen not in choices:
                yield f"{place}: {seen!r} is none of {choices}"
        case dict() if isinstance(seen, dict):
            for name in expected.keys() - seen.keys() - {REST}:
                yield f"{place}.{name} is missing"
            for name in () if REST in expected else seen.keys() - expected.keys():
                yield f"{place}.{name}: {seen[name]!r} was not expected"
            for name in (name for name in expected if name in seen):
                yield from differences(expected[name], seen[name], names, f"{place}.{name}")
        case list() if isinstance(seen, list):
            if len(expected) != len(seen):
                yield f"{place}: {len(seen)} items instead of {len(expected)}: {seen!r}"
            for n, (one, other) in enumerate(zip(expected, seen, strict=False)):
                yield from differences(one, other, names, f"{place}[{n}]")
        case _:
            if type(expected) is not type(seen) or expected != seen:
                yield f"{place}: {seen!r} instead of {expected!r}"
