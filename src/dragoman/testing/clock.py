"""Time in a test: a clock that only its owner turns, and an event loop that leaps from timer to timer.

`run` gives both to a coroutine: a wait of a week takes no time, and the same program takes the same steps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

__all__ = ["Stuck", "TurnedClock", "TurnedLoop", "run"]

# 2026-01-15, in the middle of a working day.
START = 1_768_478_400.0
# How long a thread may keep time from going on.
THREAD_SECONDS = 30.0

T = TypeVar("T")


class Stuck(Exception):
    """Everybody waits and no timer is set: the program would wait for ever."""


class TurnedClock:
    """A `Clock` that stands still until it is turned. Its ids count up."""

    def __init__(self, start: float = START) -> None:
        self.start = start
        # Seconds since the clock was made: small, so that adding to it loses nothing.
        self.elapsed = 0.0
        self._last_id = 0

    def now(self) -> float:
        return self.start + self.elapsed

    def new_id(self) -> str:
        self._last_id += 1
        return f"00000000-0000-7000-8000-{self._last_id:012x}"

    def turn(self, seconds: float) -> None:
        """Let time pass. Timers of a `TurnedLoop` that became due fire when it is next its turn."""
        assert seconds >= 0, "time does not go back"
        self.elapsed += seconds


class _Leap(selectors.DefaultSelector):
    """Instead of waiting for a timer, turns the clock to it. While a thread works, time stands."""

    def __init__(self, clock: TurnedClock) -> None:
        super().__init__()
        self.clock = clock
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.threads:
            return super().select(0 if timeout == 0 else THREAD_SECONDS)
        if timeout is None:
            raise Stuck("everybody waits and no timer is set")
        if timeout > 0:
            self.clock.elapsed += timeout
        return []


class TurnedLoop(asyncio.SelectorEventLoop):
    """An event loop without sockets whose time is a `TurnedClock`'s."""

    def __init__(self, clock: TurnedClock) -> None:
        self.clock = clock
        self._leap = _Leap(clock)
        super().__init__(self._leap)

    def time(self) -> float:
        return self.clock.elapsed

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        self._leap.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._returned)
        return future

    def _returned(self, future: asyncio.Future[Any]) -> None:
        self._leap.threads -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        # A real thread joins the pool's and calls back; meanwhile time must not leap.
        self._leap.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._leap.threads -= 1


def run(
    main: Coroutine[Any, Any, T], clock: TurnedClock | None = None, *, seconds_max: float = 100_000.0
) -> T:
    """Run a coroutine on turned time. It fails with `TimeoutError` when it takes longer by that time."""
    turned = clock or TurnedClock()

    async def bounded() -> T:
        async with asyncio.timeout(seconds_max):
            return await main

    with asyncio.Runner(loop_factory=lambda: TurnedLoop(turned)) as runner:
        return runner.run(bounded())
