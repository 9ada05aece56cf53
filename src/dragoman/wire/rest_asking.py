"""REST from the side of the one who asks: where a request goes, and what a refusal means."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from ..model.errors import ERRORS, AgentError, row_of_status
from ..model.operations.a2a import Operation, Request, Send
from .versions import Dialect

__all__ = ["Spelled", "read_refusal", "spell"]


class Spelled(NamedTuple):
    """A request as HTTP says it. `path` goes below the agent's address; percent signs are in place."""

    method: str
    path: str
    body: bytes


def spell(dialect: Dialect, operation: Operation, request: Request, tenant: str = "") -> Spelled:
    """Where a request goes and what it carries: the task in the path, the rest in the query or the body."""
    method, _, path = dialect.name_here(operation).partition(" ")
    tenant = request.tenant or tenant
    if tenant and dialect.says_tenants:
        path = f"/{quote(tenant, safe='')}{path}"
    if isinstance(request, Send):
        return Spelled(method, path, dialect.codec.spell_request(operation, request))
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(request))
    path = path.replace("{id}", quote(members.pop("id", ""), safe=""))
    members.pop("tenant", None)
    if method == "GET":
        query = urlencode({name: _in_query(value) for name, value in members.items()})
        return Spelled(method, f"{path}?{query}" if query else path, b"")
    return Spelled(method, path, msgspec.json.encode(members))


def _in_query(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def read_refusal(dialect: Dialect, status: int, body: bytes) -> AgentError | None:
    """What a peer's error means; None if the body is no error of the protocol's.

    By its reason first: 1.0.0, 1.0.1 and 0.3 have different statuses for one error. Then by the words of
    its binding's own error object, then by the name of its gRPC status, at last by the HTTP status.
    """
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    inside = said.get("error")
    found: dict[str, Any] = inside if isinstance(inside, dict) else said
    words = found.get("message") or found.get("detail") or found.get("title")
    if not isinstance(words, str) or not (found is inside or "code" in found or "message" in found):
        return None
    # Read as the error object of JSON-RPC is: `details` is its `data`, and a code below zero is its code.
    code = found.get("code")
    details = found.get("details", found.get("data"))
    told = dialect.codec.read_error({"code": code, "message": words, "data": details})
    if told.metadata.pop("code", None) is None:
        return told
    name = found.get("status")
    # Elder ones name the error itself.
    kind = found.get("type")
    row = ERRORS.get(kind.removesuffix("Error")) if isinstance(kind, str) else None
    row = row or row_of_status(name if isinstance(name, str) else "", status)
    return None if row is None else AgentError(row, words, at=told.at, metadata=told.metadata)
