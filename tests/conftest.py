"""How tests run here: an async test gets a loop of its own and a bounded time, fault campaigns a scale."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

# Assertions stand there too, so what they compared is told.
pytest.register_assert_rewrite("tests.peers.cases")

SCALE = int(os.environ.get("DRAGOMAN_TEST_SCALE", "1"))
SECONDS = 60.0


@pytest.fixture(scope="session")
def scale() -> int:
    """How many times as often a campaign repeats itself: 1, and 10 in `make chaos`."""
    return SCALE


def bounded(test: Callable[..., Coroutine[Any, Any, None]], seconds: float) -> Callable[..., None]:
    """The test as a plain function that fails when it takes longer."""

    async def within(*arguments: Any, **named: Any) -> None:
        try:
            async with asyncio.timeout(seconds) as bound:
                await test(*arguments, **named)
        except TimeoutError:
            if bound.expired():
                pytest.fail(f"still running after {seconds:g} s")
            raise

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(within(*arguments, **named))

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Give async tests their loop. Under Hypothesis each example has one of its own."""
    marker = pyfuncitem.get_closest_marker("within")
    seconds = (marker.args[0] if marker else SECONDS) * SCALE
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = bounded(test, seconds)
    elif (given := getattr(test, "hypothesis", None)) and inspect.iscoroutinefunction(given.inner_test):
        given.inner_test = bounded(given.inner_test, seconds)
