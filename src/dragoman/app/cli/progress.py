"""That something goes on: one line on a terminal's stderr while a command waits; nothing anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clean import clean
from .options import Shown
from .speech import is_terminal

if TYPE_CHECKING:
    from rich.status import Status

__all__ = ["Progress"]

WORDS_MAX = 60


class Progress:
    """`with Progress(how) as progress: progress.tell("working", "reading page 3")`"""

    def __init__(self, how: Shown) -> None:
        self._is_shown = is_terminal() and not (how.streams or how.quiet)
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        if self._is_shown:
            from rich.console import Console
            from rich.status import Status

            self._status = Status("…", console=Console(stderr=True))
            self._status.start()
        return self

    def tell(self, state: str, words: str) -> None:
        """The state, and what the agent said last."""
        if self._status is not None:
            from rich.text import Text

            said = " ".join(clean(words).split())
            said = said if len(said) <= WORDS_MAX else said[: WORDS_MAX - 1] + "…"
            self._status.update(Text(f"{state} {said}".rstrip()))

    def __exit__(self, *why: object) -> None:
        if self._status is not None:
            self._status.stop()
