"""Cards of every version: how ours is spelled for those who ask in one, and how anybody's is read.

A card before 1.0 has one address with a preferred transport and perhaps more beside it, one version for all of
them, and its security in OpenAPI's words; in 0.1 in words of its own. The hybrid card says it in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..model.card import Capabilities, Card, Extension, Interface, Provider, Signature, Skill
from ..model.errors import error
from .members import Members, items, of_peer, text
from .proto_json_1_0 import decode_card
from .versions import two_numbers

__all__ = ["HYBRID", "read_card", "spell_card"]

HYBRID: Final = "hybrid"
Json = dict[str, Any]

# What a scheme is called before 1.0, and as the member of 1.0 that holds it.
_SCHEMES: Final = {
    "apiKey": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}
_KINDS: Final = {member: kind for kind, member in _SCHEMES.items()}
# The full version that cards of a version say; 0.1 and early 0.2 say none.
_FULL: Final = {"0.3": "0.3.0", "0.2": "0.2.6"}


def spell_card(card: Card, version: str, *, keeps_history: bool = True) -> bytes:
    """A card for who asks in a version, or the hybrid one. `keeps_history`: past states can be read back."""
    if version in _SPELLERS:
        return _encode(_SPELLERS[version](card, keeps_history))
    if version == HYBRID:
        elder, newest = _spell_0_3(card, keeps_history), msgspec.to_builtins(card)
        schemes: Json = newest.get("securitySchemes", {})
        merged = {**elder, **newest}
        merged["capabilities"] = {**newest["capabilities"], "stateTransitionHistory": keeps_history}
        merged["skills"] = [
            {**one, **other} for one, other in zip(elder["skills"], newest["skills"], strict=True)
        ]
        if schemes:
            merged["securitySchemes"] = {
                name: {**elder["securitySchemes"].get(name, {}), **scheme} for name, scheme in schemes.items()
            }
            merged["authentication"] = _authentication(card)
        return _encode(merged)
    return _encode(card)


_encode = msgspec.json.Encoder().encode


def _spell_0_3(card: Card, keeps_history: bool) -> Json:
    return _spell_elder(card, "0.3", keeps_history)


def _spell_0_2(card: Card, keeps_history: bool) -> Json:
    return _spell_elder(card, "0.2", keeps_history)


def _spell_0_1(card: Card, keeps_history: bool) -> Json:
    spelled = _spell_elder(card, "0.1", keeps_history)
    for name in (
        "preferredTransport",
        "additionalInterfaces",
        "securitySchemes",
        "security",
        "iconUrl",
        "signatures",
    ):
        spelled.pop(name, None)
    spelled.pop("supportsAuthenticatedExtendedCard", None)
    spelled["capabilities"].pop("extensions", None)
    for skill in spelled["skills"]:
        skill.pop("security", None)
    # There is no other binding.
    called = [one.url for one in card.supported_interfaces if one.protocol_binding == "JSONRPC"]
    if called:
        spelled["url"] = called[0]
    if card.security_schemes:
        spelled["authentication"] = _authentication(card)
    return spelled


_SPELLERS: Final = {"0.3": _spell_0_3, "0.2": _spell_0_2, "0.1": _spell_0_1}


def _spell_elder(card: Card, version: str, keeps_history: bool) -> Json:
    offered = card.supported_interfaces
    mine = [one for one in offered if two_numbers(one.protocol_version) == "0.3"] or offered[:1]
    abilities = card.capabilities
    spelled: Json = {}
    if version in _FULL:
        spelled["protocolVersion"] = _FULL[version]
    spelled["name"] = card.name
    spelled["description"] = card.description
    if mine:
        spelled["url"] = mine[0].url
        spelled["preferredTransport"] = mine[0].protocol_binding
        if len(mine) > 1:
            more = [{"url": one.url, "transport": one.protocol_binding} for one in mine]
            spelled["additionalInterfaces"] = more
    if card.provider is not None:
        spelled["provider"] = msgspec.to_builtins(card.provider)
    spelled["version"] = card.version
    for name, said in (("documentationUrl", card.documentation_url), ("iconUrl", card.icon_url)):
        if said is not None:
            spelled[name] = said
    spelled["capabilities"] = {
        "streaming": abilities.streaming is True,
        "pushNotifications": abilities.push_notifications is True,
        "stateTransitionHistory": keeps_history,
    }
    if abilities.extensions:
        spelled["capabilities"]["extensions"] = msgspec.to_builtins(abilities.extensions)
    if card.security_schemes:
        spelled["securitySchemes"] = {
            name: _elder_scheme(said) for name, said in card.security_schemes.items()
        }
    if card.security_requirements:
        spelled["security"] = _elder_requirements(card.security_requirements)
    spelled["defaultInputModes"] = list(card.default_input_modes)
    spelled["defaultOutputModes"] = list(card.default_output_modes)
    spelled["skills"] = [_elder_skill(skill) for skill in card.skills]
    if abilities.extended_agent_card:
        spelled["supportsAuthenticatedExtendedCard"] = True
    if card.signatures:
        spelled["signatures"] = msgspec.to_builtins(card.signatures)
    return spelled


def _elder_skill(skill: Skill) -> Json:
    spelled: Json = msgspec.to_builtins(skill)
    requirements = spelled.pop("securityRequirements", ())
    if requirements:
        spelled["security"] = _elder_requirements(requirements)
    return spelled


def _elder_scheme(scheme: Json) -> Json:
    for member, kind in _KINDS.items():
        if isinstance(said := scheme.get(member), dict):
            spelled = {"type": kind, **said}
            if "location" in spelled:
                spelled["in"] = spelled.pop("location")
            return spelled
    return scheme


def _elder_requirements(requirements: Iterable[Json]) -> list[Json]:
    return [
        {name: list(scopes.get("list", ())) for name, scopes in one.get("schemes", {}).items()}
        for one in requirements
    ]


def _authentication(card: Card) -> Json:
    """Security in the words of 0.1: names of schemes; of a lone bearer scheme also where its tokens come from."""
    names: list[str] = []
    spelled: Json = {}
    for scheme in card.security_schemes.values():
        match scheme:
            case {"httpAuthSecurityScheme": {"scheme": str(name)}}:
                names.append(name.lower())
            case {"apiKeySecurityScheme": _}:
                names.append("apiKey")
            case {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": str(url)}}}}:
                names.append("bearer")
                spelled["tokenUrl"] = url
            case {"oauth2SecurityScheme": _} | {"openIdConnectSecurityScheme": _}:
                names.append("bearer")
            case _:
                names.extend(_KINDS[member] for member in scheme if member in _KINDS)
    schemes = list(dict.fromkeys(names))
    if schemes == ["bearer"]:
        return {"schemes": schemes, "type": "bearer", **spelled}
    return {"schemes": schemes}


# Reading.


def read_card(raw: bytes) -> Card:
    """Anybody's card. Raises `InvalidAgentResponse` with the place of what is wrong."""
    return of_peer(lambda value, at: _card(Members(value, at), raw), raw)


