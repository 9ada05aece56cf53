"""What is wrong with a card, by the version it claims: its shape member by member, and what the members say.

A reader makes do with much (`cards.py`); this is for those who write cards, and want to know what others will trip
over. Nothing is fetched here: whether an interface answers is for whoever asked to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from .versions import two_numbers

__all__ = ["Finding", "check_card", "version_of"]

ERROR, WARNING = "error", "warning"


class Finding(NamedTuple):
    """`at` is the member; `words` say what is wrong and what would be right."""

    severity: str
    at: str
    words: str


class Shape(NamedTuple):
    """What a value must be. `members` of an object: its shape by name; a name with `*` is required."""

    kind: str
    members: Mapping[str, Shape] = MappingProxyType({})
    inner: Shape | None = None


TEXT, FLAG = Shape("text"), Shape("flag")
TEXTS = Shape("array", inner=TEXT)


def _object(**members: Shape) -> Shape:
    return Shape("object", {name.replace("_required", "*"): shape for name, shape in members.items()})


def _array(inner: Shape) -> Shape:
    return Shape("array", inner=inner)


_EXTENSIONS: Final = _array(
    _object(uri_required=TEXT, description=TEXT, required=FLAG, params=Shape("object"))
)
_PROVIDER: Final = _object(organization_required=TEXT, url_required=TEXT)
_SIGNATURES: Final = _array(_object(protected_required=TEXT, signature_required=TEXT, header=Shape("object")))
_SKILL: Final = {
    "id*": TEXT,
    "name*": TEXT,
    "description": TEXT,
    "tags": TEXTS,
    "examples": TEXTS,
    "inputModes": TEXTS,
    "outputModes": TEXTS,
}
_STRICT_SKILL: Final = {
    **{name: shape for name, shape in _SKILL.items() if name not in ("description", "tags")},
    "description*": TEXT,
    "tags*": TEXTS,
}
_ELDER: Final = {
    "name*": TEXT,
    "description": TEXT,
    "url*": TEXT,
    "version*": TEXT,
    "provider": _PROVIDER,
    "documentationUrl": TEXT,
}
_ELDER_ABILITIES: Final = {"streaming": FLAG, "pushNotifications": FLAG, "stateTransitionHistory": FLAG}
_OPEN_API: Final = Shape("map", inner=_object(type_required=TEXT))

_CARD_0_1: Final = Shape(
    "object",
    {
        **_ELDER,
        "capabilities*": Shape("object", _ELDER_ABILITIES),
        "authentication": Shape(
            "object", {"schemes": TEXTS, "credentials": TEXT, "type": TEXT, "tokenUrl": TEXT}
        ),
        "defaultInputModes": TEXTS,
        "defaultOutputModes": TEXTS,
        "skills*": _array(Shape("object", _SKILL)),
    },
)
_CARD_0_3: Final = Shape(
    "object",
    {
        **{name: shape for name, shape in _ELDER.items() if name != "description"},
        "description*": TEXT,
        "protocolVersion*": TEXT,
        "preferredTransport": TEXT,
        "additionalInterfaces": _array(_object(url_required=TEXT, transport_required=TEXT)),
        "iconUrl": TEXT,
        "capabilities*": Shape("object", {**_ELDER_ABILITIES, "extensions": _EXTENSIONS}),
        "securitySchemes": _OPEN_API,
        "security": _array(Shape("map", inner=TEXTS)),
        "defaultInputModes*": TEXTS,
        "defaultOutputModes*": TEXTS,
        "skills*": _array(Shape("object", {**_STRICT_SKILL, "security": _array(Shape("map", inner=TEXTS))})),
        "supportsAuthenticatedExtendedCard": FLAG,
        "signatures": _SIGNATURES,
    },
)
_REQUIREMENTS: Final = _array(_object(schemes=Shape("map", inner=_object(list=TEXTS))))
_CARD_1_0: Final = Shape(
    "object",
    {
        "name*": TEXT,
        "description*": TEXT,
        "supportedInterfaces*": _array(
            _object(
                url_required=TEXT, protocolBinding_required=TEXT, protocolVersion_required=TEXT, tenant=TEXT
            )
        ),
        "provider": _PROVIDER,
        "version*": TEXT,
        "documentationUrl": TEXT,
        "capabilities*": _object(
            streaming=FLAG, pushNotifications=FLAG, extensions=_EXTENSIONS, extendedAgentCard=FLAG
        ),
        "securitySchemes": Shape("map", inner=Shape("object")),
        "securityRequirements": _REQUIREMENTS,
        "defaultInputModes*": TEXTS,
        "defaultOutputModes*": TEXTS,
        "skills*": _array(Shape("object", {**_STRICT_SKILL, "securityRequirements": _REQUIREMENTS})),
        "signatures": _SIGNATURES,
        "iconUrl": TEXT,
    },
)
_SHAPES: Final = {"0.1": _CARD_0_1, "0.2": _CARD_0_3, "0.3": _CARD_0_3, "1.0": _CARD_1_0}
_SCHEME_MEMBERS: Final = (
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
)
_BINDINGS: Final = ("JSONRPC", "GRPC", "HTTP+JSON")
_MEDIA_TYPE: Final = re.compile(r"[\w.+*-]+(/[\w.+*-]+)?(\s*;.*)?")


def version_of(card: Any) -> str:
    """The version that a card claims: by its shape, and by what it says."""
    if isinstance(card, dict) and "supportedInterfaces" in card:
        return "1.0"
    said = card.get("protocolVersion") if isinstance(card, dict) else None
    version = two_numbers(said) if isinstance(said, str) else None
    return version if version in _SHAPES else "0.3" if version else "0.1"


def check_card(card: Any) -> list[Finding]:
    """Everything that is wrong with a card, the worst first."""
    if not isinstance(card, dict):
        return [Finding(ERROR, "", "A card is a JSON object.")]
    version = version_of(card)
    found = [*_misshapen(card, _SHAPES[version], ""), *_foreign(card, version)]
    # What has no shape says nothing either.
    if not any(finding.severity == ERROR for finding in found):
        found += [*_interfaces(card, version), *_modes(card), *_skills(card), *_security(card, version)]
    return sorted(found, key=lambda finding: finding.severity != ERROR)


# Shape.


def _misshapen(value: Any, shape: Shape, at: str) -> Iterator[Finding]:
    match shape.kind:
        case "text":
            if not isinstance(value, str):
                yield Finding(ERROR, at, f"Expected a string, got {_kind(value)}.")
        case "flag":
            if not isinstance(value, bool):
                yield Finding(ERROR, at, f"Expected true or false, got {_kind(value)}.")
        case "array":
            if not isinstance(value, list):
                yield Finding(ERROR, at, f"Expected an array, got {_kind(value)}.")
                return
            assert shape.inner is not None, "arrays are of something"
            for place, item in enumerate(value):
                yield from _misshapen(item, shape.inner, f"{at}[{place}]")
        case "map" | "object":
            if not isinstance(value, dict):
                yield Finding(ERROR, at, f"Expected an object, got {_kind(value)}.")
                return
            yield from _misshapen_members(value, shape, at)
        case _:
            return


def _misshapen_members(value: dict[str, Any], shape: Shape, at: str) -> Iterator[Finding]:
    inside = f"{at}." if at else ""
    if shape.inner is not None:
        for name, item in value.items():
            yield from _misshapen(item, shape.inner, inside + name)
    for marked, member in shape.members.items():
        name = marked.removesuffix("*")
        if value.get(name) is not None:
            yield from _misshapen(value[name], member, inside + name)
            if marked != name and value[name] == "":
                yield Finding(ERROR, inside + name, "It is required and may not be empty.")
        elif marked != name:
            yield Finding(ERROR, inside + name, "It is required and missing.")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _foreign(card: dict[str, Any], version: str) -> Iterator[Finding]:
    """Members that are of no version; those of other versions make a hybrid card, which is none's strict one."""
    mine = {name.removesuffix("*") for name in _SHAPES[version].members}
    everyone = {name.removesuffix("*") for shape in _SHAPES.values() for name in shape.members}
    unknown = sorted(card.keys() - everyone)
    if unknown:
        yield Finding(WARNING, unknown[0], f"No version has {', '.join(unknown)}: most readers ignore it.")
    others = sorted(card.keys() - mine - set(unknown))
    if others:
        yield Finding(
            WARNING, others[0], f"Version {version} has no {', '.join(others)}: strict readers refuse that."
        )


