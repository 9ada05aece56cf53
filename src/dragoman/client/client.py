"""The client people hold: words in, tasks out. Any Peer behind it, here or elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..core.tasks import ACTIVE, SETTLED
from ..model.card import Card
from ..model.errors import Fault, error
from ..model.events import Logged
from ..model.operations.a2a import Cancel, Configuration, Get, List, Page, Request, Send, Subscribe
from ..model.peer import ANYONE, Answer, Caller, Peer, SystemClock
from ..model.task import Message, Metadata, Part, Role, State, Task
from .errors import TimedOut

if TYPE_CHECKING:
    from ..wire.versions import Dialect
    from .remote import Remote

__all__ = ["Client"]

_new_id = SystemClock().new_id


class Client:
    """An agent to talk to, and a Peer itself.

    `target` is an address (of the agent, of its card, or its endpoint) or any Peer in this process.
    `trust` lists further origins that may get the message and the headers. `dialect` ("1.0", "0.3", …) and
    `binding` ("JSONRPC", "HTTP+JSON") insist on how to call it; left out, the card decides.
    """

    def __init__(
        self,
        target: str | Peer,
        *,
        headers: Mapping[str, str] | None = None,
        trust: Collection[str] = (),
        timeout_seconds: float | None = 300,
        connect_seconds: float = 10,
        resume_attempts: int = 8,
        body_bytes_max: int = 20 * 1024 * 1024,
        caller: Caller = ANYONE,
        dialect: str = "",
        binding: str = "",
    ) -> None:
        self.target = target
        self.timeout_seconds = timeout_seconds
        self.caller = caller
        self._remote: Remote | None = None
        self._options: dict[str, Any] = {
            "headers": headers,
            "trust": trust,
            "timeout_seconds": timeout_seconds,
            "connect_seconds": connect_seconds,
            "resume_attempts": resume_attempts,
            "body_bytes_max": body_bytes_max,
            "dialect": dialect,
            "binding": binding,
        }

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connections back. The client can be used again after it."""
        if self._remote is not None:
            remote, self._remote = self._remote, None
            await remote.aclose()

    @property
    def faults(self) -> Sequence[Fault]:
        """What the peer did against the protocol and was not believed, newest last."""
        return tuple(self._remote.faults) if self._remote is not None else ()

    @property
    def dialect(self) -> Dialect:
        """The version and binding in which the agent is spoken to, once its card is known."""
        assert self._remote is not None, "who has not been asked for a card has not been spoken to"
        return self._remote.dialect

    async def card(self) -> Card:
        """The agent's description of itself."""
        if isinstance(self.target, str):
            return await self._reached().card()
        if isinstance(self.target, Client):
            return await self.target.card()
        raise error("UnsupportedOperation", "a peer in this process has no card of its own to read")

    async def send(
        self,
        message: str | Message | Send,
        *,
        task_id: str = "",
        context_id: str = "",
        wait: bool = True,
        history_length: int | None = None,
        key: str | None = None,
        metadata: Metadata | None = None,
        accepted_output_modes: Collection[str] = (),
        timeout_seconds: float | None = None,
    ) -> Task | Message:
        """Say something; with `wait` until the agent has answered or asks back."""
        request = _request(
            message, task_id, context_id, wait, history_length, metadata, accepted_output_modes
        )
        caller = self._keyed(key)
        value = (await self._asked(caller, request, timeout_seconds)).value
        assert isinstance(value, (Task, Message)), "a message is answered by a task or a message"
        if (
            isinstance(value, Task)
            and value.state in ACTIVE - SETTLED
            and not request.configuration.return_immediately
        ):
            # The agent should have waited and did not: then we do.
            async for _ in self.subscribe(value.id):
                pass
            return await self.get(value.id, history_length=request.configuration.history_length)
        return value

    async def stream(
        self,
        message: str | Message | Send,
        *,
        task_id: str = "",
        context_id: str = "",
        wait: bool = True,
        history_length: int | None = None,
        key: str | None = None,
        metadata: Metadata | None = None,
        accepted_output_modes: Collection[str] = (),
        timeout_seconds: float | None = None,
    ) -> AsyncGenerator[Logged, None]:
        """Say something and hear what happens, as it does. `timeout_seconds` is the longest wait for news."""
        request = _request(
            message, task_id, context_id, wait, history_length, metadata, accepted_output_modes
        )
        async with aclosing(self._followed(self._keyed(key), request, None, timeout_seconds)) as batches:
            async for batch in batches:
                for logged in batch:
                    if logged.is_seen:
                        yield logged

    async def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """The task as it is now."""
        value = (await self._asked(self.caller, Get(task_id, history_length))).value
        assert isinstance(value, Task), "a task was asked for"
        return value

    async def list(
        self,
        *,
        context_id: str = "",
        state: State | None = None,
        since: str = "",
        page_size: int | None = None,
        page_token: str = "",
        history_length: int | None = None,
        include_artifacts: bool = False,
    ) -> Page:
        """One page of the caller's tasks, newest first; `page_token` is the last page's `next_page_token`."""
        request = List(context_id, state, since, page_size, page_token, history_length, include_artifacts)
        value = (await self._asked(self.caller, request)).value
        assert isinstance(value, Page), "a page was asked for"
        return value

    async def cancel(self, task_id: str, *, metadata: Metadata | None = None) -> Task:
        """Stop a task."""
        value = (await self._asked(self.caller, Cancel(task_id, metadata))).value
        assert isinstance(value, Task), "a task was asked for"
        return value

    async def subscribe(
        self, task_id: str, *, after: int | None = None, timeout_seconds: float | None = None
    ) -> AsyncGenerator[Logged, None]:
        """Hear what happens to a task: it as of `after` (else as of now), then each event that follows."""
        async with aclosing(
            self._followed(self.caller, Subscribe(task_id), after, timeout_seconds)
        ) as batches:
            async for batch in batches:
                for logged in batch:
                    if logged.is_seen:
                        yield logged

    # The seam.

    async def call(self, caller: Caller, request: Request) -> Answer:
        """Ask once."""
        return await self._asked(caller, request)

    def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        """Follow a task's log."""
        return self._followed(caller, request, after, None)

    async def _asked(self, caller: Caller, request: Request, timeout_seconds: float | None = None) -> Answer:
        target = self.target
        if isinstance(target, str):
            remote = self._remote or self._reached()
            return await remote.call(caller, request, timeout_seconds)
        seconds = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await target.call(caller, request)
        except TimeoutError:
            raise TimedOut(
                f"No answer in {seconds} s.",
                "Use wait=False or stream() for long work, or allow more with timeout_seconds.",
                elapsed_seconds=seconds,
            ) from None

    def _followed(
        self, caller: Caller, request: Request, after: int | None, timeout_seconds: float | None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        target = self.target
        if isinstance(target, str):
            return self._reached().watch(caller, request, after, timeout_seconds)
        return target.watch(caller, request, after)

    def _reached(self) -> Remote:
        if self._remote is None:
            # Here and not above: whoever only serves agents does not pay for an HTTP client.
            from .remote import Remote

            assert isinstance(self.target, str)
            self._remote = Remote(self.target, **self._options)
        return self._remote

    def _keyed(self, key: str | None) -> Caller:
        caller = self.caller
        if key is None and caller.key:
            return caller
        return replace(caller, key=_new_id() if key is None else key)


def _request(
    message: str | Message | Send,
    task_id: str,
    context_id: str,
    wait: bool,
    history_length: int | None,
    metadata: Metadata | None,
    accepted_output_modes: Collection[str],
) -> Send:
    if isinstance(message, Send):
        return message
    if isinstance(message, str):
        message = Message(_new_id(), Role.USER, (Part(text=message),), context_id, task_id)
    elif task_id or context_id:
        message = replace(
            message, task_id=task_id or message.task_id, context_id=context_id or message.context_id
        )
    return Send(message, Configuration(tuple(accepted_output_modes), history_length, not wait), metadata)