def _card(members: Members, raw: bytes) -> Card:
    schemes, requirements = _security(members)
    if not members.has("supportedInterfaces"):
        return replace(_elder_card(members), security_schemes=schemes, security_requirements=requirements)
    card = decode_card(raw)
    # To the model security is free JSON; here it gets its one shape.
    needs = members.each(lambda one, at: _requirements(Members(one, at)), "skills")
    skills = [
        replace(skill, security_requirements=said) for skill, said in zip(card.skills, needs, strict=True)
    ]
    return replace(card, security_schemes=schemes, security_requirements=requirements, skills=tuple(skills))


def _elder_card(members: Members) -> Card:
    if not any(members.has(name) for name in ("url", "additionalInterfaces", "skills")):
        raise error("InvalidAgentResponse", "it names neither an interface nor a skill")
    return Card(
        members.id("name"),
        members.text("description"),
        _elder_interfaces(members),
        members.text("version"),
        _capabilities(members),
        _modes(members, "defaultInputModes"),
        _modes(members, "defaultOutputModes"),
        members.each(_skill, "skills"),
        provider=members.one(_provider, "provider"),
        documentation_url=members.text("documentationUrl") or None,
        signatures=members.each(_signature, "signatures"),
        icon_url=members.text("iconUrl") or None,
    )


def _modes(members: Members, name: str) -> tuple[str, ...]:
    """In 0.1 text is what an agent takes and gives that says nothing of it."""
    return members.texts(name) if members.has(name) else ("text",)


