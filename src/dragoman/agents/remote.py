"""The driver for agents elsewhere: a turn here that follows a task there, and tells it as its own.

So a remote agent is one of ours: its tasks have a log, cursors, keys and an end, whatever it has itself. The task
there is remembered before anything of it is told; a turn run again takes it up where it is and asks for no work
a second time. A question there is a question here; a task that is canceled here is canceled there until it is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import assert_never

from ..core.tasks import INTERRUPTED, TERMINAL
from ..model.errors import AgentError
from ..model.events import (
    ArtifactChanged,
    CancelAsked,
    Event,
    Logged,
    MessageAdded,
    Replied,
    StatusChanged,
    TaskCreated,
)
from ..model.operations.a2a import Cancel, Get, Send, Subscribe
from ..model.peer import Caller, Peer
from ..model.task import Message, Part, State, Status, Task, replace
from ..work.turn import Turn

__all__ = ["Remote"]

log = logging.getLogger("dragoman.agents")

_OVER = ("TaskNotCancelable", "TaskNotFound")


class Remote:
    """`Agent("legal", Remote(Client("https://legal.example")))`: drives its turns, and stops them.

    `extensions` are those that the agent there requires; callers here are asked for them too.
    """

    def __init__(self, peer: Peer, extensions: tuple[str, ...] = ()) -> None:
        self._peer = peer
        self._caller = Caller(extensions=extensions)

    async def __call__(self, turn: Turn) -> None:
        """One turn: until the task there is over, through all its questions."""
        try:
            await _Following(self._peer, replace(self._caller, trace=turn.trace), turn).to_the_end()
        except AgentError as refused:
            await turn.fail(
                f"The agent behind this one refused: {refused.message}", {"reason": refused.row.reason}
            )

    async def stop(self, task_id: str) -> None:
        """Cancel the task there. That it is over already is as good."""
        try:
            await self._peer.call(self._caller, Cancel(task_id))
        except AgentError as refused:
            if refused.name not in _OVER:
                raise


class _Following:
    """A task there, as far as it was followed here."""

    def __init__(self, peer: Peer, caller: Caller, turn: Turn) -> None:
        self._peer = peer
        self._caller = caller
        self._turn = turn
        self._task_id = turn.driven
        self._said = turn.message
        # The artifacts as this run has told them: what a later look shows may be more, or the same again.
        self._given: dict[str, tuple[Part, ...]] = {}

    async def to_the_end(self) -> None:
        self._said = self._turn.take_up()
        runs = await self._taken_up() if self._task_id else self._sent()
        while runs is not None:
            runs = await self._told(runs)

    def _sent(self) -> AsyncGenerator[Sequence[Logged], None]:
        """Say what the caller said. The key makes it one message, even if this runs again."""
        turn = self._turn
        message = replace(
            self._said, task_id=self._task_id, context_id=turn.context_id, metadata=self._said.metadata
        )
        key = f"{turn.task_id}:{message.message_id}"
        return self._peer.watch(replace(self._caller, key=key), Send(message))

    async def _taken_up(self) -> AsyncGenerator[Sequence[Logged], None] | None:
        """Go on with a task that an earlier run began."""
        value = (await self._peer.call(self._caller, Get(self._task_id))).value
        assert isinstance(value, Task), "a task was asked for"
        if value.state in TERMINAL:
            await self._shown(value)
            await self._moved(value.status)
            return None
        if value.state in INTERRUPTED and self._waits_for_this(value):
            return self._sent()
        return self._peer.watch(self._caller, Subscribe(self._task_id))

    def _waits_for_this(self, task: Task) -> bool:
        """Whether the question there is the one that was answered here last, and the answer has not come to it."""
        if any(message.message_id == self._said.message_id for message in task.history):
            return False
        asked = [message.text for message in self._turn.history if message.text]
        question = task.status.message
        return question is None or question.text in asked

    async def _told(
        self, runs: AsyncGenerator[Sequence[Logged], None]
    ) -> AsyncGenerator[Sequence[Logged], None] | None:
        """Tell what happens there, as it does; the stream that follows, if there is more to come."""
        async with aclosing(runs):
            async for run in runs:
                for logged in run:
                    if (status := await self._heard(logged.event)) is not None:
                        return self._sent() if await self._moved(status) else None
        return self._peer.watch(self._caller, Subscribe(self._task_id)) if self._task_id else None

    async def _heard(self, event: Event) -> Status | None:
        """Tell one thing; its status if that ends the stream."""
        turn = self._turn
        match event:
            case TaskCreated():
                if not self._task_id:
                    self._task_id = event.task.id
                    await turn.drives(event.task.id)
                await self._shown(event.task)
                return _end_of(event.task.status)
            case StatusChanged():
                if (end := _end_of(event.status)) is not None:
                    return end
                if event.status.message is not None or event.status.state is not turn.state:
                    await turn.say(event.status.message, event.status_update.metadata)
            case ArtifactChanged():
                await self._given_to(event)
            case Replied():
                await self._replied(event.message)
            case MessageAdded() | CancelAsked():
                pass
            case _:
                assert_never(event)
        return None

    async def _given_to(self, event: ArtifactChanged) -> None:
        update, id = event.artifact_update, event.artifact.artifact_id
        before = self._given.get(id, ()) if update.append else ()
        self._given[id] = (*before, *update.artifact.parts)
        await self._turn.give(update.artifact, update.append, update.last_chunk)

    async def _shown(self, task: Task) -> None:
        """What a task holds beyond what this run has told of it."""
        for artifact in task.artifacts:
            if self._given.get(artifact.artifact_id) != artifact.parts:
                self._given[artifact.artifact_id] = artifact.parts
                await self._turn.give(artifact)

    async def _moved(self, status: Status) -> bool:
        """Come to the same end, or ask the same question; whether there is an answer to say there."""
        turn, words = self._turn, status.message
        match status.state:
            case State.COMPLETED:
                await turn.complete(words)
            case State.REJECTED:
                await turn.reject(words)
            case State.CANCELED:
                await turn.cancel(words or "The agent behind this one canceled it.")
            case State.INPUT_REQUIRED | State.AUTH_REQUIRED:
                self._said = await turn.ask(words or "?", auth=status.state is State.AUTH_REQUIRED)
                return True
            case _:
                await turn.fail(words)
        return False

    async def _replied(self, message: Message) -> None:
        if self._turn.answers == "task":
            await self._turn.artifact(message)
        else:
            await self._turn.reply(message)


def _end_of(status: Status) -> Status | None:
    """The status, if nothing comes after it without somebody's doing."""
    return status if status.state in TERMINAL or status.state in INTERRUPTED else None
