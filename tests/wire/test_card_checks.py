"""A card is told what is wrong with it, by the version it claims: each of these is broken in one place."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from dragoman.model.card import Capabilities, Card, Interface, Skill
from dragoman.wire.card_checks import check_card, version_of
from dragoman.wire.cards import HYBRID, spell_card

CARD = Card(
    "echo",
    "Says it again.",
    (Interface("https://a.example/", "JSONRPC", "1.0"), Interface("https://a.example", "HTTP+JSON", "0.3")),
    "1.0.0",
    Capabilities(streaming=True, push_notifications=False),
    ("text/plain",),
    ("text/plain",),
    (Skill("s", "S", "does", ("t",)),),
    security_schemes={"key": {"apiKeySecurityScheme": {"location": "header", "name": "K"}}},
    security_requirements=({"schemes": {"key": {"list": []}}},),
)


def spelled(version: str) -> Any:
    return json.loads(spell_card(CARD, version))


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "1.0"])
def test_our_own_cards_are_flawless_in_every_version(version: str) -> None:
    card = spelled(version)
    assert check_card(card) == []
    assert version_of(card) == version


def test_the_hybrid_card_is_said_to_be_more_than_one_version_has() -> None:
    [finding] = check_card(spelled(HYBRID))
    assert finding.severity == "warning"
    assert finding.words.startswith("Version 1.0 has no authentication, preferredTransport, protocolVersion")


BROKEN = [
    ("1.0", ("name",), None, "error", "name", "missing"),
    ("1.0", ("name",), "", "error", "name", "may not be empty"),
    ("1.0", ("description",), 7, "error", "description", "Expected a string, got a number."),
    ("1.0", ("skills",), {}, "error", "skills", "Expected an array, got an object."),
    ("1.0", ("skills",), [], "warning", "skills", "There are none"),
    ("1.0", ("skills", 0, "tags"), None, "error", "skills[0].tags", "missing"),
    ("1.0", ("skills", 0, "tags", 0), 1, "error", "skills[0].tags[0]", "a number"),
    ("1.0", ("capabilities", "streaming"), "yes", "error", "capabilities.streaming", "true or false"),
    ("1.0", ("capabilities",), [], "error", "capabilities", "an object"),
    ("1.0", ("supportedInterfaces",), [], "error", "supportedInterfaces", "At least one"),
    ("1.0", ("supportedInterfaces", 0, "url"), "/rpc", "error", "supportedInterfaces[0].url", "absolute"),
    (
        "1.0",
        ("supportedInterfaces", 0, "url"),
        "http://a.example/",
        "warning",
        "supportedInterfaces[0].url",
        "https",
    ),
    ("1.0", ("supportedInterfaces", 0, "url"), "http://[", "error", "supportedInterfaces[0].url", "absolute"),
    (
        "1.0",
        ("supportedInterfaces", 0, "protocolVersion"),
        "one",
        "error",
        "supportedInterfaces[0].protocolVersion",
        "not like 1.0",
    ),
    (
        "1.0",
        ("supportedInterfaces", 0, "protocolVersion"),
        "1.0.1",
        "warning",
        "supportedInterfaces[0].protocolVersion",
        "'1.0'",
    ),
    (
        "1.0",
        ("supportedInterfaces", 0, "protocolBinding"),
        "smoke",
        "warning",
        "supportedInterfaces[0].protocolBinding",
        "URI",
    ),
    ("1.0", ("defaultInputModes",), ["te xt"], "warning", "defaultInputModes[0]", "media type"),
    ("1.0", ("defaultInputModes",), [], "warning", "defaultInputModes", "empty"),
    ("1.0", ("securitySchemes", "key"), {"odd": {}}, "error", "securitySchemes.key", "exactly one"),
    (
        "1.0",
        ("securityRequirements", 0, "schemes"),
        {"no": {"list": []}},
        "error",
        "securityRequirements[0]",
        "not among",
    ),
    ("1.0", ("mood",), "good", "warning", "mood", "No version has mood"),
    ("0.3", ("url",), None, "error", "url", "missing"),
    ("0.3", ("url",), "a.example", "error", "url", "absolute"),
    ("0.3", ("security",), [{"no": []}], "error", "security[0]", "not among"),
    ("0.3", ("preferredTransport",), "HTTP", "warning", "preferredTransport", "none of"),
    ("0.2", ("defaultOutputModes",), None, "error", "defaultOutputModes", "missing"),
    ("0.1", ("capabilities",), None, "error", "capabilities", "missing"),
    ("0.1", ("authentication", "schemes"), "bearer", "error", "authentication.schemes", "an array"),
]


@pytest.mark.parametrize(("version", "path", "value", "severity", "at", "words"), BROKEN)
def test_what_is_wrong_is_said_with_its_place(
    version: str, path: tuple[Any, ...], value: Any, severity: str, at: str, words: str
) -> None:
    card = copy.deepcopy(spelled(version))
    place = card
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    found = check_card(card)
    assert [(one.severity, one.at) for one in found if words in one.words] == [(severity, at)], found


@pytest.mark.parametrize("card", [None, [], "x", 7])
def test_what_is_no_object_is_no_card(card: Any) -> None:
    assert [one.severity for one in check_card(card)] == ["error"]


def test_the_same_skill_or_interface_twice_is_said() -> None:
    card = spelled("1.0")
    card["skills"] *= 2
    card["supportedInterfaces"] *= 2
    assert [(one.severity, one.at) for one in check_card(card)] == [
        ("error", "skills[1].id"),
        ("warning", "supportedInterfaces[2]"),
        ("warning", "supportedInterfaces[3]"),
    ]
