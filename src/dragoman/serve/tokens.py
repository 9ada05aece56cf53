"""The keeper that knows JSON Web Tokens: of configured issuers only, by their own keys, with every claim looked at.

What a token says of its own key (`jwk`, `jku`, `x5u`) is not looked at: the keys are the issuer's, found by `kid`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from joserfc import jwk, jwt
from joserfc.errors import JoseError, SecurityWarning
from msgspec import Struct

from ..model.errors import AgentError
from ..wire import guard
from .door import Guest, Shown

__all__ = ["ALGORITHMS", "FetchedKeys", "Issuer", "Keys", "KeysUnknown", "OwnKeys", "Tokens"]

ALGORITHMS = ("ES256", "EdDSA", "Ed25519", "RS256")
TOKEN_BYTES_MAX = 8192
KID_CHARS_MAX = 256
# How long fetched keys are taken as they are, and how soon they may be fetched again for one that is not among them.
KEYS_SECONDS = 600.0
AGAIN_SECONDS = 30.0
KEYS_MAX = 100

Fetch = Callable[[str], Awaitable[bytes]]


class KeysUnknown(Exception):
    """The issuer's keys cannot be had just now."""


class Keys(Protocol):
    """The keys of an issuer."""

    async def find(self, kid: str) -> Any | None:
        """The key of this id; of an empty one the only key there is."""
        ...


class OwnKeys:
    """Keys that an operator has written down."""

    def __init__(self, several: Sequence[Any]) -> None:
        self._by_kid = {str(key.kid or ""): key for key in several}

    @staticmethod
    def of_set(body: bytes) -> OwnKeys:
        """Keys in a JWKS document."""
        return OwnKeys(_keys_of(body))

    @staticmethod
    def of_pem(pem: bytes, kid: str = "") -> OwnKeys:
        """One public key in PEM. Never a symmetric one: who knows that could make tokens."""
        for kind in ("EC", "OKP", "RSA"):
            try:
                read: Any = jwk.import_key
                return OwnKeys([read(pem, kind, {"kid": kid} if kid else None)])
            except (JoseError, ValueError, TypeError):
                continue
        raise ValueError("this is not a public key in PEM")

    async def find(self, kid: str) -> Any | None:
        if kid:
            return self._by_kid.get(kid)
        return next(iter(self._by_kid.values())) if len(self._by_kid) == 1 else None


class FetchedKeys:
    """Keys that an issuer publishes: fetched when they are needed, again when they are old or one is missing."""

    def __init__(self, fetch: Fetch, url: str, *, is_discovery: bool = False) -> None:
        self._fetch = fetch
        self._url = url
        self._is_discovery = is_discovery
        self._keys = OwnKeys(())
        self._at = -KEYS_SECONDS
        self._lock = asyncio.Lock()

    async def find(self, kid: str) -> Any | None:
        age = time.monotonic() - self._at
        found = await self._keys.find(kid) if age < KEYS_SECONDS else None
        if found is None and age >= AGAIN_SECONDS:
            async with self._lock:
                if time.monotonic() - self._at >= AGAIN_SECONDS:
                    await self._renew()
            found = await self._keys.find(kid)
        return found

    async def _renew(self) -> None:
        had = self._at
        self._at = time.monotonic()
        try:
            url = self._url
            if self._is_discovery:
                url = msgspec.json.decode(await self._fetch(url), type=_Discovered).jwks_uri
            self._keys = OwnKeys.of_set(await self._fetch(url))
        except Exception as wrong:
            if had < 0:
                raise KeysUnknown(f"the keys at {self._url} cannot be read: {wrong}") from wrong
            # The old ones are good until better are had.


class Issuer(Struct, frozen=True):
    """Whose tokens are taken, for which audience, and which claims say who it is."""

    name: str
    audience: str
    keys: Any
    algorithms: tuple[str, ...] = ALGORITHMS
    owner_claim: str = "sub"
    tenant_claim: str = ""
    scope_claim: str = ""
    leeway_seconds: int = 60
    discovery_url: str = ""


