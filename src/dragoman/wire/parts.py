"""How a part is spelled before 1.0: marked with its kind, or as old protobuf has it; and read, however it is.

Two things have no place there and travel in the part's metadata: JSON that is no object (as others do it,
`data_part_compat`), and the media type and name of a text or of JSON (under a key of ours).
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from ..model.task import Metadata, Part
from .members import Members, Misfit, anything, in_bytes

__all__ = ["is_twice", "read_part", "spell_marked", "spell_proto"]

# The convention of the protocol's own SDK for JSON that is no object.
WRAPPED: Final = "data_part_compat"
VALUE: Final = "value"
# Where a media type or a file name goes that has no place of its own.
BESIDE: Final = "urn:dragoman:part"

# By the members that an unmarked part of the kind has: in 1.0 a file's stand in the part itself.
_KINDS: Final = {"text": ("text",), "file": ("file", "raw", "url"), "data": ("data",)}
_B64: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4})+|(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]=|==)")


def spell_marked(part: Part, marks: tuple[str, ...], *, takes_arrays: bool = False) -> dict[str, Any]:
    """A part whose kind is said in members of these names: `kind` since 0.2, `type` in 0.1."""
    if part.text is not None:
        return _noted({**dict.fromkeys(marks, "text"), "text": part.text}, part, part.metadata)
    if part.raw is not None or part.url is not None:
        file: dict[str, Any] = {}
        if part.filename:
            file["name"] = part.filename
        if part.media_type:
            file["mimeType"] = part.media_type
        if part.raw is not None:
            file["bytes"] = base64.b64encode(part.raw).decode()
        else:
            file["uri"] = part.url
        spelled = {**dict.fromkeys(marks, "file"), "file": file}
        if part.metadata is not None:
            spelled["metadata"] = part.metadata
        return spelled
    data, metadata = _wrapped(part, takes_arrays=takes_arrays)
    return _noted({**dict.fromkeys(marks, "data"), "data": data}, part, metadata)


def spell_proto(part: Part, *, twice: bool) -> dict[str, Any]:
    """A part as the protobuf of 0.3 has it in JSON. `twice`: bytes in base64 of their base64, as is usual there."""
    if part.text is not None:
        return _noted({"text": part.text}, part, part.metadata)
    if part.raw is not None or part.url is not None:
        file: dict[str, Any] = {}
        if part.raw is not None:
            encoded = base64.b64encode(part.raw)
            file["fileWithBytes"] = (base64.b64encode(encoded) if twice else encoded).decode()
        else:
            file["fileWithUri"] = part.url
        if part.media_type:
            file["mimeType"] = part.media_type
        if part.filename:
            file["name"] = part.filename
        spelled: dict[str, Any] = {"file": file}
        if part.metadata is not None:
            spelled["metadata"] = part.metadata
        return spelled
    data, metadata = _wrapped(part, takes_arrays=False)
    return _noted({"data": {"data": data}}, part, metadata)


def _wrapped(part: Part, *, takes_arrays: bool) -> tuple[Any, Metadata | None]:
    """JSON as an object, and the metadata that says whether it is one by itself."""
    metadata = part.metadata
    fits = isinstance(part.data, dict) or (takes_arrays and isinstance(part.data, list))
    # Who says the mark himself must not be taken for us.
    if fits and WRAPPED not in (metadata or {}):
        return part.data, metadata
    return {VALUE: part.data}, {**(metadata or {}), WRAPPED: True}


def _noted(spelled: dict[str, Any], part: Part, metadata: Metadata | None) -> dict[str, Any]:
    if part.media_type or part.filename or BESIDE in (metadata or {}):
        beside = {"mediaType": part.media_type, "filename": part.filename}
        metadata = {**(metadata or {}), BESIDE: {name: said for name, said in beside.items() if said}}
    if metadata is not None:
        spelled["metadata"] = metadata
    return spelled


def read_part(value: Any, at: str) -> Part:
    """A part as any version spells it: marked or not, its file or its JSON inside or flat."""
    members = Members(value, at)
    mark = members.text("kind", "type")
    if mark and mark not in _KINDS:
        raise Misfit(
            f"Expected one of {', '.join(_KINDS)}.", f"{at}.kind" if members.has("kind") else f"{at}.type"
        )
    metadata = members.free("metadata")
    kinds = [mark] if mark else _kinds_of(members)
    match kinds:
        case ["text"]:
            metadata, media_type, filename = _taken(members, metadata)
            return Part(
                text=_needed(members, "text"), metadata=metadata, media_type=media_type, filename=filename
            )
        case ["file"]:
            return _file(members, metadata)
        case ["data"]:
            return _data(members, metadata)
        case _:
            got = f"got {' and '.join(kinds)}" if kinds else "got none of them"
            raise Misfit(f"Expected exactly one of text, file, data; {got}.", at)


def _kinds_of(members: Members) -> list[str]:
    """What an unmarked part is, by its members."""
    found = [kind for kind, names in _KINDS.items() if members.has(*names)]
    # JSON may be null, and then is there all the same.
    return found or (["data"] if "data" in members.found else [])


def _needed(members: Members, name: str) -> str:
    value, at = members.find(name)
    if type(value) is not str:
        raise Misfit("Expected a string.", at)
    return value


def _file(members: Members, metadata: Metadata | None) -> Part:
    value, at = members.find("file")
    # In 1.0 a file's members stand in the part itself; who mixes the two is understood.
    file = members if value is None else Members(value, at)
    given: dict[str, Any] = {
        "media_type": file.text("mimeType", "mediaType"),
        "filename": file.text("name", "filename"),
        "metadata": metadata,
    }
    encoded, _ = file.find(*_BYTES)
    twice, _ = file.find("fileWithBytes")
    uri, uri_at = file.find("uri", "url", "fileWithUri")
    if sum(one is not None for one in (encoded, twice, uri)) != 1:
        raise Misfit("Expected exactly one of bytes and uri in a file.", file.at)
    if encoded is not None:
        return Part(raw=file.one(in_bytes, *_BYTES), **given)
    if twice is not None:
        return Part(raw=_once(file.needed_bytes("fileWithBytes")), **given)
    if type(uri) is not str:
        raise Misfit("Expected a string.", uri_at)
    return Part(url=uri, **given)


# The last is how OpenFang names them.
_BYTES: Final = ("bytes", "raw", "data")


def is_twice(encoded: str) -> bool:
    """Whether bytes are in base64 of their base64, as far as can be seen; who encodes once is rarely taken for it."""
    try:
        return _B64.fullmatch(base64.b64decode(encoded)) is not None
    except ValueError:
        return True


def _once(raw: bytes) -> bytes:
    """Bytes that may be base64 still: most who speak protobuf's 0.3 encode them twice."""
    return base64.b64decode(raw) if _B64.fullmatch(raw) is not None else raw


