"""THE table of losses: what a version cannot say over a binding, and what becomes of it.

Whatever is not listed here survives the way through any version and back. The tests hold each codec to that,
the reference pages print it, and a gateway's card names what is lost through it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .versions import DIALECTS

__all__ = ["LOSSES", "Loss", "lost_in"]


class Loss(NamedTuple):
    """`side`: `asked` is what a request cannot say, `told` what an answer cannot."""

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


def lost_in(binding: str, version: str) -> list[str]:
    """The names of what is lost over a binding in a version."""
    assert (binding, version) in DIALECTS, f"{version} is not spoken over {binding}"
    return [loss.name for loss in LOSSES if version in loss.versions and binding in loss.bindings]
