"""The thin client: text in, text out, over anybody's agent. For workflows, scripts, and who knows it from agent-relay.

Under it is `Client`, so it speaks every version, and a stream that breaks off is taken up again by the task's own
state: the work is never asked for a second time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .client import Client
from .core.tasks import ACTIVE, SETTLED
from .model.card import Card
from .model.events import ArtifactChanged, Event, Replied, StatusChanged, TaskCreated
from .model.operations.a2a import Get, Send
from .model.peer import ANYONE, Answer, SystemClock
from .model.task import Message, Part, Role, State, Task

__all__ = ["A2AAgentCard", "A2AAgentSkill", "A2AClient", "A2AFailed", "A2ATaskResult"]

TIMEOUT_MS = 60_000
_new_id = SystemClock().new_id
_STATUSES: dict[State, Literal["completed", "failed", "canceled"]] = {
    State.FAILED: "failed",
    State.REJECTED: "failed",
    State.CANCELED: "canceled",
}


class A2AAgentSkill(Struct, frozen=True):
    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()


class A2AAgentCard(Struct, frozen=True):
    """What the agent says of itself, whatever its version says it in."""

    name: str
    description: str
    url: str
    version: str
    capabilities: dict[str, bool]
    skills: tuple[A2AAgentSkill, ...]
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]


class A2ATaskResult(Struct, frozen=True):
    """How a task ended. `raw` is all of it, as the agent said it; `state` is one of the protocol's own nine words.

    An agent that asks back has not ended: `status` is "completed" then only for who does not look at `state`.
    """

    task_id: str
    status: Literal["completed", "failed", "canceled"]
    text: str
    raw: Any
    state: str = "completed"


class A2AFailed(Exception):
    """The agent said that it failed, or was canceled, while it streamed. `result` is what it said."""

    def __init__(self, result: A2ATaskResult) -> None:
        super().__init__(result.text or f"the task was {result.state}")
        self.result = result


class A2AClient:
    """One agent. `async with` closes its connections; without it, `aclose`."""

    def __init__(
        self,
        url: str,
        timeout_ms: float = TIMEOUT_MS,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.url = url
        self.timeout_ms = timeout_ms
        self._client = Client(url, headers=headers, timeout_seconds=timeout_ms / 1000, **options)
        # The task of the stream that is read, as soon as it is known: for who wants to cancel it.
        self.task_id = ""

    async def __aenter__(self) -> A2AClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def get_agent_card(self) -> A2AAgentCard:
        """The agent's capabilities."""
        return _card_of(await self._client.card())

    async def send_message(self, text: str, context_id: str | None = None) -> A2ATaskResult:
        """Say something and wait for the whole answer."""
        answer = await self._client.call(ANYONE, Send(_said(text, context_id)))
        value = answer.value
        if isinstance(value, Task) and value.state in ACTIVE - SETTLED:
            # The agent should have waited and did not: then we do.
            async with aclosing(self._client.subscribe(value.id)) as events:
                async for _ in events:
                    pass
            answer = await self._client.call(ANYONE, Get(value.id))
        return self._result(answer)

    async def stream_message(self, text: str, context_id: str | None = None) -> AsyncGenerator[str, None]:
        """Say something and hear the answer as it is written; in one piece from an agent that does not stream.

        Raises `A2AFailed` if the task fails or is canceled.
        """
        said = False
        last: Event | None = None
        async with aclosing(self._client.stream(Send(_said(text, context_id)))) as events:
            async for logged in events:
                last = logged.event
                if isinstance(last, TaskCreated):
                    self.task_id = last.task.id
                for chunk in _texts(last):
                    said = True
                    yield chunk
        end = _state_of(last)
        if end is not None and (end in _STATUSES or not said):
            result = self._result(await self._client.call(ANYONE, Get(self.task_id)))
            if end in _STATUSES:
                raise A2AFailed(result)
            if result.text:
                yield result.text

    async def cancel_task(self, task_id: str) -> None:
        """Stop a task."""
        await self._client.cancel(task_id)

    def _result(self, answer: Answer) -> A2ATaskResult:
        """A task or a bare message, as its text and how it ended."""
        value = answer.value
        raw = msgspec.json.decode(answer.data if answer.said is None else answer.said)
        if isinstance(value, Message):
            return A2ATaskResult("", "completed", value.text, raw)
        assert isinstance(value, Task), "only lists are answered by anything else"
        self.task_id = value.id
        status = _STATUSES.get(value.state, "completed")
        return A2ATaskResult(value.id, status, text_of(value), raw, value.state.word)


def text_of(task: Task) -> str:
    """The text of the first artifact's first part; where there is none all the text there is, or the last words."""
    first = task.artifacts[0].parts[:1] if task.artifacts else ()
    return first[0].text if first and first[0].text else task.text


def _said(text: str, context_id: str | None) -> Message:
    return Message(_new_id(), Role.USER, (Part(text=text),), context_id or "")


def _texts(event: Event) -> list[str]:
    """What an event adds to the answer."""
    match event:
        case ArtifactChanged():
            return [part.text for part in event.artifact.parts if part.text]
        case TaskCreated():
            return [part.text for artifact in event.task.artifacts for part in artifact.parts if part.text]
        case Replied():
            return [event.message.text] if event.message.text else []
        case _:
            return []


def _state_of(event: Event | None) -> State | None:
    match event:
        case StatusChanged():
            return event.status.state
        case TaskCreated():
            return event.task.state
        case _:
            return None


def _card_of(card: Card) -> A2AAgentCard:
    abilities = card.capabilities
    return A2AAgentCard(
        card.name,
        card.description,
        card.supported_interfaces[0].url if card.supported_interfaces else "",
        card.version,
        {"streaming": abilities.streaming is True, "pushNotifications": abilities.push_notifications is True},
        tuple(A2AAgentSkill(one.id, one.name, one.description, one.tags) for one in card.skills),
        card.default_input_modes,
        card.default_output_modes,
    )
