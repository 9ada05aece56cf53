"""Which card is read, which of its interfaces is called, and which never gets a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.client import Client, NoCard, NoInterface, Refused, Untrusted
from dragoman.model.errors import Fault
from dragoman.model.events import TaskCreated
from tests.client.scripted import TASK, Exchange, card, opened, serving, task_bytes

CARD, EARLIER = "/.well-known/agent-card.json", "/.well-known/agent.json"


class Site:
    """Files, and an agent at every POST."""

    def __init__(self, **files: Any) -> None:
        self.files: dict[str, Any] = files.pop("files")
        self.posts: list[Exchange] = []
        self.gets: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.verb == "POST":
            self.posts.append(exchange)
            if exchange.method == "GetTask":
                await exchange.result(task_bytes(opened().task))
            else:
                await exchange.result(TaskCreated(opened().task))
            return
        self.gets.append(exchange.path)
        found = self.files.get(exchange.path)
        if found is None:
            await exchange.answer(b"", status=404)
        elif callable(found):
            await found(exchange)
        else:
            said = found if isinstance(found, str) else json.dumps(found)
            url = f"http://{exchange.headers['host']}"
            kind = "application/json" if said.startswith("{") else "text/html"
            await exchange.answer(said.replace("$URL", url).encode(), kind)


def at(*interfaces: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    keys = ("url", "protocolBinding", "protocolVersion")
    return card(interfaces=[dict(zip(keys, one, strict=True)) for one in interfaces], **more)


RPC = ("$URL/rpc", "JSONRPC", "1.0")


@pytest.mark.parametrize(
    ("target", "files", "looked"),
    [
        ("", {CARD: at(RPC)}, [CARD]),
        ("/", {EARLIER: at(RPC)}, [CARD, EARLIER]),
        ("", {CARD: "<html>", EARLIER: at(RPC)}, [CARD, EARLIER]),
        (CARD, {CARD: at(RPC)}, [CARD]),
        ("/cards/x.json", {"/cards/x.json": at(RPC)}, ["/cards/x.json"]),
        ("/a/b", {"/a/b" + CARD: at(RPC)}, ["/a/b" + CARD]),
        ("/rpc", {CARD: at(RPC)}, ["/rpc" + CARD, "/rpc" + EARLIER, CARD]),
    ],
)
async def test_a_card_is_found_from_any_of_its_agents_addresses(
    target: str, files: dict[str, Any], looked: list[str]
) -> None:
    site = Site(files=files)
    async with serving(site, card=None) as peer, Client(peer.url + target) as agent:
        await agent.get(TASK)
        assert site.gets == looked
        assert [one.path for one in site.posts] == ["/rpc"]


async def test_the_endpoint_that_was_named_is_the_one_that_is_called() -> None:
    site = Site(files={CARD: at(RPC, ("$URL/second", "JSONRPC", "1.0"))})
    async with serving(site, card=None) as peer, Client(peer.url + "/second") as agent:
        await agent.get(TASK)
        assert [one.path for one in site.posts] == ["/second"]


async def test_the_first_interface_in_the_cards_order_that_is_spoken_is_called() -> None:
    offers = at(
        ("$URL/grpc", "GRPC", "1.0"), ("$URL/old", "JSONRPC", "0.4.0"), ("$URL/b", "JSONRPC", "1.0.1"), RPC
    )
    site = Site(files={CARD: offers})
    async with serving(site, card=None) as peer, Client(peer.url) as agent:
        await agent.get(TASK)
        assert [one.path for one in site.posts] == ["/b"]


@pytest.mark.parametrize(
    ("files", "kind", "said"),
    [
        ({}, NoCard, "tried .*agent-card.json, .*agent.json"),
        (
            {CARD: at(("$URL/g", "GRPC", "1.0"), ("$URL", "JSONRPC", "1.7"))},
            NoInterface,
            "GRPC 1.0 .*; JSONRPC 1.7",
        ),
        (
            {CARD: {"name": "E", "url": "http://e/", "protocolVersion": "0.4.5"}},
            NoInterface,
            "JSONRPC 0.4.5 at http://e/",
        ),
        ({CARD: "<html>"}, Fault, "not a card"),
        ({CARD: {"name": 7}}, Fault, "not a valid card"),
        ({CARD: "{"}, Fault, "not a valid card"),
        (
            {CARD: at(("http://elsewhere:1/rpc", "JSONRPC", "1.0"))},
            Untrusted,
            r"trust=\['http://elsewhere:1'\]",
        ),
    ],
)
async def test_a_card_that_leads_nowhere_says_why(files: dict[str, Any], kind: type, said: str) -> None:
    site = Site(files=files)
    async with serving(site, card=None) as peer, Client(peer.url) as agent:
        with pytest.raises(kind, match=said):
            await agent.send("go")
        assert site.posts == []


async def test_the_card_at_the_root_does_not_speak_for_another_agents_path() -> None:
    site = Site(files={CARD: at(RPC)})
    async with serving(site, card=None) as peer, Client(peer.url + "/agents/other") as agent:
        with pytest.raises(NoCard, match=r"'Scripted' at http.*/rpc, not at .*/agents/other"):
            await agent.send("go")
        assert site.posts == []


async def test_another_origin_gets_message_and_headers_only_when_it_is_trusted() -> None:
    there = Site(files={})
    async with serving(there, card=None) as other:
        site = Site(files={CARD: at((other.url + "/rpc", "JSONRPC", "1.0"))})
        async with serving(site, card=None) as peer:
            async with Client(peer.url, headers={"Authorization": "Bearer s3"}) as agent:
                with pytest.raises(Untrusted, match=other.url):
                    await agent.get(TASK)
            assert other.asked == []
            async with Client(peer.url, headers={"Authorization": "Bearer s3"}, trust=[other.url]) as agent:
                await agent.get(TASK)
            assert [one.headers["authorization"] for one in there.posts] == ["Bearer s3"]


async def test_a_card_may_move_within_its_origin_but_not_beyond() -> None:
    async def within(exchange: Exchange) -> None:
        await exchange.answer(b"", status=301, more="Location: /moved.json\r\n")

    async def beyond(exchange: Exchange) -> None:
        await exchange.answer(b"", status=302, more="Location: http://elsewhere/card.json\r\n")

    async def around(exchange: Exchange) -> None:
        await exchange.answer(b"", status=302, more=f"Location: {CARD}\r\n")

    async with (
        serving(Site(files={CARD: within, "/moved.json": at(RPC)}), card=None) as peer,
        Client(peer.url) as one,
    ):
        await one.get(TASK)
    async with serving(Site(files={CARD: beyond}), card=None) as peer, Client(peer.url) as two:
        with pytest.raises(Untrusted, match="http://elsewhere"):
            await two.get(TASK)
    async with serving(Site(files={CARD: around}), card=None) as peer, Client(peer.url) as three:
        with pytest.raises(Refused, match="again and again"):
            await three.get(TASK)


async def test_a_card_is_asked_for_again_by_its_tag_once_its_time_is_over() -> None:
    tags = []

    async def stored(exchange: Exchange) -> None:
        tag = exchange.headers.get("if-none-match", "")
        tags.append(tag)
        more = f'ETag: "v1"\r\nCache-Control: public, max-age={60 if len(tags) == 2 else 0}\r\n'
        said = json.dumps(at(RPC)).replace("$URL", f"http://{exchange.headers['host']}")
        if tag:
            await exchange.write(f"HTTP/1.1 304 X\r\n{more}\r\n".encode())
        else:
            await exchange.answer(said.encode(), more=more)

    async with serving(Site(files={CARD: stored}), card=None) as peer, Client(peer.url) as agent:
        first = await agent.card()
        assert await agent.card() is first
        assert await agent.card() is first
        await agent.get(TASK)
        assert tags == ["", '"v1"']
