"""What an error says on the wire: the error object of JSON-RPC and its details, and what a peer's means.

All versions have codes, and all leave room beside them. So ours always say the reason there, which outlives
codes and statuses: 1.0.1 changed six of those, and 0.1 numbers its errors otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..model.errors import ERRORS, AgentError, ErrorRow, error, row_of_code, row_of_elder_code, row_of_reason

__all__ = ["details_of", "read_elder_error", "read_error", "spell_elder_error", "spell_error"]

ERROR_REASON: Final = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
DOMAIN: Final = "a2a-protocol.org"


def details_of(wrong: AgentError) -> list[dict[str, Any]]:
    """The `data` of a JSON-RPC error, which is also the `details` of a REST error."""
    details: list[dict[str, Any]] = [
        {"@type": ERROR_REASON, "reason": wrong.row.reason, "domain": DOMAIN, "metadata": wrong.metadata}
    ]
    if wrong.at:
        violation = {"field": wrong.at, "description": wrong.message}
        details.append({"@type": BAD_REQUEST, "fieldViolations": [violation]})
    return details


def spell_error(wrong: AgentError) -> dict[str, Any]:
    """The error object of JSON-RPC, since 0.2."""
    return {"code": wrong.row.code, "message": wrong.message, "data": details_of(wrong)}


def spell_elder_error(wrong: AgentError) -> dict[str, Any]:
    """The error object of JSON-RPC in 0.1."""
    return {**spell_error(wrong), "code": wrong.row.elder_code(wrong.nuance)}


def read_error(error_object: Any) -> AgentError:
    """What a peer's error object means: by its reason, else by its code."""
    return _read(error_object, row_of_code)


def read_elder_error(error_object: Any) -> AgentError:
    """The same of a peer that speaks 0.1."""
    return _read(error_object, row_of_elder_code)


def _read(error_object: Any, row_of: Callable[[int], ErrorRow | None]) -> AgentError:
    if not isinstance(error_object, dict):
        return error("InvalidAgentResponse", "The peer's error is not an object.")
    row = None
    metadata: dict[str, str] = {}
    at = ""
    found = error_object.get("data")
    # 1.0.0's example shows an object, the text says array.
    for detail in found if isinstance(found, list) else [found]:
        if not isinstance(detail, dict):
            continue
        reason = detail.get("reason")
        if row is None and isinstance(reason, str) and detail.get("@type", ERROR_REASON) == ERROR_REASON:
            row = row_of_reason(reason)
            metadata = _texts(detail.get("metadata"))
        at = at or _first_violation(detail)
    code = error_object.get("code")
    if row is None and isinstance(code, int):
        row = row_of(code)
    message = error_object.get("message")
    if row is None:
        row = ERRORS["Internal"]
        metadata.setdefault("code", str(code) if isinstance(code, int | str) else "")
    return AgentError(row, message if isinstance(message, str) else "", at=at, metadata=metadata)


def _texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _first_violation(detail: dict[str, Any]) -> str:
    match detail.get("fieldViolations"):
        case [{"field": str(place)}, *_]:
            return place
        case _:
            return ""
