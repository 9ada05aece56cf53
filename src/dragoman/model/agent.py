"""How an agent takes part: what the engine and the executor must know of it. The card is what others see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

__all__ = ["IDEMPOTENCY_URI", "Conduct", "Mode", "accepts"]

# Our extension: a message carries its idempotency key in its metadata under this name.
IDEMPOTENCY_URI = "urn:dragoman:idempotency"

Mode = str
Day = 24 * 3600.0


class Conduct(Struct, frozen=True):
    """An agent's own rules. Defaults are the node's; an agent may declare others."""

    name: str
    # Whether a send is answered by a task, by a bare message, or by whichever the agent chooses.
    answers: Literal["task", "message", "either"] = "task"
    first_word_seconds: float = 2.0
    streaming: bool = True
    input_modes: tuple[Mode, ...] = ("text/plain",)
    output_modes: tuple[Mode, ...] = ("text/plain",)
    extensions_required: tuple[str, ...] = ()
    # How long a question waits for its answer before the task fails.
    input_deadline_seconds: float = 7 * Day
    cancel_grace_seconds: float = 0.0
    # What becomes of a turn whose node died in the middle.
    on_interrupt: Literal["rerun", "fail"] = "rerun"
    attempts_max: int = 3
    turns_max: int = 1000


Conducts = Mapping[str, Conduct]


def accepts(modes: tuple[Mode, ...], mode: Mode) -> bool:
    """Whether a media type is among modes, which may be `*/*`, `text/*` or the bare word `text`."""
    kind = mode.partition(";")[0].strip().lower()
    group = kind.partition("/")[0]
    return any(
        allowed in ("*/*", "*", kind, group, f"{group}/*") for allowed in (mode.lower() for mode in modes)
    )
