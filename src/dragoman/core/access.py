"""What a credential allows: scopes, each an operation or a group of them, perhaps of one agent, or one of its skills.

`send`, `read`, `*`, `send:legal`, `send:legal/kyc_check`, `*:legal`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["GROUPS", "OPERATOR", "may", "scope_is_known"]

# The scope of whoever runs the node: its audit log and its metrics.
OPERATOR = "operator"
GROUPS = {
    "read": frozenset({"get", "list", "subscribe", "card"}),
    "write": frozenset({"send", "stream", "cancel"}),
    "*": frozenset({"get", "list", "subscribe", "card", "send", "stream", "cancel"}),
}
# Who may send may as well hear what comes of it at once.
_ALSO = {"send": frozenset({"send", "stream"}), "stream": frozenset({"send", "stream"})}
_SCOPE = re.compile(r"([a-z]+|\*)(?::([^/\s]+)(?:/(\S+))?)?")


def scope_is_known(scope: str) -> bool:
    """Whether a scope says something."""
    found = _SCOPE.fullmatch(scope)
    return found is not None and (found[1] in GROUPS or found[1] in GROUPS["*"] or scope == OPERATOR)


def may(scopes: Collection[str] | None, agent: str, operation: str, skill: str = "") -> bool:
    """Whether these scopes allow an operation; `None` allows everything. A scope of one skill wants it named."""
    if scopes is None:
        return True
    for scope in scopes:
        found = _SCOPE.fullmatch(scope)
        if found is None:
            continue
        what, of_agent, of_skill = found.groups()
        allowed = GROUPS.get(what) or _ALSO.get(what) or {what}
        if operation in allowed and of_agent in (None, agent) and of_skill in (None, skill):
            return True
    return False
