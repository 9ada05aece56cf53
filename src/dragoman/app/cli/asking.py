"""The conversations with an agent: send, get, list, cancel, subscribe, and its card."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from ...client.client import Client
from ...client.errors import Refused, TimedOut
from ...core.tasks import INTERRUPTED
from ...model.card import Card
from ...model.errors import Fault
from ...model.events import Logged, TaskCreated
from ...model.operations.a2a import List
from ...model.peer import SystemClock
from ...model.task import Message, Metadata, Part, Role, State, Task
from .failures import Failure
from .options import Shown
from .progress import Progress
from .reaching import reach
from .seen import Seen
from .showing import Text, exit_of, is_at_rest
from .speech import command, note, say_json

__all__ = ["cancel", "card", "get", "page", "send", "subscribe"]

POLLS_GROW, POLL_GROWTH_MAX = 1.25, 5.0


@asynccontextmanager
async def _bounded(seen: Seen) -> AsyncGenerator[Client, None]:
    """A client for as long as was given; who runs out of time is told what was last seen."""
    seconds = seen.way.timeout
    began = asyncio.get_running_loop().time()
    async with reach(seen.way) as client:
        try:
            async with asyncio.timeout(seconds):
                await _card_of(client)
                yield client
        except (TimeoutError, TimedOut) as late:
            message = str(late.message) if isinstance(late, TimedOut) else ""
            elapsed = asyncio.get_running_loop().time() - began
            message = message or f"not settled after {elapsed:.1f} s; {seen.last()}"
            hint = (
                seen.where()
                if seen.task_id
                else f"Allow more with --timeout, or look: {command('task', 'list')}"
            )
            raise Failure("A2ACLI_ERR_TIMEOUT", message, hint) from None
        except Refused as closed:
            if "Authorization" in seen.way.headers or closed.seen.get("status") != 401:
                raise
            hint = "Give the credential with --bearer TOKEN or --header NAME:VALUE."
            raise Failure("A2ACLI_ERR_CREDENTIALS_MISSING", closed.message, hint) from None
        finally:
            if seen.way.debug:
                for fault in client.faults:
                    note(f"debug: {fault}")


async def _card_of(client: Client) -> Card:
    try:
        return await client.card()
    except Fault as wrong:
        raise Failure("A2ACLI_ERR_CARD_INVALID", str(wrong)) from None


async def send(
    seen: Seen,
    how: Shown,
    parts: tuple[Part, ...],
    *,
    task_id: str = "",
    context_id: str = "",
    message_id: str = "",
    key: str | None = None,
    metadata: Metadata | None = None,
    history: int | None = None,
    waits: bool = True,
) -> int:
    """Say something, and tell what came of it."""
    message = Message(message_id or SystemClock().new_id(), Role.USER, parts, context_id, task_id)
    async with _bounded(seen) as client:
        if not waits:
            value = await client.send(message, wait=False, history_length=history, key=key, metadata=metadata)
            return _told(seen, how, value, wraps=True)
        events = client.stream(message, key=key, metadata=metadata, history_length=history)
        await _follow(seen, how, events, is_reply=bool(task_id))
        if how.streams:
            return _restated(seen, how)
        if seen.reply is not None:
            return _told(seen, how, seen.reply, wraps=True)
        task = await client.get(seen.task_id, history_length=history)
        return _told(seen, how, task, wraps=True)


async def subscribe(seen: Seen, how: Shown, after: int | None) -> int:
    """Follow a task until it needs nobody or us."""
    async with _bounded(seen) as client:
        task = await client.get(seen.task_id) if after is None else None
        if task is not None and is_at_rest(task.state):
            # Nothing will come: the task itself is the whole story.
            return _told(seen, how, task, wraps=how.streams)
        await _follow(seen, how, client.subscribe(seen.task_id, after=after))
        if how.streams:
            return _restated(seen, how)
        return _told(seen, how, await client.get(seen.task_id))


async def get(seen: Seen, how: Shown, history: int | None, poll_seconds: float | None) -> int:
    """Read a task; with an interval, until it needs nobody or us."""
    async with _bounded(seen) as client:
        with Progress(how) as progress:
            task = await client.get(seen.task_id, history_length=history)
            longest = (poll_seconds or 0) * POLL_GROWTH_MAX
            while poll_seconds is not None and not is_at_rest(task.state):
                seen.state, seen.context_id = task.state, task.context_id
                progress.tell(task.state.word, task.status.message.text if task.status.message else "")
                await asyncio.sleep(poll_seconds)
                poll_seconds = min(poll_seconds * POLLS_GROW, longest)
                task = await client.get(seen.task_id, history_length=history)
        return _told(seen, how, task, with_history=history is not None)


async def cancel(seen: Seen, how: Shown) -> int:
    async with _bounded(seen) as client:
        return _told(seen, how, await client.cancel(seen.task_id))


async def page(seen: Seen, how: Shown, asked: List) -> int:
    """One page of tasks."""
    async with _bounded(seen) as client:
        found = await client.list(
            context_id=asked.context_id,
            state=asked.status,
            since=asked.status_timestamp_after,
            page_size=asked.page_size,
            page_token=asked.page_token,
            history_length=asked.history_length,
            include_artifacts=asked.include_artifacts,
        )
        if not how.as_json:
            Text(how).page(found)
        elif how.streams:
            for task in found.tasks:
                say_json(task)
        else:
            say_json(found)
        return 0


async def card(seen: Seen, how: Shown) -> int:
    async with _bounded(seen) as client:
        found = await _card_of(client)
        if how.as_json:
            say_json(found)
        else:
            Text(how).card(found)
        return 0


async def _follow(
    seen: Seen, how: Shown, events: AsyncGenerator[Logged, None], is_reply: bool = False
) -> None:
    """Take in a stream, telling of it when that was asked for."""
    text = Text(how)
    try:
        async with aclosing(events) as stream:
            with Progress(how) as progress:
                async for logged in stream:
                    asks = seen.note(logged)
                    if not how.streams:
                        progress.tell(seen.state.word if seen.state else "", seen.words)
                    elif how.as_json:
                        say_json(logged.data)
                    else:
                        text.event(logged.event)
                    # The snapshot that opens the stream of an answer may still show the question.
                    if asks and not (is_reply and isinstance(logged.event, TaskCreated)):
                        break
    finally:
        text.close()


def _told(
    seen: Seen, how: Shown, value: Task | Message, *, wraps: bool = False, with_history: bool = False
) -> int:
    """The result of a command about one task, and what can be done next."""
    if isinstance(value, Task):
        seen.task_id, seen.context_id, seen.state = value.id, value.context_id, value.state
    if how.as_json:
        kind = "task" if isinstance(value, Task) else "message"
        say_json({kind: value} if wraps else value)
    else:
        text = Text(how)
        if isinstance(value, Message):
            text.message(value)
            text.field("Context", value.context_id)
        else:
            if with_history:
                text.history(value)
            text.task(value)
            _resume(seen, text)
    _warn(seen, how)
    return exit_of(seen.state, how)


def _restated(seen: Seen, how: Shown) -> int:
    """After a stream in text: whoever saw only the end knows the task."""
    if not how.as_json and seen.task_id:
        text = Text(how)
        text.field("Task", seen.task_id)
        text.field("Context", seen.context_id)
        text.field("State", seen.state.word if seen.state else "unknown")
        _resume(seen, text)
    _warn(seen, how)
    return exit_of(seen.state, how)


def _resume(seen: Seen, text: Text) -> None:
    if seen.state in INTERRUPTED:
        text.field("Resume", command("send", *seen.way.words, "--task-id", seen.task_id, "your answer"))


def _warn(seen: Seen, how: Shown) -> None:
    """A task that went otherwise than well is worth a word beside the result."""
    if seen.state in (State.FAILED, State.REJECTED, State.CANCELED) and not how.quiet:
        note(f"The task was {seen.state.word}." if seen.state is not State.FAILED else "The task failed.")
    elif seen.state is not None and not is_at_rest(seen.state) and seen.task_id:
        note(f"Follow it: {seen.where()}")
