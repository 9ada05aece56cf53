"""THE table of losses: what a version cannot say over a binding, and what becomes of it.

Whatever is not listed here survives the way through any version and back. The tests hold each codec to that,
the reference pages print it, and a gateway's card names what is lost through it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .versions import DIALECTS

__all__ = ["LOSSES", "READ_BESIDE", "Loss", "lost_in"]


class Loss(NamedTuple):
    """`side`: `asked` is what a request cannot ask for, `told` what no message, task or event can say."""

    name: str
    side: str
    words: str
    versions: tuple[str, ...]
    bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON")


_BEFORE_1_0: Final = ("0.3", "0.3/kind", "0.3/once", "0.2", "0.1")
_PROTO: Final = ("0.3", "0.3/once", "0.2")

LOSSES: Final = (
    Loss("tenant", "asked", "A request says no tenant.", _BEFORE_1_0),
    Loss("no history", "asked", "A history length of 0 is not said: all of it comes.", _BEFORE_1_0),
    Loss(
        "marks in metadata",
        "told",
        "A part's metadata may not hold `data_part_compat` or `urn:dragoman:part`: those say what had no place.",
        _BEFORE_1_0,
    ),
    Loss(
        "empty metadata",
        "told",
        "A part's metadata that is empty is not said where it would hold those.",
        _BEFORE_1_0,
    ),
    Loss("reference ids", "told", "The tasks that a message refers to are not said.", _PROTO, ("HTTP+JSON",)),
    Loss(
        "bytes like base64",
        "told",
        "Bytes that are the base64 of something are taken for that: peers write them so.",
        ("0.3/once",),
    ),
    Loss(
        "return immediately", "asked", "Whether a send waits is the agent's to decide; ours does.", ("0.1",)
    ),
    Loss("message ids", "told", "Messages have no ids: readers make one of what is said.", ("0.1",)),
    Loss(
        "places of messages",
        "told",
        "Messages do not say where they belong: it is the task they are in.",
        ("0.1",),
    ),
    Loss("reference ids", "told", "The tasks that a message refers to are not said.", ("0.1",)),
    Loss("extensions", "told", "Messages and artifacts do not say the extensions they use.", ("0.1",)),
    Loss(
        "artifact ids",
        "told",
        "Artifacts have a number each, and that is the id they are known by.",
        ("0.1",),
    ),
    Loss("rejected", "told", "A task that is rejected has failed.", ("0.1",)),
    Loss("auth-required", "told", "A task that waits for an authorization waits for input.", ("0.1",)),
    Loss(
        "messages as answers",
        "told",
        "An answer without a task is a task that is over, with these last words.",
        ("0.1",),
    ),
)


_EVER: Final = ("1.0", "0.3", "0.2", "0.1")
_ELDER: Final = ("0.3", "0.2", "0.1")
# What is read though it is not what is written, and in which versions.
READ_BESIDE: Final = (
    (
        "Names of members in snake_case as well as in camelCase; `null` for what is not there; unknown members.",
        _EVER,
    ),
    (
        "Numbers for enums, numbers in strings, base64 of either alphabet with and without its padding.",
        ("1.0",),
    ),
    ("Versions with patch digits (`1.0.1`); said in a header, in the address, or in both alike.", _EVER),
    (
        "`:subscribe` by GET as well as by POST; the tenant in the path, in the body, or in both alike.",
        _EVER[:3],
    ),
    (
        "`kind` or `type` as the mark of a part, or none: then its members tell. Files and JSON inside or flat.",
        _ELDER,
    ),
    ("`content` for `parts`, `request` for `message`, `update` for a status's message.", _ELDER),
    (
        "States and roles in any spelling: `input-required`, `inputRequired`, `TASK_STATE_INPUT_REQUIRED`, 6.",
        _ELDER,
    ),
    ("Results wrapped in their kind or bare; statuses that are a bare word.", _ELDER),
    ("Bytes that are in base64 twice.", ("0.3", "0.2")),
    ("Bodies in kind-JSON over REST, below `/v1` or not: answered in the same form.", ("0.3", "0.2")),
    ("Times without a zone: taken for UTC.", _ELDER),
    (
        "Events without `final`, artifacts without `index`, tasks whose events skip the first snapshot.",
        ("0.1",),
    ),
    (
        "Error objects with `data` as an object or an array; errors are told by their reason, then by their code.",
        _EVER,
    ),
)


def lost_in(binding: str, version: str) -> list[str]:
    """The names of what is lost over a binding in a version."""
    assert (binding, version) in DIALECTS, f"{version} is not spoken over {binding}"
    return [loss.name for loss in LOSSES if version in loss.versions and binding in loss.bindings]
