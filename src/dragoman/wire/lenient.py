"""ProtoJSON as widely as its parsers read it: a walk over the model's own structs, member by member.

It takes what the C decoder refuses (snake_case names, null, numbers for enums, `5.0` for 5, unpadded
base64) and is where every sentence about a wrong member is written, so the quick way needs none.
Values equal what protobuf's json_format makes of the same JSON; the exceptions are listed in
tests/wire/test_lenient_against_protobuf.py.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct, inspect

from ..model.card import Card
from ..model.events import ArtifactChanged, StatusChanged
from ..model.operations.a2a import PAGE_SIZE_MAX, Cancel, Configuration, Get, List, Page, Send, Subscribe
from ..model.task import Message, Part, Role, State, Task

__all__ = ["INT32_MAX", "Misfit", "reader", "spells_snake", "utc"]

INT32_MAX: Final = 2**31 - 1
INT32_MIN: Final = -(2**31)
_ONE_OF_PART: Final = ("text", "raw", "url", "data")

Read = Callable[[Any, str], Any]


class Misfit(Exception):
    """A member is not what it must be: `at` in wire words, the message for people."""

    def __init__(self, message: str, at: str) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


def reader(kind: type[Struct], *, peer: bool = False) -> Read:
    """How to make a `kind` of parsed JSON.

    For a request every required member must be there and filled. A peer is read kindly: it may be a
    protobuf program that leaves out what is empty, so only what nothing can be done without is asked for.
    """
    return _struct(kind, peer)


def spells_snake(body: bytes) -> bool:
    """Whether a member the protocol knows is spelled in snake_case somewhere."""
    # The first look is a memchr for "_" and rarely finds; metadata may have such keys of its own.
    return _SOME_SNAKE(body) is not None and _OUR_SNAKE(body) is not None


# The members without which a peer's value is of no use. Everything else has proto's empty value.
_NEEDED: Final = {
    "Task": ("id", "status"),
    "StatusUpdate": ("task_id", "status"),
    "ArtifactUpdate": ("task_id", "artifact"),
    "Card": ("name", "supported_interfaces"),
    "Interface": ("url", "protocol_binding", "protocol_version"),
}
# Protobuf has no required members and no empty message can be told from an absent one, but for these.
_RANGES: Final = {
    (Configuration, "history_length"): (0, INT32_MAX),
    (Get, "history_length"): (0, INT32_MAX),
    (List, "history_length"): (0, INT32_MAX),
    (List, "page_size"): (1, PAGE_SIZE_MAX),
}
# By number. What is not there is the zero value, which no request may say.
_NUMBERED: Final[dict[type, tuple[Any, ...]]] = {
    State: tuple(State),
    Role: (None, *Role),
}
_ZERO_NAMES: Final = ("ROLE_UNSPECIFIED", State.UNKNOWN.value)
_UNKNOWN: Final[dict[type, Any]] = {State: State.UNKNOWN, Role: Role.AGENT}

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_B64 = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_URL_TO_PLAIN = str.maketrans("-_", "+/")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:Z|([-+])([01][0-9]|2[0-3]):([0-5][0-9]))",
    re.ASCII,
)
_WORDS: Final = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def utc(text: str) -> str | None:
    """A moment of RFC 3339 in the protocol's form: UTC, 3, 6 or 9 digits after the point; else None."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    moment, fraction, sign, hours, minutes = found.groups()
    try:
        seconds = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        if sign is not None:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            seconds = seconds - offset if sign == "+" else seconds + offset
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    digits = digits.ljust(-(-len(digits) // 3) * 3 or 3, "0")
    # Not strftime: its %Y does not fill up to four digits everywhere.
    return f"{seconds.replace(tzinfo=None).isoformat()}.{digits}Z"


# Readers of one member. Each takes the parsed JSON and the place it stands at.


def _misfit(expected: str, value: Any, at: str) -> Misfit:
    return Misfit(f"Expected {expected}, got {_WORDS[type(value)]}.", at)


def _text(value: Any, at: str) -> str:
    if type(value) is not str:
        raise _misfit("a string", value, at)
    return value


def _moment(value: Any, at: str) -> str:
    if type(value) is not str:
        raise _misfit("a timestamp", value, at)
    if not value:
        return ""  # not set: the quick way cannot tell the two apart either
    spelled = utc(value)
    if spelled is None:
        raise Misfit("Expected a timestamp of RFC 3339 such as 2026-01-31T12:00:00.000Z.", at)
    return spelled


def _boolean(value: Any, at: str) -> bool:
    if type(value) is not bool:
        raise _misfit("true or false", value, at)
    return value


def _bytes(value: Any, at: str) -> bytes:
    if type(value) is not str:
        raise _misfit("a base64 string", value, at)
    plain = value.translate(_URL_TO_PLAIN)
    if _B64.fullmatch(plain) is None or len(bare := plain.rstrip("=")) % 4 == 1:
        raise Misfit("Expected a base64 string.", at)
    return base64.b64decode(bare + "=" * (-len(bare) % 4))


def _integer(value: Any, at: str, low: int, high: int) -> int:
    whole: int | None = None
    if type(value) is int:
        whole = value
    elif type(value) is float:
        whole = int(value) if value.is_integer() else None
    elif type(value) is str:
        whole = _integer_of_text(value)
    if whole is None:
        got = "not a whole number" if type(value) in (float, str) else f"got {_WORDS[type(value)]}"
        raise Misfit(f"Expected an integer, {got}.", at)
    if not low <= whole <= high:
        raise Misfit(f"Expected an integer from {low} to {high}.", at)
    return whole


def _integer_of_text(text: str) -> int | None:
    # Sixteen digits are more than an int32 has; 5,000 would be a ValueError.
    if len(text) > 32 or _INTEGER.fullmatch(text) is None:
        return None
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else None


def _enumeration(kind: type, peer: bool, zero_is_unset: bool) -> Read:
    names = {member.value: member for member in kind}  # type: ignore[attr-defined]
    numbered = _NUMBERED[kind]
    wanted = f"one of {', '.join(name for name in names if name not in _ZERO_NAMES)}"

    def read(value: Any, at: str) -> Any:
        member = None
        zero = False
        if type(value) is str and not value.lstrip("-").isdigit():
            member = names.get(value)
            zero = value in _ZERO_NAMES
        elif type(value) in (int, float, str):
            number = _integer(value, at, INT32_MIN, INT32_MAX)
            member = numbered[number] if 0 <= number < len(numbered) else None
            zero = number == 0
        else:
            raise _misfit(wanted, value, at)
        if zero and zero_is_unset:
            return None
        if peer:
            return _UNKNOWN[kind] if member is None else member
        if member is None or zero:
            raise Misfit(f"Expected {wanted}.", at)
        return member

    return read


def _anything(value: Any, at: str) -> Any:
    """Any JSON value. What JSON cannot carry to everybody is a number beyond a double."""
    left = [value]
    while left:
        item = left.pop()
        if type(item) is dict:
            left.extend(item.values())
        elif type(item) is list:
            left.extend(item)
        elif type(item) is int and not -_DOUBLE_MAX <= item <= _DOUBLE_MAX:
            raise Misfit("A number is larger than a double can be.", at)
    return value


_DOUBLE_MAX: Final = int(1.7976931348623157e308)


def _object(value: Any, at: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise _misfit("an object", value, at)
    _anything(value, at)
    return value


def _array(read: Read) -> Read:
    def read_array(value: Any, at: str) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _misfit("an array", value, at)
        return tuple([read(item, f"{at}[{index}]") for index, item in enumerate(value)])

    return read_array


@functools.cache
def _struct(kind: type[Struct], peer: bool) -> Read:
    fields = inspect.type_info(kind).fields  # type: ignore[attr-defined]
    members: dict[str, tuple[str, str, Read, bool]] = {}
    for field in fields:
        read = _read_of(kind, field, peer)
        takes_null = isinstance(_one_type(field.type), inspect.AnyType)
        for spelling in {field.encode_name, field.name}:
            members[spelling] = (field.name, field.encode_name, read, takes_null)
    needed = (
        _NEEDED.get(kind.__name__, ()) if peer else tuple(field.name for field in fields if field.required)
    )
    wire_name = {field.name: field.encode_name for field in fields}
    empty = {
        field.name: _empty(field.type) for field in fields if field.required and field.name not in needed
    }
    one_of = _ONE_OF_PART if kind is Part else ()

    def read_struct(value: Any, at: str) -> Any:
        if type(value) is not dict:
            raise _misfit("an object", value, at)
        inside = f"{at}." if at else ""
        made: dict[str, Any] = dict(empty)
        spelled: dict[str, str] = {}
        for name, item in value.items():
            member = members.get(name)
            if member is None:
                continue
            field_name, wire, read, takes_null = member
            if spelled.setdefault(field_name, name) != name:
                raise Misfit(
                    f"The member is there twice, as {spelled[field_name]} and as {name}.", inside + wire
                )
            if item is None and not takes_null:
                continue
            read_item = read(item, inside + wire)
            if read_item is not None or takes_null:
                made[field_name] = read_item
        for field_name in needed:
            if made.get(field_name, "") in ("", ()):
                lacks = "with at least one item" if made.get(field_name) == () else "and may not be empty"
                raise Misfit(f"{wire_name[field_name]} is required {lacks}.", inside + wire_name[field_name])
        if one_of:
            given = [name for name in one_of if name in made]
            if len(given) != 1:
                got = f"got {' and '.join(given)}" if given else "got none of them"
                raise Misfit(f"Expected exactly one of {', '.join(one_of)}; {got}.", at)
        return kind(**made)

    return read_struct


def _one_type(kind: Any) -> Any:
    """The type beside None and UNSET."""
    if isinstance(kind, inspect.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def _read_of(owner: type[Struct], field: Any, peer: bool) -> Read:
    optional = isinstance(field.type, inspect.UnionType)
    if owner is List and field.name == "status_timestamp_after":
        return _moment
    if (span := _RANGES.get((owner, field.name))) is not None:
        return functools.partial(_integer, low=span[0], high=span[1])
    return _read_of_type(_one_type(field.type), peer, zero_is_unset=optional)


def _read_of_type(kind: Any, peer: bool, zero_is_unset: bool = False) -> Read:
    match kind:
        case inspect.StrType():
            return _text
        case inspect.BoolType():
            return _boolean
        case inspect.BytesType():
            return _bytes
        case inspect.IntType():
            return functools.partial(_integer, low=INT32_MIN, high=INT32_MAX)
        case inspect.EnumType():
            return _enumeration(kind.cls, peer, zero_is_unset)
        case inspect.StructType():
            return _struct(kind.cls, peer)
        case inspect.VarTupleType():
            return _array(_read_of_type(kind.item_type, peer))
        case inspect.DictType():
            return _object
        case inspect.AnyType():
            return _anything
        case _:
            raise TypeError(f"no ProtoJSON reading of {kind}")


def _empty(kind: Any) -> Any:
    """What a peer means that leaves a member out."""
    match kind:
        case inspect.StrType():
            return ""
        case inspect.IntType():
            return 0
        case inspect.VarTupleType():
            return ()
        case inspect.EnumType():
            return _UNKNOWN[kind.cls]
        case inspect.StructType():
            return kind.cls()
        case _:
            raise TypeError(f"{kind} has no empty value")


def _snake_names(*kinds: type[Struct]) -> set[str]:
    found: set[str] = set()
    left = list(inspect.multi_type_info(kinds))
    while left:
        kind = left.pop()
        match kind:
            case inspect.StructType():
                found.update(field.name for field in kind.fields if field.name != field.encode_name)
                left.extend(field.type for field in kind.fields)
            case inspect.UnionType():
                left.extend(kind.types)
            case inspect.VarTupleType():
                left.append(kind.item_type)
            case _:
                pass
    return found


_SNAKE = _snake_names(
    Send, Get, List, Cancel, Subscribe, Page, Task, Message, StatusChanged, ArtifactChanged, Card
)
_SOME_SNAKE = re.compile(rb'_[a-z]+"\s*:').search
_OUR_SNAKE = re.compile(rb'"(?:%b)"\s*:' % "|".join(sorted(_SNAKE)).encode()).search