def _elder_interfaces(members: Members) -> tuple[Interface, ...]:
    version = members.text("protocolVersion")
    more = members.each(
        lambda one, place: _elder_interface(Members(one, place), version), "additionalInterfaces"
    )
    url = members.text("url")
    if not url and more:
        return tuple(dict.fromkeys(more))
    # Who leaves the address out means the place its card is at.
    main = Interface(url or "..", members.text("preferredTransport") or "JSONRPC", version)
    return tuple(dict.fromkeys((main, *more)))


def _elder_interface(members: Members, version: str) -> Interface:
    return Interface(members.id("url"), members.text("transport") or "JSONRPC", version)


def _provider(value: Any, at: str) -> Provider:
    members = Members(value, at)
    return Provider(members.text("url"), members.text("organization"))


def _capabilities(card: Members) -> Capabilities:
    value, at = card.find("capabilities")
    members = Members({} if value is None else value, at)
    return Capabilities(
        members.flag("streaming"),
        members.flag("pushNotifications"),
        members.each(_extension, "extensions"),
        card.flag("supportsAuthenticatedExtendedCard"),
    )


def _extension(value: Any, at: str) -> Extension:
    members = Members(value, at)
    return Extension(
        members.text("uri"),
        members.text("description"),
        members.flag("required") or False,
        members.free("params"),
    )


def _skill(value: Any, at: str) -> Skill:
    members = Members(value, at)
    return Skill(
        members.text("id") or members.id("name"),
        members.text("name") or members.text("id"),
        members.text("description"),
        members.texts("tags"),
        members.texts("examples"),
        members.texts("inputModes"),
        members.texts("outputModes"),
        _requirements(members),
    )


def _signature(value: Any, at: str) -> Signature:
    members = Members(value, at)
    return Signature(members.text("protected"), members.text("signature"), members.free("header"))


# Security, in the one shape that 1.0 has for it, from any.


def _security(card: Members) -> tuple[Json, tuple[Json, ...]]:
    """The schemes, and who needs which."""
    said = card.free("securitySchemes")
    if not said and card.has("authentication"):
        return _authenticated(card)
    at = card.find("securitySchemes")[1]
    schemes = {name: _scheme(one, f"{at}.{name}") for name, one in (said or {}).items()}
    return schemes, _requirements(card)


def _authenticated(card: Members) -> tuple[Json, tuple[Json, ...]]:
    """Security in the words of 0.1: any of the schemes will do."""
    value, at = card.find("authentication")
    inside = Members(value, at)
    names = inside.texts("schemes") or ((inside.text("type"),) if inside.has("type") else ())
    token_url = inside.text("tokenUrl")
    schemes = {name: _scheme_of_name(name, token_url) for name in names}
    return schemes, tuple([{"schemes": {name: {"list": []}}} for name in schemes])


def _scheme(value: Any, at: str) -> Json:
    members = Members(value, at)
    for member in _KINDS:
        if members.has(member):
            # The hybrid card says the rest beside it once more.
            return {member: members.free(member)}
    member = _SCHEMES.get(members.text("type"), "")
    if not member:
        return members.found
    inside = {name: said for name, said in members.found.items() if name != "type"}
    if "in" in inside:
        inside["location"] = inside.pop("in")
    return {member: inside}


def _scheme_of_name(name: str, token_url: str) -> Json:
    match name.lower():
        case "bearer" | "oauth2" if token_url:
            flow = {"tokenUrl": token_url, "scopes": {}}
            return {_SCHEMES["oauth2"]: {"flows": {"clientCredentials": flow}}}
        case "apikey":
            return {_SCHEMES["apiKey"]: {"location": "header", "name": "X-API-Key"}}
        case _:
            return {_SCHEMES["http"]: {"scheme": name}}


def _requirements(members: Members) -> tuple[Json, ...]:
    return members.each(_requirement, "securityRequirements", "security")


def _requirement(value: Any, at: str) -> Json:
    """Schemes that are needed together: before 1.0 by their names alone, in protobuf of any version inside."""
    members = Members(value, at)
    inside, place = members.find("schemes")
    if not isinstance(inside, dict):
        inside, place = members.found, at
    return {"schemes": {name: {"list": _scopes(said, f"{place}.{name}")} for name, said in inside.items()}}


def _scopes(value: Any, at: str) -> list[str]:
    if isinstance(value, dict):
        return list(Members(value, at).texts("list"))
    return [] if value is None else list(items(text, value, at))
