"""`dragoman card check`: a card as its author would want to know it, before anybody trips over it.

What it says is checked against the version it claims, then each interface it lists is asked for a task that
cannot be there: one that answers so is one that works.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
from yarl import URL

from ...client.client import Client
from ...client.discover import places_of
from ...client.errors import ClientError, Refused
from ...client.http import Http, is_json
from ...model.errors import AgentError, Fault
from ...model.peer import SystemClock
from ...wire.card_checks import Finding, check_card, version_of
from ...wire.cards import read_card
from ...wire.versions import meant_by
from .failures import Failure
from .options import Shown, Way
from .reaching import address_of
from .speech import say, say_json

__all__ = ["check"]

CALL_SECONDS = 10.0
CARD_BYTES_MAX = 1024 * 1024


class _Fetched(NamedTuple):
    place: URL
    body: bytes
    headers: dict[str, str]


async def check(way: Way, how: Shown, calls: bool) -> int:
    """Look at a card, and perhaps at what it promises; 1 if something is wrong with it."""
    fetched = await _fetch(way)
    try:
        card = msgspec.json.decode(fetched.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Failure("A2ACLI_ERR_CARD_INVALID", f"{fetched.place} is not JSON: {wrong}") from None
    found = [*check_card(card), *_of_http(fetched)]
    if calls:
        found += [finding async for finding in _of_calls(way, fetched)]
    if how.as_json:
        say_json(
            {
                "card": str(fetched.place),
                "version": version_of(card),
                "findings": [_told(one) for one in found],
            }
        )
    else:
        _say(fetched, version_of(card), found)
    return 1 if any(finding.severity == "error" for finding in found) else 0


def _told(finding: Finding) -> dict[str, str]:
    return {"severity": finding.severity, "at": finding.at, "message": finding.words}


def _say(fetched: _Fetched, version: str, found: list[Finding]) -> None:
    say(f"Card: {fetched.place}")
    say(f"Version: {version}")
    for finding in found:
        say(f"{finding.severity.capitalize()}: {finding.at + ': ' if finding.at else ''}{finding.words}")
    errors = sum(finding.severity == "error" for finding in found)
    warnings = sum(finding.severity == "warning" for finding in found)
    say(f"Result: {errors} errors, {warnings} warnings")


async def _fetch(way: Way) -> _Fetched:
    target = URL(address_of(way))
    http = Http(way.headers, CALL_SECONDS, CARD_BYTES_MAX)
    tried = []
    try:
        async with asyncio.timeout(way.timeout or 30.0):
            for place in places_of(target):
                tried.append(str(place))
                response = await http.get(place, None)
                try:
                    if response.status == 200:
                        body = await http.read(response)
                        if is_json(response) or body.lstrip()[:1] == b"{":
                            return _Fetched(place, body, {k.lower(): v for k, v in response.headers.items()})
                finally:
                    response.release()
    except TimeoutError:
        raise Failure("A2ACLI_ERR_TIMEOUT", f"{target} gave no card in time") from None
    finally:
        await http.aclose()
    raise Failure(
        "A2ACLI_ERR_CARD_NOT_FOUND",
        f"there is no card for {target}; tried {', '.join(tried)}",
        "Name the agent's base address or its card.",
    )


def _of_http(fetched: _Fetched) -> list[Finding]:
    """What the protocol wants of how a card is served (§8.6)."""
    found = []
    kind = fetched.headers.get("content-type", "").partition(";")[0]
    if kind not in ("application/json", "application/a2a+json"):
        found.append(
            Finding("warning", "Content-Type", f"The card is served as {kind or 'nothing'}, not as JSON.")
        )
    if "max-age" not in fetched.headers.get("cache-control", ""):
        found.append(
            Finding("warning", "Cache-Control", "There is no max-age: readers cannot know when to ask again.")
        )
    if "etag" not in fetched.headers:
        found.append(Finding("warning", "ETag", "There is none: readers fetch the whole card each time."))
    return found


async def _of_calls(way: Way, fetched: _Fetched) -> AsyncIterator[Finding]:
    """What each interface answers that can be asked from here."""
    try:
        card = read_card(fetched.body)
    except AgentError:
        return
    for place, interface in enumerate(card.supported_interfaces):
        at = (
            f"supportedInterfaces[{place}]"
            if version_of(msgspec.json.decode(fetched.body)) == "1.0"
            else "url"
        )
        dialects = meant_by(interface.protocol_binding, interface.protocol_version)
        named = (
            f"{interface.protocol_binding} {interface.protocol_version or '(no version)'} at {interface.url}"
        )
        if not dialects:
            yield Finding("note", at, f"{named} was not tried: it is not spoken here.")
            continue
        said = await _answer_of(way, fetched, dialects[0].version, interface.protocol_binding, interface.url)
        yield Finding("note" if said is None else "error", at, f"{named} {said or 'answers'}.")


async def _answer_of(way: Way, fetched: _Fetched, version: str, binding: str, url: str) -> str | None:
    """What is wrong with an interface's answer; nothing if it knows what a missing task is."""
    there = fetched.place.join(URL(url))
    headers = way.headers if there.origin() == URL(address_of(way)).origin() else {}
    trust = [str(there.origin())]
    try:
        async with Client(
            str(fetched.place),
            headers=headers,
            trust=trust,
            timeout_seconds=CALL_SECONDS,
            dialect=version,
            binding=binding,
        ) as client:
            await client.get(SystemClock().new_id())
    except Refused:
        return None  # its door works
    except AgentError as told:
        return None if told.name == "TaskNotFound" else f"answers a question for a missing task with {told}"
    except (ClientError, Fault) as wrong:
        return f"does not answer: {wrong}"
    return "knows a task that cannot be there"
