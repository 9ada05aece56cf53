"""What no body may hold, whoever reads it next: seen in the bytes, before anything is built from them.

It is not a parser. What passes may still not be JSON, and the decoder that follows says so; but no
decoder will overflow its stack on it, and no store will meet a text it cannot keep.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from msgspec import Struct

from ..model.errors import error
from .lenient import spells_snake

__all__ = ["BODY_BYTES_MAX", "CONTAINERS_MAX", "DEPTH_MAX", "DUPLICATES_BYTES_MAX", "Facts", "check"]

BODY_BYTES_MAX: Final = 20 * 1024 * 1024
DEPTH_MAX: Final = 64
# Large bodies are large because of long strings. Seven million `[]` would be 400 MB of lists.
CONTAINERS_MAX: Final = 500_000
# Above this size a second parse costs more than what a doubled key can hide.
DUPLICATES_BYTES_MAX: Final = 64 * 1024
# Keys are the caller's and may be long; an error does not send them all back.
PLACE_CHARS_MAX: Final = 200


class Facts(Struct, frozen=True):
    """What was seen on the way. `lenient`: a key is spelled the snake_case way."""

    lenient: bool


_PLAIN = Facts(lenient=False)
_LENIENT = Facts(lenient=True)


def check(body: bytes, limit_bytes: int = BODY_BYTES_MAX) -> Facts:
    """Refuse a body that is too large or too deep, is not UTF-8, holds U+0000 or says a key twice."""
    if len(body) > limit_bytes:
        raise error("TooLarge", f"The body has {len(body)} bytes; this node takes {limit_bytes}.")
    if not body.isascii():
        _check_utf8(body)
    if b"\0" in body:
        raise error("ParseError", f"The body holds the character U+0000 at byte {body.index(0)}.")
    has_escapes = b"\\" in body
    text = _without_escapes(body) if has_escapes else body
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        _check_depth(text)
    snake = b"_" in body
    if len(body) <= DUPLICATES_BYTES_MAX:
        keys = _KEYS(text)
        values = keys.count(b"")
        distinct = len(set(keys)) - (values > 0)
        # A key with an escape left may be another key's twin; only a real parse can tell.
        if distinct != len(keys) - values or (has_escapes and b"\\" in b"".join(keys)):
            _check_keys(body)
        snake = snake and b"_" in b"".join(keys)
    return _LENIENT if snake and spells_snake(body) else _PLAIN


# One item per string: a key with its closing quote (so that the empty key is something), b"" for a value.
# Every quote is the edge of a string here, because the escaped ones are gone. Possessive: no way back.
_KEYS = re.compile(rb'"(?:[^"]*+"\s*+(?!:)|([^"]*"))').findall
_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"
)
_UNESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*(\\u0000)")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_ONE_SHAPE = bytes.maketrans(b"{}", b"[]")
_NOT_SHAPE = bytes(set(range(256)) - set(b'"[]{}'))
_PIECE_BYTES: Final = 1024 * 1024


def _check_utf8(body: bytes) -> None:
    if body.startswith(_BOMS):
        raise error("ParseError", "The body starts with a byte order mark; JSON is UTF-8 without one.")
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        raise error("ParseError", f"The body is not valid UTF-8 at byte {wrong.start}.") from None


def _without_escapes(body: bytes) -> bytes:
    r"""The body without `\\` and `\"`, so that every quote left is the edge of a string."""
    text = body.replace(b"\\\\", b"")
    if b"\\u0000" in text:
        where = ""
        if len(body) <= DUPLICATES_BYTES_MAX and (found := _UNESCAPED_NUL.search(body)):
            where = f" at byte {found.start(1)}"
        raise error("InvalidParams", f"A text holds the character U+0000{where}.")
    # Larger bodies are left to the decoder, which refuses lone surrogates as well, though less politely.
    if len(body) <= DUPLICATES_BYTES_MAX and (b"\\ud" in text or b"\\uD" in text):
        lone = _LONE_SURROGATE.search(text)
        if lone is not None:
            raise error(
                "ParseError", f"A text holds half a surrogate pair: {text[lone.start() :][:6].decode()}."
            )
    return text.replace(b'\\"', b"")


def _check_depth(text: bytes) -> None:
    """Take the innermost brackets away, at most 64 times; what is left was deeper (or never closed)."""
    shape = text.translate(_ONE_SHAPE, _NOT_SHAPE)
    # Two strings in a row become one, which holds the brackets of both: nothing outside them moves.
    brackets = _outside_strings(shape.replace(b'""', b"")) if b'"' in shape else shape
    for _ in range(DEPTH_MAX):
        if b"[" * (DEPTH_MAX + 1) in brackets:
            _refuse_depth()
        if len(brackets) > 2 * CONTAINERS_MAX:
            raise error("TooLarge", f"The body holds more than {CONTAINERS_MAX} objects and arrays.")
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    if brackets:
        if b"[]" in brackets:
            _refuse_depth()
        raise error("ParseError", "The body is not valid JSON: its brackets do not match.")


def _refuse_depth() -> NoReturn:
    raise error("ParseError", f"The body is nested deeper than {DEPTH_MAX} levels.")


def _outside_strings(shape: bytes) -> bytes:
    kept: list[bytes] = []
    size = 0
    inside = 0
    # In pieces: a split makes an object of 33 bytes and more for each quote.
    for start in range(0, len(shape), _PIECE_BYTES):
        parts = shape[start : start + _PIECE_BYTES].split(b'"')
        kept.append(b"".join(parts[inside::2]))
        inside ^= (len(parts) - 1) & 1
        size += len(kept[-1])
        if size > 2 * CONTAINERS_MAX:
            break
    return b"".join(kept)


class _Twice:
    """Stands in a parsed tree for an object that says a key twice."""

    def __init__(self, key: str) -> None:
        self.key = key


class _SaidTwice(Exception):
    """Ends the parse at the first doubled key; only then is it worth knowing where that is."""


def _check_keys(body: bytes) -> None:
    """The second parse: exact, and only for bodies that the first look could not clear."""
    try:
        _parse_strictly(body.decode())
    except json.JSONDecodeError as wrong:
        raise error(
            "ParseError", f"The body is not valid JSON: {wrong.msg} at character {wrong.pos}."
        ) from None
    except _SaidTwice:
        at = _place_of_twice(_parse_marking(body.decode()))[:PLACE_CHARS_MAX]
        where = f"The member {at}" if at else "A member"
        raise error("InvalidParams", f"{where} is there twice.", at=at) from None


def _read_strictly(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _SaidTwice
    return made


def _read_marking(pairs: list[tuple[str, Any]]) -> object:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            return _Twice(key)
        made[key] = value
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise error("ParseError", f"The body is not valid JSON: {name} is not a JSON value.")


# Numbers are not read: 5,000 digits would be a ValueError, 1e400 infinity.
_parse_strictly = json.JSONDecoder(
    object_pairs_hook=_read_strictly, parse_int=len, parse_float=len, parse_constant=_refuse_constant
).decode
_parse_marking = json.JSONDecoder(
    object_pairs_hook=_read_marking, parse_int=len, parse_float=len, parse_constant=len
).decode


def _place_of_twice(tree: object) -> str:
    left: list[tuple[str, object]] = [("", tree)]
    while left:
        at, value = left.pop()
        if isinstance(value, _Twice):
            return f"{at}.{value.key}" if at else value.key
        if isinstance(value, dict):
            left.extend((f"{at}.{key}" if at else str(key), item) for key, item in value.items())
        elif isinstance(value, list):
            left.extend((f"{at}[{index}]", item) for index, item in enumerate(value))
    raise AssertionError("a doubled key was seen and is not in the tree")
