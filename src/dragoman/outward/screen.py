"""Which addresses a node may reach that somebody else has named: public ones, and those an operator allows.

Judged twice: the URL as it is written, and then the very address that is about to be dialled. Between the two there
is a name, and whoever owns it may answer differently each time.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

__all__ = ["PORTS", "Screen", "Unsafe", "networks_of"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS: Final = (80, 443)
URL_CHARS_MAX: Final = 2048

# Written out, because what `ipaddress` calls global has changed from one Python to the next.
_CLOSED: Final = tuple(
    ipaddress.ip_network(one)
    for one in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",
        "::ffff:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
# What no URL of ours holds: browsers and parsers strip some of these in silence, and then disagree.
_ODD = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE)
# A name that ends in a number is an IPv4 address to some resolvers, in a base of their choice.
_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$", re.IGNORECASE)


class Unsafe(Exception):
    """An address that is not reached on somebody else's word. The words say why, and what would allow it."""


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks as they are written in a configuration: `127.0.0.0/8`, `::1`. Raises `ValueError`."""
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)


class Screen:
    """`allow` are networks that are reached though they are not public; through them any port is."""

    def __init__(self, allow: Iterable[Network] = (), ports: Iterable[int] = PORTS) -> None:
        self.allow = tuple(allow)
        self.ports = frozenset(ports)

    def check_url(self, url: str) -> None:
        """Refuse a URL that cannot be meant well, whatever its name resolves to."""
        if len(url) > URL_CHARS_MAX:
            raise Unsafe(f"an address has up to {URL_CHARS_MAX} characters")
        if (odd := _ODD.search(url)) is not None:
            raise Unsafe(f"an address holds no {odd[0]!r}")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as wrong:
            raise Unsafe(f"{url!r} is not an address: {wrong}") from None
        if parts.scheme not in ("http", "https"):
            raise Unsafe(f"{parts.scheme or 'nothing'}: is not reached, only http: and https:")
        if "@" in parts.netloc:
            raise Unsafe("an address holds no credentials")
        if not host:
            raise Unsafe("the address names no host")
        port = port if port is not None else (443 if parts.scheme == "https" else 80)
        self._check_host(host, port)

    def _check_host(self, host: str, port: int) -> None:
        address = _literal(host)
        if address is not None:
            self.check_address(address, port)
            return
        if "%" in host or _HOST.fullmatch(host.removesuffix(".")) is None:
            raise Unsafe(f"{host!r} is not the name of a host")
        if _NUMBER.search(host):
            raise Unsafe(f"{host!r} is an address in disguise")
        name = host.removesuffix(".").lower()
        if (name == "localhost" or name.endswith(".localhost")) and not self._allows_loopback():
            raise _closed(host)
        if port not in self.ports and not self.allow:
            raise Unsafe(
                f"port {port} is not reached, only {', '.join(str(one) for one in sorted(self.ports))}"
            )

    def _allows_loopback(self) -> bool:
        return any(self._is_allowed(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1"))

    def check_address(self, address: Address | str, port: int) -> None:
        """Refuse the very address that is about to be dialled."""
        if isinstance(address, str):
            address = ipaddress.ip_address(address.partition("%")[0])
        if self._is_allowed(address):
            return
        if not is_public(address):
            raise _closed(str(address))
        if port not in self.ports:
            raise Unsafe(
                f"port {port} is not reached, only {', '.join(str(one) for one in sorted(self.ports))}"
            )

    def _is_allowed(self, address: Address) -> bool:
        mapped = getattr(address, "ipv4_mapped", None)
        return any(
            one in network
            for network in self.allow
            for one in (address, mapped)
            if one is not None and one in network
        )


def is_public(address: Address) -> bool:
    """Whether an address is anybody's, and not this machine's, this network's, or another's in disguise."""
    return address.is_global and not any(address in network for network in _CLOSED)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _closed(what: str) -> Unsafe:
    return Unsafe(
        f"{what} is not a public address. An operator may allow it by name: --allow-address, or [outbound] allow"
    )