# Sense.


def _interfaces(card: dict[str, Any], version: str) -> Iterator[Finding]:
    if version != "1.0":
        yield from _address(card["url"], "url")
        yield from _binding(card.get("preferredTransport", "JSONRPC"), "preferredTransport")
        for place, one in enumerate(card.get("additionalInterfaces", ())):
            yield from _address(one["url"], f"additionalInterfaces[{place}].url", one["transport"])
            yield from _binding(one["transport"], f"additionalInterfaces[{place}].transport")
        return
    if not card["supportedInterfaces"]:
        yield Finding(ERROR, "supportedInterfaces", "At least one interface is required.")
    seen = set()
    for place, one in enumerate(card["supportedInterfaces"]):
        at = f"supportedInterfaces[{place}]"
        yield from _address(one["url"], f"{at}.url", one["protocolBinding"])
        yield from _binding(one["protocolBinding"], f"{at}.protocolBinding")
        said = one["protocolVersion"]
        if two_numbers(said) is None:
            yield Finding(ERROR, f"{at}.protocolVersion", f"{said!r} is not like 1.0.")
        elif two_numbers(said) != said:
            yield Finding(WARNING, f"{at}.protocolVersion", f"{said!r} should be {two_numbers(said)!r}.")
        key = (one["url"], one["protocolBinding"], two_numbers(said), one.get("tenant", ""))
        if key in seen:
            yield Finding(WARNING, at, "The same interface is listed twice.")
        seen.add(key)