class Tokens:
    """Bearer tokens that are JWTs."""

    challenge = 'Bearer realm="dragoman", error="invalid_token"'

    def __init__(self, issuers: Sequence[Issuer]) -> None:
        self._issuers = {issuer.name: issuer for issuer in issuers}

    async def admit(self, shown: Shown) -> Guest | None:
        said, _, token = shown.authorization.partition(b" ")
        if said.lower() != b"bearer" or token.count(b".") != 2 or len(token) > TOKEN_BYTES_MAX:
            return None
        header, claims = _part(token, 0), _part(token, 1)
        if header is None or claims is None:
            return None
        name, kid = claims.get("iss"), header.get("kid", "")
        issuer = self._issuers.get(name) if isinstance(name, str) else None
        if issuer is None or not isinstance(kid, str) or len(kid) > KID_CHARS_MAX:
            return None
        if header.get("alg") not in issuer.algorithms or "crit" in header or "b64" in header:
            return None
        key = await issuer.keys.find(kid)
        return None if key is None else _verified(token, key, issuer)

    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        known: dict[str, Mapping[str, Any]] = {}
        for issuer in self._issuers.values():
            if issuer.discovery_url:
                known[f"oidc-{len(known) + 1}" if known else "oidc"] = {
                    "openIdConnectSecurityScheme": {"openIdConnectUrl": issuer.discovery_url}
                }
        return known or {"jwt": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}}}


def _verified(token: bytes, key: Any, issuer: Issuer) -> Guest | None:
    try:
        with warnings.catch_warnings():
            # EdDSA has a newer name; most who sign with it say the elder one.
            warnings.simplefilter("ignore", SecurityWarning)
            claims = jwt.decode(token, key, algorithms=list(issuer.algorithms)).claims
        jwt.JWTClaimsRegistry(
            leeway=issuer.leeway_seconds,
            iss={"essential": True, "value": issuer.name},
            aud={"essential": True, "value": issuer.audience},
            exp={"essential": True},
            **{issuer.owner_claim: {"essential": True}},  # type: ignore[arg-type]
        ).validate(claims)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    owner = claims.get(issuer.owner_claim)
    tenant = claims.get(issuer.tenant_claim, "") if issuer.tenant_claim else ""
    if not isinstance(owner, str) or not owner or not isinstance(tenant, str):
        return None
    if issuer.tenant_claim and not tenant:
        # Who should belong to a tenant and names none belongs nowhere.
        return None
    scopes = _scopes(claims.get(issuer.scope_claim, "")) if issuer.scope_claim else None
    # Of two issuers each may know somebody by the same name.
    return Guest(f"{issuer.name} {owner}", f"{issuer.name}#{owner}", tenant, scopes, float(claims["exp"]))


def _scopes(said: Any) -> frozenset[str]:
    words = said.split() if isinstance(said, str) else said if isinstance(said, list) else ()
    return frozenset(word for word in words if isinstance(word, str))


def _part(token: bytes, number: int) -> dict[str, Any] | None:
    """A part of a token, unverified, if it is an object that says nothing twice."""
    encoded = token.split(b".")[number]
    try:
        body = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        guard.check(body)
        found = msgspec.json.decode(body)
    except (binascii.Error, ValueError, msgspec.DecodeError, AgentError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _Discovered(Struct):
    jwks_uri: str


class _Set(Struct):
    keys: list[dict[str, Any]]


def _keys_of(body: bytes) -> list[Any]:
    """The public keys of a set that are for signatures; what is of no kind we know is passed by."""
    found = []
    for one in msgspec.json.decode(body, type=_Set).keys[:KEYS_MAX]:
        if one.get("kty") not in ("EC", "OKP", "RSA") or one.get("use", "sig") != "sig":
            continue
        try:
            found.append(jwk.import_key(one))
        except (JoseError, ValueError, TypeError):
            continue
    return found
