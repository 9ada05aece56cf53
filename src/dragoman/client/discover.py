"""Where an agent's card is, whether it is still fresh, and which of its interfaces we call."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from yarl import URL

from ..model.card import Card, Interface
from ..model.errors import Fault
from ..wire.cards import read_card
from ..wire.versions import DIALECTS, Dialect, Wanted, meant_by
from .errors import NoCard, NoInterface, Refused, Untrusted
from .http import Http, is_json, origin_of, refusal

if TYPE_CHECKING:
    import aiohttp

__all__ = ["PLACES", "Finder", "Way", "places_of", "ways"]

# The first since 0.3; the second is where earlier agents, and many later ones, have it.
PLACES = (".well-known/agent-card.json", ".well-known/agent.json")
HOPS_MAX = 3


class Finder:
    """The card of one target: a base address, a card's own address, or an endpoint."""

    def __init__(self, http: Http, target: str, trust: Collection[str] = ()) -> None:
        self.target = URL(target)
        if self.target.scheme not in ("http", "https") or not self.target.host:
            raise ValueError(f"{target!r} is not an http or https address")
        self.trusted = {origin_of(self.target), *(origin_of(URL(origin)) for origin in trust)}
        self._http = http
        self._card: Card | None = None
        self._found_at = self.target
        self._etag = ""
        self._fresh_until = 0.0

    async def card(self, revalidate: bool = False) -> Card:
        """The card; with `revalidate` asked for again once its time is over."""
        if self._card is not None:
            if revalidate and time.monotonic() >= self._fresh_until:
                await self._fetch(self._found_at)
            return self._card
        wrong: Exception | None = None
        places = places_of(self.target)
        for place in places:
            try:
                found = await self._fetch(place)
            except Fault as problem:
                # A page of a web site where the card could be: the other place may still have it.
                wrong = wrong or problem
                continue
            if found is not None:
                self._check_place(place, found)
                return found
        if wrong is not None:
            raise wrong
        tried = [str(place) for place in places]
        raise NoCard(
            f"There is no agent card for {self.target}; tried {', '.join(tried)}.",
            "Name the agent's base address, its card or its endpoint.",
            tried=tried,
        )

    def _check_place(self, place: URL, card: Card) -> None:
        """A card at the root speaks for a path only if it names it: else it is another agent's."""
        target = self.target
        if (
            target.path in ("", "/")
            or target.path.endswith(".json")
            or place.path.startswith(_folder(target))
        ):
            return
        addresses = [interface.url for interface in card.supported_interfaces]
        if any(_plain(place.join(URL(address))) == _plain(target) for address in addresses):
            return
        self._card = None
        said = ", ".join(addresses) or "no address"
        raise NoCard(
            f"The card of this origin is of {card.name!r} at {said}, not at {target}.",
            "Name one of these addresses, or the card's.",
            tried=[str(place)],
        )

    async def _fetch(self, place: URL) -> Card | None:
        """The card there, or None when there is none."""
        for _ in range(HOPS_MAX):
            known = {"If-None-Match": self._etag} if self._etag and self._card is not None else None
            response = await self._http.get(place, known)
            try:
                if response.status not in (301, 302, 307, 308):
                    return await self._taken(place, response)
                place = self._hop(place, response)
            finally:
                response.release()
        raise Refused(f"{place} redirects again and again.", "Name the card's own address.", status=310)

    def _hop(self, place: URL, response: aiohttp.ClientResponse) -> URL:
        there = place.join(URL(response.headers.get("Location", "")))
        if origin_of(there) not in self.trusted:
            raise _untrusted(f"The card of {self.target} is said to be at {there}", origin_of(there))
        return there

    async def _taken(self, place: URL, response: aiohttp.ClientResponse) -> Card | None:
        if response.status == 304 and self._card is not None:
            self._fresh_until = time.monotonic() + _max_age(response)
            return self._card
        if response.status in (404, 405, 410):
            return None
        if response.status != 200:
            raise refusal(response)
        body = await self._http.read(response)
        if not is_json(response) and body.lstrip()[:1] != b"{":
            kind = response.headers.get("Content-Type", "no content type")
            raise Fault(
                f"{place} answered with {kind}: that is not a card", url=str(place), content_type=kind
            )
        self._card = card = _read_card(place, body)
        self._found_at = place
        self._etag = response.headers.get("ETag", "")
        self._fresh_until = time.monotonic() + _max_age(response)
        return card

    def ways(self, card: Card, wanted: Wanted) -> list[Way]:
        """How the agent may be called, the best first."""
        return ways(card, self._found_at, self.target, self.trusted, wanted)


