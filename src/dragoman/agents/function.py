"""The driver for functions: async or plain, returning a value or yielding chunks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ..model.task import Message
from ..work.turn import Driver, Turn

__all__ = ["Function", "driver_of"]

Function = Callable[[Turn], Any]

_DONE = object()


def driver_of(take: Function) -> Driver:
    """The driver that runs a function as an agent."""
    called = take if inspect.isroutine(take) else type(take).__call__
    if inspect.isasyncgenfunction(called):
        return lambda turn: _chunks(turn, take(turn))
    if inspect.isgeneratorfunction(called):
        return lambda turn: _chunks(turn, _in_thread(take(turn)))
    if inspect.iscoroutinefunction(called):

        async def drive(turn: Turn) -> None:
            value = await take(turn)
            if value is not None:
                await _hand_over(turn, value)

        return drive

    async def drive_plain(turn: Turn) -> None:
        # Plain code may block; the node must not.
        value = await asyncio.to_thread(take, turn)
        if inspect.isawaitable(value):
            value = await value
        if value is not None:
            await _hand_over(turn, value)

    return drive_plain


async def _hand_over(turn: Turn, value: Any) -> None:
    """What a function returned: a message answers as one where that is allowed, all else is an artifact."""
    if isinstance(value, Message) or turn.answers == "message":
        await (turn.reply(value) if turn.answers != "task" else turn.complete(value))
    elif not turn.is_settled:
        await turn.artifact(value)


async def _chunks(turn: Turn, words: AsyncIterator[Any]) -> None:
    async with turn.stream() as answer:
        async for word in words:
            await answer.write(word)


async def _in_thread(words: Iterator[Any]) -> AsyncIterator[Any]:
    while True:
        word = await asyncio.to_thread(next, words, _DONE)
        if word is _DONE:
            return
        yield word
