"""What is sent: the parts of a message, in the order in which they were typed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from .failures import Failure

if TYPE_CHECKING:
    from ...model.task import Part

__all__ = ["InOrder", "as_object", "parts_of"]

# Base64 makes four of three, and the message around it is small: what still fits into a node's default.
FILE_BYTES_MAX = 14 * 1024 * 1024
PARTS = ("text", "file", "data", "media_type")


class InOrder(TyperCommand):
    """A command that knows in which order its parts were typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta["order"] = [param.name for param in order if param.name in PARTS]
        return super().parse_args(ctx, args)


def parts_of(words: str | None, order: Sequence[str], given: dict[str, list[str] | None]) -> tuple[Part, ...]:
    """The parts: TEXT first, then each option in its place; a media type is of the part before it."""
    values = {name: iter(given[name] or ()) for name in PARTS}
    parts: list[tuple[str, str, str]] = []
    if words is not None:
        parts.append(("text", sys.stdin.read() if words == "-" else words, ""))
    options_begin = len(parts)
    for name in order:
        value = next(values[name])
        if name != "media_type":
            parts.append((name, value, ""))
        elif len(parts) == options_begin:
            raise typer.BadParameter(
                "comes after the --text, --file or --data it is of", param_hint="'--media-type'"
            )
        else:
            kind, said, _ = parts[-1]
            parts[-1] = (kind, said, value)
    if not parts:
        raise typer.BadParameter("nothing to say: give TEXT, --text, --file or --data", param_hint="'TEXT'")
    return tuple(_part(*part) for part in parts)


def _part(kind: str, value: str, media_type: str) -> Part:
    from ...model.task import Part

    match kind:
        case "text":
            return Part(text=value, media_type=media_type)
        case "data":
            return Part(data=_json(value), media_type=media_type)
        case _:
            return _file(value, media_type)


def _file(place: str, media_type: str) -> Part:
    from ...model.task import Part

    is_far = place.startswith(("http://", "https://"))
    name = place.partition("?")[0].rpartition("/")[2] if is_far else Path(place).name
    import mimetypes

    media_type = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if is_far:
        return Part(url=place, filename=name, media_type=media_type)
    raw = _read(place)
    if len(raw) > FILE_BYTES_MAX:
        raise Failure(
            "DRAGOMAN_ERR_FILE",
            f"{place} has {len(raw)} bytes; up to {FILE_BYTES_MAX} travel in a message",
            "Put it where the agent can fetch it and give --file its URL.",
        )
    return Part(raw=raw, filename=name, media_type=media_type)


def _read(place: str) -> bytes:
    try:
        return Path(place).read_bytes()
    except OSError as wrong:
        raise Failure("DRAGOMAN_ERR_FILE", f"{place} cannot be read: {wrong.strerror}") from None


def _json(place: str) -> Any:
    if place == "-":
        return as_value(sys.stdin.read(), "stdin")
    if place.lstrip()[:1] in ("{", "["):
        return as_value(place, "--data")
    return as_value(_read(place), place)


def as_value(text: str | bytes, where: str) -> Any:
    """A JSON value that was typed or stored."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise typer.BadParameter(f"{where} is not JSON: {wrong}") from None


def as_object(text: str, where: str) -> dict[str, Any]:
    """A JSON object that was typed."""
    value = as_value(text, where)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{where} takes a JSON object, as in '{{\"k\": 1}}'")
    return value