def _address(url: str, at: str, binding: str = "") -> Iterator[Finding]:
    if binding == "GRPC" and "://" not in url:
        return
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname or "", parts.scheme
        _ = parts.port
    except ValueError:
        host = scheme = ""
    if scheme not in ("http", "https") or not host:
        yield Finding(ERROR, at, f"{url!r} is not an absolute address such as https://agent.example/a2a.")
    elif scheme == "http" and not (host == "localhost" or host.startswith("127.") or host == "::1"):
        yield Finding(WARNING, at, f"{url} is not encrypted: use https.")


def _binding(name: str, at: str) -> Iterator[Finding]:
    if name not in _BINDINGS and "://" not in name and not name.startswith("urn:"):
        known = ", ".join(_BINDINGS)
        yield Finding(WARNING, at, f"{name!r} is none of {known}; a binding of one's own is named by a URI.")


def _modes(card: dict[str, Any]) -> Iterator[Finding]:
    for name in ("defaultInputModes", "defaultOutputModes"):
        if name in card and not card[name]:
            yield Finding(WARNING, name, "It is empty: nobody knows what to send or to expect.")
        for place, mode in enumerate(card.get(name, ())):
            if _MEDIA_TYPE.fullmatch(mode) is None:
                yield Finding(WARNING, f"{name}[{place}]", f"{mode!r} is not a media type.")


def _skills(card: dict[str, Any]) -> Iterator[Finding]:
    if not card["skills"]:
        yield Finding(
            WARNING, "skills", "There are none: nobody finds an agent that says nothing of what it can do."
        )
    seen = set()
    for place, skill in enumerate(card["skills"]):
        if skill["id"] in seen:
            yield Finding(ERROR, f"skills[{place}].id", f"{skill['id']!r} is the id of another skill too.")
        seen.add(skill["id"])


def _security(card: dict[str, Any], version: str) -> Iterator[Finding]:
    schemes = card.get("securitySchemes") or {}
    if version == "1.0":
        wanted = [one.get("schemes", {}) for one in card.get("securityRequirements", ())]
        for name, scheme in schemes.items():
            kinds = [member for member in _SCHEME_MEMBERS if member in scheme]
            if len(kinds) != 1:
                known = ", ".join(_SCHEME_MEMBERS)
                yield Finding(ERROR, f"securitySchemes.{name}", f"Expected exactly one of {known}.")
    else:
        wanted = card.get("security", ())
    at = "securityRequirements" if version == "1.0" else "security"
    for place, one in enumerate(wanted):
        for name in one:
            if name not in schemes:
                yield Finding(
                    ERROR, f"{at}[{place}]", f"It asks for {name!r}, which is not among securitySchemes."
                )
    if schemes and not wanted:
        yield Finding(WARNING, "securitySchemes", f"There are schemes, but no {at} asks for one of them.")
