"""Whom a node reaches on somebody else's word: public addresses, and what its operator allows by name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from dragoman.outward.dialer import connector
from dragoman.outward.screen import Screen, Unsafe, networks_of

REFUSED = (
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://169.254.169.254/latest/",
    "http://100.64.0.1/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://192.0.0.8/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fec0::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fc00::1]/",
    "http://localhost/",
    "http://localhost./",
    "http://me.localhost/",
    "http://ok@127.0.0.1/",
    "http://user:word@example.com/",
    "http://example.com:22/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "//example.com/",
    "http:///nothing",
    "http://exa\tmple.com/",
    "http://example.com/\r\nHost: other",
    "http://example.com\\@127.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://example.com:99999/",
    "http://example.com/" + "a" * 2048,
)


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_is_not_public_is_refused_as_it_is_written(url: str) -> None:
    with pytest.raises(Unsafe):
        Screen().check_url(url)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/hook", "http://example.com.:80/", "https://8.8.8.8/", "https://[2606:4700::1]/"],
)
def test_a_public_address_is_reached(url: str) -> None:
    Screen().check_url(url)


def test_what_an_operator_allows_is_reached_at_any_port_and_nothing_beside_it() -> None:
    screen = Screen(networks_of(["127.0.0.0/8"]))
    screen.check_url("http://127.0.0.1:9000/")
    screen.check_url("http://localhost:9000/")
    screen.check_address("::ffff:127.0.0.1", 9000)
    for address in ("10.0.0.1", "169.254.169.254", "::1"):
        with pytest.raises(Unsafe, match="--allow-address"):
            screen.check_address(address, 80)
    with pytest.raises(Unsafe, match="port 22"):
        screen.check_address("8.8.8.8", 22)


class Rebinding(AbstractResolver):
    """Names a public address when it is asked first, and this machine ever after."""

    def __init__(self) -> None:
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        address = "8.8.8.8" if self.asked == 1 else "127.0.0.1"
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        return None


def test_a_name_that_moves_to_this_machine_is_refused_before_the_dial() -> None:
    """No socket is made for it in a thousand tries; for the public answer one is asked for, and none connects."""
    made: list[str] = []

    def record(address: Any) -> socket.socket:
        made.append(address[4][0])
        raise OSError("recorded, not dialled")

    async def tries() -> None:
        names = Rebinding()
        dialer = connector(Screen(), record, resolver=names, use_dns_cache=False)
        async with aiohttp.ClientSession(connector=dialer) as session:
            for _ in range(1000):
                with pytest.raises(aiohttp.ClientConnectorError):
                    await session.get("http://moving.example/")
        assert names.asked == 1000

    asyncio.run(tries())
    assert made == ["8.8.8.8"]
