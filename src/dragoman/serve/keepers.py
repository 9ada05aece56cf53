"""Keepers of the door that know what they look for: API keys and bearer tokens, names with passwords, certificates.

Secrets are kept as digests: what is compared is no longer the secret, and a look into the process finds none.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from .door import Guest, Shown, digest

__all__ = ["Certificates", "Keys", "Secret", "Users"]

REALM = 'realm="dragoman"'
# Nobody's key is as long; whoever sends more wants us to compute.
CREDENTIAL_BYTES_MAX = 8192


class Secret(Struct, frozen=True):
    """A digest of something that is shown, and who shows it."""

    digest: bytes
    guest: Guest


class Keys:
    """API keys: as a bearer token, or in `X-API-Key`."""

    challenge = f"Bearer {REALM}"

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._guests = {secret.digest: secret.guest for secret in secrets}

    def admit(self, shown: Shown) -> Guest | None:
        key = shown.api_key or _credential(shown.authorization, b"bearer")
        if not key or len(key) > CREDENTIAL_BYTES_MAX:
            return None
        return self._guests.get(digest(key))

    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
            "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
        }


class Users:
    """Names with passwords: HTTP's basic scheme."""

    challenge = f'Basic {REALM}, charset="UTF-8"'

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._guests = {secret.digest: secret.guest for secret in secrets}

    def admit(self, shown: Shown) -> Guest | None:
        encoded = _credential(shown.authorization, b"basic")
        if not encoded or len(encoded) > CREDENTIAL_BYTES_MAX:
            return None
        try:
            pair = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return None
        return self._guests.get(digest(pair))

    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        return {"basic": {"httpAuthSecurityScheme": {"scheme": "basic"}}}


class Certificates:
    """Certificates that the node's own authority has signed: the connection has proved them already.

    Who is named in `guests` is that guest; of any other the subject is the owner, unless only those named may in.
    """

    challenge = ""

    def __init__(self, guests: Mapping[str, Guest], *, only_named: bool = False) -> None:
        self._guests = dict(guests)
        self._only_named = only_named

    def admit(self, shown: Shown) -> Guest | None:
        subject = shown.certificate
        if not subject:
            return None
        found = self._guests.get(subject)
        if found is None and not self._only_named:
            return Guest(f"certificate {subject}", subject)
        return found

    def schemes(self) -> Mapping[str, Mapping[str, Any]]:
        return {"mutualTLS": {"mtlsSecurityScheme": {}}}


def _credential(authorization: bytes, scheme: bytes) -> bytes:
    """What follows the scheme, if it is this one."""
    said, _, credential = authorization.partition(b" ")
    return credential.strip() if said.lower() == scheme else b""
