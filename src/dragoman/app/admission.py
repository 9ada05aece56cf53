"""From settings to a door: which credentials are known, how much may be asked, and what the card says of it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core.access import scope_is_known
from ..core.limits import Rate
from ..model.card import Card
from ..serve.door import Door, Guest, Keeper, Rates, digest
from ..serve.keepers import Certificates, Keys, Secret, Users
from .config import CertificateConfig, Config, ConfigError, IssuerConfig, KeyConfig, UserConfig

__all__ = ["door_of", "guarded"]

Fetch = Callable[[str], Awaitable[bytes]]
# Shorter ones are guessed.
KEY_CHARS_MIN = 8


def door_of(config: Config, fetch: Fetch, operator: str = "") -> Door:
    """The door. `operator` is a token for this launch, for whoever may read the store's own files.

    It fails closed: who configures no credentials is heard by this machine only.
    """
    auth, limits = config.auth, config.limits
    keepers: list[Keeper] = []
    secrets = [_secret_of(key) for key in auth.keys]
    if auth.bearer:
        secrets.append(Secret(digest(_long(auth.bearer, "auth.bearer")), Guest("bearer", "bearer")))
    if secrets:
        keepers.append(Keys(_distinct(secrets)))
    if auth.users:
        keepers.append(Users([_user_of(user) for user in auth.users]))
    if auth.issuers:
        keepers.append(_tokens(auth.issuers, fetch))
    if config.tls.client_ca:
        guests = {
            one.subject: _guest(one.subject, f"certificate {one.subject}", one) for one in auth.certificates
        }
        keepers.append(Certificates(guests, only_named=bool(guests)))
    elif auth.certificates:
        raise ConfigError(
            "auth.certificates: tls.client_ca says whose certificates they are, and it is not set"
        )
    if not keepers and not auth.open and not _is_near(config.node.host):
        raise ConfigError(
            f"node.host: {config.node.host} is open to others, and nobody has to show anything: configure [auth], "
            "or say auth.open = true (--auth none) if everybody may call these agents"
        )
    rates = _rates(limits.address_tokens_per_minute, limits.caller_tokens_per_minute, limits.streams_max)
    return Door(keepers, rates, operator.encode())


def _is_near(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _rates(of_address: int, of_caller: int, streams_max: int) -> Rates:
    return Rates(
        Rate(of_address) if of_address > 0 else None, Rate(of_caller) if of_caller > 0 else None, streams_max
    )


def _long(secret: str, where: str) -> bytes:
    if len(secret) < KEY_CHARS_MIN or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigError(
            f"{where}: a key has {KEY_CHARS_MIN} printable ASCII characters or more, without spaces"
        )
    return secret.encode()


def _secret_of(key: KeyConfig) -> Secret:
    where = f"auth.keys {key.id!r}"
    given = [name for name in ("key", "key_sha256", "key_env") if getattr(key, name)]
    if len(given) != 1:
        raise ConfigError(f"{where}: give exactly one of key, key_sha256 and key_env")
    guest = _guest(key.id, key.id, key)
    if key.key_sha256:
        if len(key.key_sha256) != 64:
            raise ConfigError(f"{where}: key_sha256 is 64 characters of hex")
        return Secret(bytes.fromhex(key.key_sha256), guest)
    return Secret(digest(_long(key.key or _from_environment(key.key_env, where), where)), guest)


def _user_of(user: UserConfig) -> Secret:
    where = f"auth.users {user.name!r}"
    if bool(user.password) == bool(user.password_env):
        raise ConfigError(f"{where}: give exactly one of password and password_env")
    if ":" in user.name:
        raise ConfigError(f"{where}: a name holds no colon")
    password = user.password or _from_environment(user.password_env, where)
    pair = f"{user.name}:{password}".encode()
    return Secret(digest(pair), _guest(user.name, f"user {user.name}", user))


def _from_environment(name: str, where: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"{where}: the variable {name} is not set")
    return value


def _guest(owner: str, id: str, said: KeyConfig | UserConfig | CertificateConfig) -> Guest:
    for scope in said.scopes or ():
        if not scope_is_known(scope):
            raise ConfigError(
                f"auth, {id}: {scope!r} is no scope; there are send, read, write, *, send:AGENT, …"
            )
    scopes = None if said.scopes is None else frozenset(said.scopes)
    return Guest(id, said.owner or owner, said.tenant, scopes)


def _distinct(secrets: Iterable[Secret]) -> list[Secret]:
    seen: dict[bytes, Secret] = {}
    for secret in secrets:
        other = seen.setdefault(secret.digest, secret)
        if other is not secret:
            raise ConfigError(f"auth.keys: {other.guest.id!r} and {secret.guest.id!r} have one key")
    return list(seen.values())


def _tokens(issuers: Iterable[IssuerConfig], fetch: Fetch) -> Keeper:
    try:
        from ..serve.tokens import Issuer, Tokens
    except ImportError:
        raise ConfigError("auth.issuers: install dragoman[auth] for JSON Web Tokens") from None
    made = []
    for one in issuers:
        keys, discovery = _issuer_keys(one, fetch)
        unknown = set(one.algorithms) - set(_algorithms())
        if unknown:
            raise ConfigError(f"auth.issuers {one.issuer!r}: {', '.join(sorted(unknown))} is not taken")
        made.append(
            Issuer(
                one.issuer,
                one.audience,
                keys,
                tuple(one.algorithms) or _algorithms(),
                one.owner_claim,
                one.tenant_claim,
                one.scope_claim,
                one.leeway_seconds,
                discovery,
            )
        )
    return Tokens(made)


def _algorithms() -> tuple[str, ...]:
    from ..serve.tokens import ALGORITHMS

    return ALGORITHMS


def _issuer_keys(one: IssuerConfig, fetch: Fetch) -> tuple[Any, str]:
    """Where an issuer's keys are, and the address at which it describes itself, if that is where."""
    from ..serve.tokens import FetchedKeys, OwnKeys

    if one.keys:
        try:
            body = Path(one.keys).read_bytes()
            return (OwnKeys.of_set(body) if body.lstrip()[:1] == b"{" else OwnKeys.of_pem(body)), ""
        except (OSError, ValueError) as wrong:
            raise ConfigError(f"auth.issuers {one.issuer!r}: {one.keys}: {wrong}") from None
    if one.jwks_url:
        return FetchedKeys(fetch, one.jwks_url), ""
    discovery = f"{one.issuer.rstrip('/')}/.well-known/openid-configuration"
    return FetchedKeys(fetch, discovery, is_discovery=True), discovery


def guarded(card: Card, schemes: Mapping[str, Mapping[str, Any]]) -> Card:
    """The card with what has to be shown: any one of the schemes will do."""
    from msgspec.structs import replace

    if not schemes:
        return card
    return replace(
        card,
        security_schemes={name: dict(scheme) for name, scheme in schemes.items()},
        security_requirements=tuple({"schemes": {name: {"list": []}}} for name in schemes),
    )