def _data(members: Members, metadata: Metadata | None) -> Part:
    if "data" not in members.found:
        raise Misfit("data is required.", f"{members.at}.data")
    data = anything(members.found["data"], f"{members.at}.data")
    if not members.text("kind", "type") and isinstance(data, dict) and data.keys() == {"data"}:
        data = data["data"]
    metadata, media_type, filename = _taken(members, metadata)
    if metadata and metadata.get(WRAPPED) is True and isinstance(data, dict) and VALUE in data:
        data = data[VALUE]
        metadata = {name: said for name, said in metadata.items() if name != WRAPPED} or None
    return Part(data=data, metadata=metadata, media_type=media_type, filename=filename)


def _taken(members: Members, metadata: Metadata | None) -> tuple[Metadata | None, str, str]:
    """The metadata without what had to be put there, and what that was."""
    media_type, filename = members.text("mediaType", "mimeType"), members.text("filename")
    beside = metadata.get(BESIDE) if metadata else None
    if not isinstance(beside, dict):
        return metadata, media_type, filename
    assert metadata is not None
    rest = {name: value for name, value in metadata.items() if name != BESIDE}
    said = [one if isinstance(one := beside.get(name), str) else "" for name in ("mediaType", "filename")]
    return rest or None, said[0] or media_type, said[1] or filename
