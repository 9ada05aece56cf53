"""How JSON of a spelling that the model's structs do not have is walked: a member, by any of its names.

Every member is found as camelCase and as snake_case, null is as good as absent, unknown ones are passed by,
and what does not fit says where, in the words that were used. What fits is what fits for `lenient.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from ..model.errors import error
from ..model.task import Metadata

# Its readers of single members: protections against what no reader can carry are in one place.
from .lenient import INT32_MAX, Misfit, _anything, _boolean, _bytes, _integer, _object, _text, utc

__all__ = ["Members", "Misfit", "anything", "in_bytes", "items", "of_caller", "of_peer", "text"]

_T = TypeVar("_T")
Raw = bytes | msgspec.Raw
Read = Callable[[Any, str], _T]

anything = _anything
in_bytes = _bytes
text = _text

_decode = msgspec.json.Decoder().decode
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_HUMP = re.compile(r"[A-Z]")


def of_caller(read: Read[_T], raw: Raw) -> _T:
    """What a caller says, or the error of the table that refuses it."""
    try:
        return read(_decode(raw), "")
    except Misfit as wrong:
        raise error("InvalidParams", wrong.message, at=wrong.at) from None
    except msgspec.ValidationError:
        raise error("InvalidParams", "A number is out of range.") from None
    except _NOT_JSON as wrong:
        raise error("ParseError", f"This is not JSON: {wrong}.") from None


def of_peer(read: Read[_T], raw: Raw) -> _T:
    """What a peer says. Whatever is wrong with it is the peer's fault."""
    try:
        return read(_decode(raw), "")
    except Misfit as wrong:
        raise error("InvalidAgentResponse", wrong.message, at=wrong.at) from None
    except msgspec.ValidationError:
        raise error("InvalidAgentResponse", "A number is out of range.") from None
    except _NOT_JSON as wrong:
        raise error("InvalidAgentResponse", f"This is not JSON: {wrong}.") from None


def items(read: Read[_T], value: Any, at: str) -> tuple[_T, ...]:
    """An array, item by item."""
    if type(value) is not list:
        raise Misfit("Expected an array.", at)
    return tuple([read(item, f"{at}[{index}]") for index, item in enumerate(value)])


class Members:
    """An object that is being read. Where a method takes several names, the first that is there counts."""

    __slots__ = ("_inside", "at", "found")

    def __init__(self, value: Any, at: str) -> None:
        if type(value) is not dict:
            _object(value, at)  # says what it is instead
        self.found: dict[str, Any] = value
        self.at = at
        self._inside = f"{at}." if at else ""

    def find(self, *names: str) -> tuple[Any, str]:
        """The member and its place; None, and where it should be, when there is none."""
        found = self.found
        for name in names:
            value = found.get(name)
            snake = _snake(name)
            if snake != name and snake in found:
                if value is not None:
                    raise Misfit(f"The member is there twice, as {name} and as {snake}.", self._inside + name)
                name, value = snake, found[snake]
            if value is not None:
                return value, self._inside + name
        return None, self._inside + names[0]

    def has(self, *names: str) -> bool:
        """Whether one of them is there."""
        return self.find(*names)[0] is not None

    def one(self, read: Read[_T], *names: str) -> _T | None:
        """Read by a reader of its own."""
        value, at = self.find(*names)
        return None if value is None else read(value, at)

    def needed(self, read: Read[_T], *names: str) -> _T:
        """As `one`, of a member that must be there and may not be empty."""
        value, at = self.find(*names)
        if value is None or value == "":
            raise Misfit(f"{names[0]} is required and may not be empty.", at)
        return read(value, at)

    def each(self, read: Read[_T], *names: str) -> tuple[_T, ...]:
        """An array, which may be left out when it is empty."""
        value, at = self.find(*names)
        return () if value is None else items(read, value, at)

    def text(self, *names: str) -> str:
        return self.one(_text, *names) or ""

    def id(self, *names: str) -> str:
        """A text that must be there."""
        return self.needed(_text, *names)

    def needed_bytes(self, *names: str) -> bytes:
        """Base64 that must be there, though it may be of nothing."""
        value, at = self.find(*names)
        return in_bytes(value, at)

    def texts(self, *names: str) -> tuple[str, ...]:
        return self.each(_text, *names)

    def flag(self, *names: str) -> bool | None:
        return self.one(_boolean, *names)

    def count(self, *names: str) -> int | None:
        """A whole number from zero."""
        return self.one(_count, *names)

    def free(self, *names: str) -> Metadata | None:
        """An object of any JSON."""
        return self.one(_object, *names)

    def moment(self, *names: str) -> str:
        """A time. Peers of 0.1 write their local clock without its zone: it is taken for UTC."""
        return self.one(_moment, *names) or ""


def _count(value: Any, at: str) -> int:
    return _integer(value, at, 0, INT32_MAX)


def _moment(value: Any, at: str) -> str:
    said = _text(value, at)
    spelled = utc(said) or utc(f"{said}Z") if said else said
    if spelled is None:
        raise Misfit("Expected a timestamp of RFC 3339 such as 2026-01-31T12:00:00.000Z.", at)
    return spelled


_SNAKES: dict[str, str] = {}


def _snake(name: str) -> str:
    """The snake_case of a name of ours, of which there are few."""
    if (snake := _SNAKES.get(name)) is None:
        snake = _SNAKES[name] = _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)
    return snake