def places_of(target: URL) -> list[URL]:
    """Where the card of an agent may be that is called by this address."""
    plain = target.with_query(None).with_fragment(None)
    if plain.path.endswith(".json"):
        return [target]
    root = plain.origin() / ""
    beneath = plain if plain.path.endswith("/") else plain.with_path(plain.path + "/")
    folders = [beneath] if beneath == root else [beneath, root]
    return [folder.join(URL(place)) for folder in folders for place in PLACES]


class Way(NamedTuple):
    """One way to call an agent: an interface of its card, the address in full, and the dialect."""

    interface: Interface
    address: URL
    dialect: Dialect


def ways(card: Card, found_at: URL, target: URL, trusted: Collection[str], wanted: Wanted) -> list[Way]:
    """The interface that was named, else those spoken here and trusted, in the card's order.

    Who insists on what the card does not list gets it, at the address that fits best.
    """
    listed = [(it, found_at.join(URL(it.url))) for it in card.supported_interfaces]
    fitting = [
        Way(it, address, dialect)
        for it, address in listed
        for dialect in meant_by(it.protocol_binding, it.protocol_version)
        if wanted.allows(dialect)
    ]
    if not fitting and any(wanted):
        fitting = _insisted(listed, target, wanted)
    if not fitting:
        offers = [
            f"{it.protocol_binding} {it.protocol_version} at {it.url}" for it in card.supported_interfaces
        ]
        spoken = ", ".join(f"{binding} {version}" for binding, version in DIALECTS)
        raise NoInterface(
            f"{card.name!r} offers {'; '.join(offers) or 'no interface'}.",
            f"This client speaks {spoken}.",
            offers=offers,
        )
    near = [way for way in fitting if origin_of(way.address) in trusted]
    if not near:
        address = fitting[0].address
        raise _untrusted(f"The card of {target} names {address}", origin_of(address))
    named = [way for way in near if _plain(way.address) == _plain(target)]
    return [*named, *(way for way in near if way not in named)] if named else near


def _insisted(listed: Sequence[tuple[Interface, URL]], target: URL, wanted: Wanted) -> list[Way]:
    """What the card does not say can be tried all the same, where it says the binding is."""
    bindings = [wanted.binding] if wanted.binding else [it.protocol_binding for it, _ in listed]
    for binding in [*bindings, "JSONRPC"]:
        versions = [wanted.version] if wanted.version else [v for b, v in DIALECTS if b == binding]
        dialect = next((DIALECTS[binding, v] for v in versions if (binding, v) in DIALECTS), None)
        if dialect is not None:
            there = [pair for pair in listed if pair[0].protocol_binding == binding] or listed
            it, address = there[0] if there else (Interface(str(target), binding, dialect.version), target)
            return [Way(it, address, dialect)]
    return []


def _untrusted(what: str, origin: str) -> Untrusted:
    return Untrusted(
        f"{what}, on another origin than the one you named. Neither message nor headers went there.",
        f"If you trust it: trust=[{origin!r}].",
        origin=origin,
    )


def _read_card(place: URL, body: bytes) -> Card:
    try:
        card = read_card(body)
    except Exception as problem:
        raise Fault(f"{place} is not a valid card: {problem}", url=str(place)) from problem
    if not card.supported_interfaces:
        raise Fault(f"{place} is not a valid card: it names no interface", url=str(place))
    return card


def _max_age(response: aiohttp.ClientResponse) -> float:
    for word in response.headers.get("Cache-Control", "").lower().split(","):
        name, _, seconds = word.strip().partition("=")
        if name in ("no-cache", "no-store"):
            return 0.0
        if name == "max-age" and seconds.isdecimal() and len(seconds) < 10:
            return float(seconds)
    return 0.0


def _folder(url: URL) -> str:
    return url.path if url.path.endswith("/") else url.path + "/"


def _plain(url: URL) -> str:
    return str(url.with_fragment(None)).rstrip("/")
