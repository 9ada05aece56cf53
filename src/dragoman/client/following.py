"""How a watch of a remote task outlives its connections; and how it never asks twice for work."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, MutableMapping, MutableSequence
from typing import Protocol

from ..model.errors import AgentError, Fault
from ..model.events import ArtifactChanged, Event, Logged, TaskCreated, encode
from ..model.operations.a2a import Get, Request, Send, Subscribe
from ..model.peer import Answer, Caller
from ..model.task import Part, State, Status, Task
from ..wire.versions import Dialect
from .errors import ClientError, Cut, TimedOut, Unreachable, Unreadable
from .judge import Judge

__all__ = ["Binding", "Connection", "Following", "not_safe", "pause"]

# A peer that sends keep-alives and then nothing at all for so long is gone.
SILENCE_SECONDS_MAX = 60.0
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 5.0
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.5, 5.0
# A longer id is not kept: it would not fit into a header.
ID_CHARS_MAX = 256


class Connection(Protocol):
    """One stream, as long as it lasts."""

    @property
    def beats(self) -> int: ...
    @property
    def retry_ms(self) -> int | None: ...
    async def read(self) -> list[tuple[str, Event | Exception]] | None: ...
    async def finish(self) -> None: ...
    def close(self) -> None: ...


class Binding(Protocol):
    """How requests travel to one interface."""

    dialect: Dialect

    async def call(self, caller: Caller, request: Request) -> Answer: ...
    async def open(self, caller: Caller, request: Request, last_id: str = "") -> Connection: ...


class Following:
    """One watch, over as many connections as it takes.

    `has_cursor`: the agent declared that its ids are places in the log, so what they cover is not
    said again. `may_repeat`: asking a second time cannot make the agent work a second time.
    """

    def __init__(
        self,
        binding: Binding,
        caller: Caller,
        request: Request,
        after: int | None,
        *,
        timeout_seconds: float | None,
        attempts: int,
        has_cursor: bool,
        may_repeat: bool,
        known: MutableMapping[str, State],
        faults: MutableSequence[Fault],
    ) -> None:
        self._binding, self._caller, self._request = binding, caller, request
        self._timeout, self._attempts = timeout_seconds, attempts
        self._has_cursor, self._may_repeat = has_cursor, may_repeat
        self._known, self._faults = known, faults
        task_id = request.message.task_id if isinstance(request, Send) else getattr(request, "id", "")
        dialect = binding.dialect
        self._judge = Judge(task_id, begins_with_task=dialect.begins_with_task, skips=dialect.skips)
        # The artifacts as they were given, where the end says them once more.
        self._given: dict[str, list[Part]] | None = {} if dialect.repeats_artifacts else None
        self._last_id = "" if after is None else str(after)
        self._seq = 0
        self._tries = 0
        self._polls = 0
        self.can_subscribe = True
        self._must_look = False
        self._resumed = self._expects_task = self._may_double = False
        self._snapshot: tuple[Status, int] | None = None
        self._retry_ms = 0
        self._broken: Exception | None = None
        self._now = asyncio.get_running_loop().time
        self._began = self._news = self._heard = self._now()

    async def events(self) -> AsyncGenerator[list[Logged], None]:
        """Runs of events until the task is over, or settled and the peer has closed."""
        while True:
            looked = self._must_look or not self.can_subscribe
            try:
                if looked:
                    if batch := await self._look():
                        yield batch
                    if self._judge.is_settled:
                        return
                if self.can_subscribe and (stream := await self._open()) is not None:
                    try:
                        async for batch in self._connected(stream):
                            yield batch
                    finally:
                        stream.close()
                    if self._judge.is_settled:
                        return
                    raise Cut("The agent closed the stream while the task was not settled.")
            except (Cut, Unreachable) as problem:
                if self._judge.is_settled and isinstance(self._request, Send):
                    return
                await self._recover(problem)
            else:
                if looked:
                    await self._wait_for_poll()

    async def _connected(self, stream: Connection) -> AsyncGenerator[list[Logged], None]:
        """What one connection brings."""
        looked = False
        while (items := await self._read(stream)) is not None:
            batch = self._judged(items)
            if self._judge.is_doubtful and (self._judge.is_over or not looked):
                looked = True
                batch = await self._checked(batch)
            if batch:
                yield batch
            if self._judge.is_over:
                await self._finished(stream)
                return
            if self._broken is not None:
                raise self._broken
            if self._is_answered:
                return
        if self._judge.is_settled and self._judge.is_doubtful:
            yield await self._look()

    @property
    def _is_answered(self) -> bool:
        """A message's stream ends when the agent asks back; the subscription that carries it on does not."""
        is_carried_on = isinstance(self._request, Send) and self._resumed
        return is_carried_on and self._judge.state is State.INPUT_REQUIRED

    async def _open(self) -> Connection | None:
        """A connection for what is still to come; None when the peer has no stream for it."""
        follows = self._judge.state is not None
        request = Subscribe(self._judge.task_id) if follows else self._request
        self._resumed = follows
        self._expects_task = follows and not self._has_cursor
        self._may_double = isinstance(request, Subscribe) and not self._has_cursor
        self._broken = None
        try:
            async with asyncio.timeout_at(self._deadline()):
                stream = await self._binding.open(self._caller, request, self._last_id)
        except TimeoutError:
            raise self._timed_out(False) from None
        except AgentError as problem:
            # A task that is over cannot be subscribed to; some peers cannot subscribe to any.
            if not follows or problem.name not in ("UnsupportedOperation", "MethodNotFound"):
                raise
            self.can_subscribe = False
            return None
        self._heard = self._now()
        return stream

    async def _read(self, stream: Connection) -> list[tuple[str, Event | Exception]] | None:
        deadline = self._deadline()
        silence = self._heard + SILENCE_SECONDS_MAX if stream.beats else None
        until = min((at for at in (deadline, silence) if at is not None), default=None)
        try:
            async with asyncio.timeout_at(until):
                items = await stream.read()
        except TimeoutError:
            if deadline is not None and self._now() >= deadline:
                raise self._timed_out(True) from None
            raise Cut(f"Nothing came for {SILENCE_SECONDS_MAX:.0f} s, not even a keep-alive.") from None
        self._heard = self._now()
        if stream.retry_ms is not None:
            self._retry_ms = stream.retry_ms
        return items

    def _judged(self, items: list[tuple[str, Event | Exception]]) -> list[Logged]:
        """What of it really happened, in order; stops at what breaks the stream."""
        batch: list[Logged] = []
        judge = self._judge
        for place, event in items:
            if isinstance(event, Exception):
                if isinstance(event, Fault):
                    self._faults.append(event)
                if isinstance(event, Unreadable):
                    judge.is_doubtful = True
                    continue
                retried = isinstance(event, AgentError) and event.row.retryable and judge.state is not None
                self._broken = Cut(f"The agent broke off: {event}.") if retried else event
                break
            seq = int(place) if place.isascii() and place.isdigit() and len(place) < 19 else 0
            if self._has_cursor and 0 < seq <= self._seq:
                if not (isinstance(event, TaskCreated) and seq == self._seq):
                    self._faults.append(Fault(f"the peer sent event {seq} after event {self._seq}", seq=seq))
                continue
            if self._expects_task and not isinstance(event, TaskCreated):
                # What happened while we were away may be missing.
                judge.is_doubtful = True
                self._faults.append(
                    Fault("the peer resumed without the task as it is", task_id=judge.task_id)
                )
            self._expects_task = False
            happened = judge.hear(event)
            if judge.faults:
                self._faults.extend(judge.faults)
                judge.faults.clear()
            if self._given is not None:
                happened = [one for one in happened if not self._is_repeated(self._given, one)]
            if not happened:
                continue
            if self._may_double and isinstance(event, ArtifactChanged) and event.artifact_update.append:
                # Without cursors nobody can tell whether the task it began with already held this chunk.
                judge.is_doubtful = True
            if place and len(place) <= ID_CHARS_MAX:
                self._last_id, self._seq = place, seq
            self._note(happened[-1])
            # What was only implied has no place in the peer's log.
            batch += [Logged(seq if one is happened[-1] else 0, encode(one), one) for one in happened]
            if judge.is_over:
                break
        return batch

    @staticmethod
    def _is_repeated(given: dict[str, list[Part]], event: Event) -> bool:
        """Whether an artifact is said again that was said already, chunk by chunk."""
        if isinstance(event, TaskCreated):
            given.clear()
            given.update({one.artifact_id: list(one.parts) for one in event.task.artifacts})
        if not isinstance(event, ArtifactChanged):
            return False
        parts = list(event.artifact.parts)
        before = given.get(event.artifact.artifact_id)
        if event.artifact_update.append and before is not None:
            before.extend(parts)
            return False
        given[event.artifact.artifact_id] = parts
        return before == parts

    def _note(self, event: Event) -> None:
        """Remember the state; and whether this was news, or only a snapshot of what was known."""
        judge = self._judge
        if judge.state is not None:
            self._known[judge.task_id] = judge.state
        if isinstance(event, TaskCreated):
            mark = _mark(event.task)
            if mark == self._snapshot:
                return
            self._snapshot = mark
        self._news = self._now()
        self._tries = self._polls = 0

    async def _checked(self, batch: list[Logged]) -> list[Logged]:
        """After something illegal: what the peer says when it is asked.

        While the task runs only its end is taken from that: a snapshot in the middle of a stream
        may hold chunks that the stream is yet to bring.
        """
        try:
            task = await self._got()
        except (ClientError, AgentError, Fault):
            return batch
        if task is None or task.id != self._judge.task_id:
            return batch
        probe = Judge(task.id)
        probe.look(task)
        if not probe.is_over:
            return batch
        return batch[:-1] + self._looked(task) if self._judge.is_over else batch + self._looked(task)

    async def _look(self) -> list[Logged]:
        """The task as it is now, as an event that replaces what was folded before."""
        self._must_look = False
        task = await self._got()
        if task is None or (self._snapshot == _mark(task) and not self.can_subscribe):
            return []
        return self._looked(task)

    def _looked(self, task: Task) -> list[Logged]:
        happened = self._judge.look(task)
        self._faults.extend(self._judge.faults)
        self._judge.faults.clear()
        self._judge.is_doubtful = False
        if happened:
            self._note(happened[-1])
        return [Logged(0, encode(event), event) for event in happened]

    async def _got(self) -> Task | None:
        task_id = self._judge.task_id
        if not task_id:
            return None
        try:
            async with asyncio.timeout_at(self._deadline()):
                answer = await self._binding.call(self._caller, Get(task_id))
        except TimeoutError:
            raise self._timed_out(False) from None
        return answer.value if isinstance(answer.value, Task) else None

    async def _finished(self, stream: Connection) -> None:
        """Give the peer a moment to end the stream, so that the connection lives on."""
        try:
            async with asyncio.timeout(0.05):
                await stream.finish()
        except (TimeoutError, Cut):
            pass

    async def _recover(self, problem: Cut | Unreachable) -> None:
        """Wait and go on, or say why not."""
        nothing_came = self._judge.state is None
        if nothing_came and self._tries == 0 and isinstance(problem, Unreachable):
            raise problem
        if nothing_came and not self._may_repeat:
            raise not_safe(problem, self._request) from problem
        self._tries += 1
        if self._tries > self._attempts:
            raise self._given_up(problem) from problem
        self._must_look = not nothing_came and not self._last_id
        await pause(self._tries, self._retry_ms)

    async def _wait_for_poll(self) -> None:
        deadline = self._deadline()
        if deadline is not None and self._now() >= deadline:
            raise self._timed_out(False)
        await asyncio.sleep(min(POLL_SECONDS_MAX, POLL_SECONDS_MIN * 2 ** min(self._polls, 8)))
        self._polls += 1

    def _deadline(self) -> float | None:
        """Progress resets the timer; a task that waits for somebody has none."""
        if self._timeout is None or self._judge.is_settled:
            return None
        return self._news + self._timeout

    def _last_seen(self) -> str:
        judge = self._judge
        if judge.state is None:
            return f"Nothing was seen of task {judge.task_id}." if judge.task_id else "No task was seen."
        place = f", event {self._seq}" if self._seq else ""
        return f"Last seen: task {judge.task_id} {judge.state.word}{place}."

    def _next(self) -> str:
        task_id = self._judge.task_id
        if not task_id:
            return "Look with list() whether the task exists before you send again."
        return f"Go on with subscribe({task_id!r}) or look with get({task_id!r})."

    def _timed_out(self, is_stream_open: bool) -> TimedOut:
        judge, now = self._judge, self._now()
        return TimedOut(
            f"No event for {now - self._news:.1f} s ({now - self._began:.1f} s since the request; "
            f"the stream is {'open' if is_stream_open else 'not open'}). {self._last_seen()}",
            self._next() + " Or allow more with timeout_seconds.",
            elapsed_seconds=now - self._began,
            task_id=judge.task_id,
            state=judge.state,
            seq=self._seq,
            is_stream_open=is_stream_open,
        )

    def _given_up(self, problem: Cut | Unreachable) -> Cut:
        judge = self._judge
        return Cut(
            f"{problem.message} It could not be resumed in {self._attempts} attempts. {self._last_seen()}",
            self._next(),
            elapsed_seconds=self._now() - self._began,
            task_id=judge.task_id,
            state=judge.state,
            seq=self._seq,
        )


