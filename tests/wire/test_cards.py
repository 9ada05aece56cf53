"""Cards of every version: read from any shape, written in each, and as the SDKs of both generations read ours.

`read.json` holds cards as peers have them beside what they mean; `write.json` holds a card of ours and how it is
written for who asks in a version.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from dragoman.model.card import Card
from dragoman.model.errors import ERRORS, AgentError
from dragoman.model.task import replace
from dragoman.wire.cards import HYBRID, read_card, spell_card
from dragoman.wire.versions import NEWEST, SPOKEN
from tests.wire.values import PATIENT, cards

VECTORS = Path(__file__).parent.parent / "vectors" / "codec" / "cards"
READ = json.loads((VECTORS / "read.json").read_text())
WRITE = json.loads((VECTORS / "write.json").read_text())
READS = [
    pytest.param(case["model"], wire, id=f"{case['name']} {n}")
    for case in READ["cases"]
    for n, wire in enumerate(case["reads"], 1)
]
WRITES = [
    pytest.param(case["model"], version, wire, id=f"{case['name']} in {version}")
    for case in WRITE["cases"]
    for version, wire in case["versions"].items()
]


def card_of(model: Any) -> Card:
    """The card that a vector means: what the model itself reads."""
    return msgspec.json.decode(json.dumps(model), type=Card)


def find(name: str, key: str = "cases") -> Any:
    [found] = (case for case in READ[key] if case["name"] == name)
    return found


@pytest.mark.parametrize(("model", "wire"), READS)
def test_a_card_of_any_version_means_what_its_vector_says(model: Any, wire: Any) -> None:
    """Shows: S0-011, S0-012, S4-003, S4-004, S4-005, C30"""
    assert read_card(json.dumps(wire).encode()) == card_of(model)


@pytest.mark.parametrize("reject", READ["rejects"], ids=lambda reject: reject["name"])
def test_what_is_no_card_is_refused_at_its_place(reject: dict[str, Any]) -> None:
    with pytest.raises(AgentError) as refused:
        read_card(json.dumps(reject["wire"]).encode())
    assert (refused.value.name, refused.value.at) == (reject["error"], reject["at"])
    assert reject["error"] in ERRORS
    assert refused.value.message


@pytest.mark.parametrize(("model", "version", "wire"), WRITES)
def test_our_card_is_written_for_each_version_as_its_vector_says(model: Any, version: str, wire: Any) -> None:
    """Shows: S4-003, S4-004, S4-005, C30"""
    assert json.loads(spell_card(card_of(model), version)) == wire


def test_there_are_cards_of_every_version_and_the_hybrid_one() -> None:
    shown = {version for case in WRITE["cases"] for version in case["versions"]}
    assert shown == {*SPOKEN, HYBRID}


def test_a_past_that_cannot_be_read_back_is_not_promised() -> None:
    card = card_of(WRITE["cases"][0]["model"])
    for version, promised in (
        (version, keeps) for version in ("0.1", "0.2", "0.3", HYBRID) for keeps in (True, False)
    ):
        spelled = json.loads(spell_card(card, version, keeps_history=promised))
        assert spelled["capabilities"]["stateTransitionHistory"] is promised


def test_the_card_of_the_walk_through_is_told_again_with_all_that_it_says() -> None:
    """Shows: S4-003, S4-004, S4-005, C30"""
    [printed, *_] = find("the card of seed 004")["reads"]
    told = json.loads(spell_card(read_card(json.dumps(printed).encode()), "0.1"))
    kept = {name: told[name] for name in ("name", "description", "url", "version", "capabilities")}
    assert kept == {name: printed[name] for name in kept}
    skills = [
        {name: ours[name] for name in theirs}
        for ours, theirs in zip(told["skills"], printed["skills"], strict=True)
    ]
    assert skills == printed["skills"]
    assert {name: told["authentication"][name] for name in printed["authentication"]} == printed[
        "authentication"
    ]


@settings(PATIENT, max_examples=200)
@given(card=cards())
def test_a_card_survives_in_the_newest_and_in_the_hybrid_form(card: Card) -> None:
    for version in (NEWEST, HYBRID):
        assert read_card(spell_card(card, version)) == card


@settings(PATIENT, max_examples=200)
@given(card=cards())
def test_an_elder_card_says_all_but_the_addresses_of_other_versions(card: Card) -> None:
    """What they do not know is a tenant, and the difference between no and nothing said."""
    able = card.capabilities
    told = replace(
        card,
        capabilities=replace(
            able,
            streaming=able.streaming is True,
            push_notifications=able.push_notifications is True,
            extended_agent_card=able.extended_agent_card or None,
        ),
    )
    offered = [one for one in card.supported_interfaces if one.protocol_version == "0.3"]
    for version, full in (("0.3", "0.3.0"), ("0.2", "0.2.6")):
        heard = read_card(spell_card(card, version))
        assert heard == replace(told, supported_interfaces=heard.supported_interfaces)
        listed = [(one.url, one.protocol_binding) for one in offered or card.supported_interfaces[:1]]
        assert [(one.url, one.protocol_binding) for one in heard.supported_interfaces] == list(
            dict.fromkeys(listed)
        )
        assert {one.protocol_version for one in heard.supported_interfaces} == {full}


# As others read them.

try:
    from a2a.client.card_resolver import parse_agent_card
    from a2a.compat.v0_3.types import AgentCard
    from a2a.types import a2a_pb2 as pb
    from google.protobuf import json_format
except ImportError as missing:
    if os.environ.get("CI") == "true":
        raise
    NO_SDK = f"NOT COMPARED WITH THE SDK: {missing}; install a2a-sdk==1.3.0"
else:
    NO_SDK = ""
BESIDE_THE_SDK = pytest.mark.skipif(bool(NO_SDK), reason=NO_SDK)


def of_protobuf(card: Any) -> Card:
    return read_card(json_format.MessageToJson(card).encode())


def without_defaults(card: Card) -> Card:
    """Protobuf does not tell an empty member from one that is not there."""
    body = json_format.MessageToJson(json_format.Parse(spell_card(card, NEWEST), pb.AgentCard()))
    return read_card(body.encode())


@BESIDE_THE_SDK
@PATIENT
@given(card=cards())
def test_the_strict_card_is_protobufs_to_the_last_member(card: Card) -> None:
    parsed = json_format.Parse(spell_card(card, NEWEST), pb.AgentCard())
    heard = of_protobuf(parsed)
    # What protobuf leaves out is what is empty: the same card, said again, is the same message.
    again = json_format.Parse(spell_card(heard, NEWEST), pb.AgentCard())
    assert again == parsed


@BESIDE_THE_SDK
@PATIENT
@given(card=cards())
def test_the_sdk_of_1_0_reads_the_hybrid_card_as_the_strict_one(card: Card) -> None:
    hybrid = parse_agent_card(json.loads(spell_card(card, HYBRID)))
    strict = json_format.Parse(spell_card(card, NEWEST), pb.AgentCard())
    assert hybrid == strict


@BESIDE_THE_SDK
@PATIENT
@given(card=cards())
def test_the_sdk_of_1_0_reads_an_elder_card_as_we_do(card: Card) -> None:
    for version in ("0.3", "0.2"):
        body = spell_card(card, version)
        theirs = of_protobuf(parse_agent_card(json.loads(body)))
        # They list the main address once more among the others.
        listed = tuple(dict.fromkeys(theirs.supported_interfaces))
        assert replace(theirs, supported_interfaces=listed) == without_defaults(read_card(body))


@BESIDE_THE_SDK
@PATIENT
@given(card=cards())
def test_the_models_of_0_3_read_the_hybrid_card_and_that_of_0_3(card: Card) -> None:
    for form in ("0.3", HYBRID):
        spelled = json.loads(spell_card(card, form))
        theirs = json.loads(
            AgentCard.model_validate(spelled).model_dump_json(by_alias=True, exclude_none=True)
        )
        for name in ("name", "url", "preferredTransport", "protocolVersion", "version", "skills", "security"):
            if name == "skills":
                assert [skill["id"] for skill in theirs[name]] == [skill["id"] for skill in spelled[name]]
            else:
                assert theirs.get(name) == spelled.get(name)
        schemes = {name: said["type"] for name, said in spelled.get("securitySchemes", {}).items()}
        assert {name: said["type"] for name, said in theirs.get("securitySchemes", {}).items()} == schemes
