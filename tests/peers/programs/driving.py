"""What the Python client programs have in common: a question a line comes in, an answer a line goes out.

Each program gives its operations and how it names what its SDK raises. A stream is an async generator; it is
read to its end, or closed after so many items. What is right is not known here: the tests compare.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

Operations = dict[str, Callable[..., Any]]


async def drive(operations: Operations, named: Callable[[Exception], str]) -> None:
    """Answer questions, as many at once as come, until there are no more."""
    loop = asyncio.get_running_loop()
    doing: set[asyncio.Task[None]] = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(_answer(operations, named, json.loads(line)))
        doing.add(task)
        task.add_done_callback(doing.discard)


async def _answer(operations: Operations, named: Callable[[Exception], str], asked: Any) -> None:
    answer: dict[str, Any] = {"id": asked["id"]}
    given = asked["with"]
    try:
        if "leave_after" in given:
            answer["saw"] = []
            leave_after = given.pop("leave_after")
            await _hear(operations[asked["ask"]](**given), leave_after, answer["saw"])
        else:
            answer["saw"] = await operations[asked["ask"]](**given)
    except Exception as wrong:  # whatever it raises, its name is what is looked at
        answer |= {"wrong": named(wrong), "words": traceback.format_exc()}
    print(json.dumps(answer), flush=True)


async def _hear(items: AsyncIterator[Any], leave_after: int, saw: list[Any]) -> None:
    try:
        async for item in items:
            saw.append(item)
            if len(saw) == leave_after:
                return
    finally:
        await items.aclose()


def plainly(wrong: Exception) -> str:
    """The name of an error as most SDKs give it: that of its class."""
    return type(wrong).__name__.removesuffix("Error")


def spelled(value: Any) -> Any:
    """A value of pydantic's as the protocol spells it."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
