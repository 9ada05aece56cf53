"""The table of versions: which are spoken here, and which one a request means."""

from __future__ import annotations

from urllib.parse import parse_qsl

from ..model.errors import error

__all__ = ["NEWEST", "SPOKEN", "spoken", "two_numbers"]

NEWEST = "1.0"
SPOKEN = (NEWEST,)


def two_numbers(text: str) -> str | None:
    """`Major.Minor` of a version as peers write it (`1.0`, `1.0.1`), or nothing if it is none."""
    numbers = text.strip().split(".")
    if len(numbers) not in (2, 3) or not all(n.isascii() and n.isdigit() and len(n) < 6 for n in numbers):
        return None
    return f"{int(numbers[0])}.{int(numbers[1])}"


def spoken(header: bytes, query: bytes) -> str:
    """The version a request is to be understood in. Said twice, it must be said alike.

    Unsaid, the method's name has decided already: no two vocabularies share the name of a send.
    """
    if header == b"1.0" and not query:
        return NEWEST
    said = header.decode("latin-1").split(",")
    # Names of service parameters are not case-sensitive (§3.2.6), in the address no more than in headers.
    said += [text for name, text in parse_qsl(query.decode("latin-1")) if name.lower() == "a2a-version"]
    said = [text.strip() for text in said if text.strip()]
    if not said:
        return NEWEST
    if len({two_numbers(text) or text for text in said}) > 1:
        raise error("InvalidRequest", f"the request says version {' and '.join(said)}", at="A2A-Version")
    named = said[0]
    version = two_numbers(named)
    if version not in SPOKEN:
        raise error(
            "VersionNotSupported",
            f"version {named} is not spoken here; {', '.join(SPOKEN)} is",
            requested=named,
            supported=",".join(SPOKEN),
        )
    return version