async def pause(tries: int, retry_ms: int = 0) -> None:
    """Wait before the next try: a moment at first, then longer each time, or as the peer wishes."""
    if tries == 1:
        # Often only the connection was lost: the first try costs nobody anything.
        await asyncio.sleep(0.01)
        return
    seconds = min(RETRY_SECONDS_MAX, RETRY_SECONDS_MIN * 2 ** min(tries - 2, 8))
    seconds = max(seconds, min(retry_ms / 1000, 30.0))
    await asyncio.sleep(seconds * random.uniform(0.75, 1.25))  # noqa: S311 (spreads out, hides nothing)


def not_safe(problem: Cut | Unreachable, request: Request) -> Cut:
    """Why a message was not sent a second time, and how to learn what became of it."""
    assert isinstance(request, Send), "only a message is unsafe to ask for again"
    message = request.message
    if message.task_id:
        where = f"Look with get({message.task_id!r}) whether message {message.message_id} is in its history"
    else:
        within = f"context_id={message.context_id!r}" if message.context_id else ""
        where = f"Look with list({within}) for the task that message {message.message_id} opened"
    return Cut(
        f"{problem.message} Nothing had come back; the message may have arrived. It was not sent "
        "again, because this agent does not promise that the same message twice is one task.",
        f"{where} before you send it again.",
        task_id=message.task_id,
        message_id=message.message_id,
    )


def _mark(task: Task) -> tuple[Status, int]:
    """Enough of a snapshot to see whether the next one has news."""
    return task.status, sum(len(artifact.parts) for artifact in task.artifacts)
