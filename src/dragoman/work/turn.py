"""A turn: what an agent's code holds while it works on a task.

Whatever it says goes to the task's log first and is told from there. The code waits only when it is
far ahead of the disk.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ..core.tasks import TRANSITIONS, Fold, Give, Move, Say
from ..model.agent import Conduct
from ..model.events import ArtifactChanged, MessageAdded, StatusChanged, decode
from ..model.peer import Clock
from ..model.task import Artifact, Message, Metadata, Part, Role, State, replace
from ..store.store import Claim, Label, NewWork, Record, Store, Work
from .journal import Asked, Journal, Stepped, digest
from .telling import Lost, Telling
from .words import Words, as_parts

__all__ = ["DRIVEN", "Chunks", "Driver", "Stop", "Turn"]

# How many events may wait for the disk before the agent's code waits too.
AHEAD_MAX = 64
# The kind of record that says what a turn drives outside.
DRIVEN = "driven"
# An agent that never pauses lets others run after this many words.
BREATH = 64


class Turn:
    """One run of an agent on a task, from a message until the task is settled."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        conduct: Conduct,
        work: Work,
        fold: Fold,
        seq: int,
        label: Label,
        journal: Journal | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._conduct = conduct
        self._telling = Telling(store, clock, work, fold, seq, label)
        self._telling.journal = journal
        self._said = 0
        # What was said before the last remembered point belongs to it and is not said again.
        self._said_before = 0 if journal is None else journal.said
        self._asks = 0
        # What opened the task; what was said since are answers, given again where they were asked for.
        self._message = fold.history[0]
        self._answer: asyncio.Future[Message] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # In a run made anew: the artifacts it has replaced, and what it said to each before.
        self._touched: set[str] | None = None if journal is None and work.attempts <= 1 else set()
        self._before: dict[str, tuple[Artifact, list[Part]]] = {}
        self.is_settled = False
        self.has_begun = False
        # Whether this turn counts against its agent's bound; one that asks does not.
        self.holds_slot = True
        self.on_park: Callable[[Turn], None] = _nobody

    # What the agent reads.

    @property
    def task_id(self) -> str:
        return self._telling.fold.id

    @property
    def context_id(self) -> str:
        return self._telling.fold.context_id

    @property
    def message(self) -> Message:
        """The message this turn is about: the one that opened the task, then the newest answer.

        Whatever else callers said meanwhile is in `history`: a turn run again must begin with the same.
        """
        return self._message

    @property
    def text(self) -> str:
        """The message's text parts, joined by newlines."""
        return self._message.text

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._message.parts

    @property
    def state(self) -> State:
        """The state of the task as it has been told so far."""
        return self._telling.fold.status.state

    @property
    def metadata(self) -> Metadata:
        return self._telling.fold.metadata or {}

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the task so far, oldest first."""
        return tuple(self._telling.fold.history)

    @property
    def answers(self) -> str:
        """What the agent declared to answer with."""
        return self._conduct.answers

    @property
    def owner(self) -> str:
        """Who asked."""
        return self._telling.label.owner

    @property
    def tenant(self) -> str:
        """In which tenant."""
        return self._telling.label.tenant

    @property
    def trace(self) -> str:
        """The trace this task is part of, for calls onward: the caller's, or one of its own."""
        return self._telling.label.trace or self.task_id.replace("-", "")

    @property
    def cancelled(self) -> bool:
        """Whether a caller asked to stop and this agent was given time to wind up."""
        return self._telling.fold.cancel_asked

    # What the agent says.

    async def say(self, words: Words | None, metadata: Metadata | None = None) -> None:
        """Tell how it goes: the task is working, and the words, if there are any, are its status message."""
        await self._tell(Move(State.WORKING, self._worded(words), metadata))

    async def artifact(
        self, words: Words, name: str = "answer", *, description: str = "", metadata: Metadata | None = None
    ) -> None:
        """Hand over a whole artifact. The same name again replaces it."""
        await self.give(Artifact(name, as_parts(words), name, description, metadata))

    @asynccontextmanager
    async def stream(self, name: str = "answer", *, description: str = "") -> AsyncIterator[Chunks]:
        """Hand over an artifact in chunks: `async with turn.stream("report") as it: await it.write("…")`."""
        yield Chunks(self, name, description)

    async def give(self, artifact: Artifact, append: bool = False, last: bool = True) -> None:
        """Hand over an artifact or a chunk, spelled out. `artifact` and `stream` are the short ways."""
        if self._touched is not None:
            artifact, append = self._anew(artifact, append)
        await self._tell(Give(artifact, append, last))

    async def ask(
        self, words: Words, *, auth: bool = False, deadline_seconds: float | None = None
    ) -> Message:
        """Ask the caller and wait for the answer, however long and through whatever restarts.

        The task is input-required (auth-required with `auth`) meanwhile and nothing runs.
        """
        ordinal = self._asks
        self._asks += 1
        known = await self._journal().asked(ordinal)
        if known is not None:
            self._message = self._answer_after(known)
            return self._message
        await self._telling.drained()
        self._telling.push(Move(State.AUTH_REQUIRED if auth else State.INPUT_REQUIRED, self._worded(words)))
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answer = answer
        wait_seconds = self._conduct.input_deadline_seconds if deadline_seconds is None else deadline_seconds
        due = self._clock.now() + wait_seconds
        deadline = NewWork("deadline", "deadline", self.task_id, due, name=f"deadline:{self.task_id}")
        entry = Asked(ordinal, self._telling.seq + len(self._telling.pending), self._said)
        self._telling.flush(entry, work=(deadline,), ends=(self._telling.work.id,))
        await self._telling.drained()
        if not answer.done():
            self.holds_slot = False
            self.on_park(self)
        self._message = await answer
        return self._message

    async def step(
        self, name: str, do: Callable[..., Any], *args: Any, key: str | None = None, **kwargs: Any
    ) -> Any:
        """Do something once: its JSON result is remembered, and a turn run again gets it from memory.

        A step that was interrupted is done again: make it safe to repeat. Functions that are not
        async run in a thread.
        """
        key = key or name
        journal = self._journal()
        journal.use(key)
        mark = digest(name, args, kwargs)
        known = await journal.stepped(key, mark)
        if known is None:
            value = do(*args, **kwargs) if _is_async(do) else await asyncio.to_thread(do, *args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
            known = msgspec.Raw(msgspec.json.encode(value))
            await self._answered()
            await self._telling.drained()
            self._telling.flush(Stepped(key, mark, known, self._said))
            await self._telling.drained()
        return msgspec.json.decode(known)

    @property
    def driven(self) -> str:
        """What this turn drives outside, as far as it has said so, in whichever run."""
        kept = self._store.record(DRIVEN, self.task_id)
        return "" if kept is None else kept.decode()

    async def drives(self, name: str) -> None:
        """Remember what this turn drives outside: another agent's task, say.

        A turn that is run again finds it in `driven`, and the agent's `stop` gets it when a caller cancels.
        """
        await self._answered()
        await self._telling.drained()
        self._telling.flush(records=(Record(DRIVEN, self.task_id, name.encode(), self.task_id),))
        await self._telling.drained()

    def take_up(self) -> Message:
        """The newest message, with all that was said before it taken as said.

        For drivers that take up what they drive, in a turn that is run again, instead of doing it anew.
        """
        journal = self._telling.journal
        if journal is not None and (asked := journal.skip()):
            self._said = self._said_before
            self._asks = len(asked)
            self._message = self._answer_after(asked[-1].seq)
        return self._message

    # How the agent ends. Without any of these, returning completes the task.

    async def complete(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """End well, perhaps with a last word."""
        await self._settle(Move(State.COMPLETED, self._worded(words), metadata))

    async def fail(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """End badly and say why."""
        await self._settle(Move(State.FAILED, self._worded(words), metadata))

    async def reject(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """Decline the task."""
        await self._settle(Move(State.REJECTED, self._worded(words), metadata))

    async def cancel(self, words: Words | None = None) -> None:
        """Confirm, in the time given for it, that the work has stopped."""
        await self._settle(Move(State.CANCELED, self._worded(words)))

    async def reply(self, words: Words) -> None:
        """Answer with a bare message instead of a task, as an agent may that declares `answers`."""
        if self._conduct.answers == "task":
            raise ValueError(
                f"agent {self._conduct.name!r} answers with tasks; Agent(…, answers='either') may reply"
            )
        message = self._worded(words)
        assert message is not None, "words make a message"
        # A bare message belongs to no task that the caller could ask for.
        await self._settle(Say(replace(message, task_id="")))

    # Inside.

    def begin(self) -> None:
        """Say `working`: with the first words if they come at once, else by itself."""
        fold = self._telling.fold
        if self._conduct.answers == "task":
            if fold.status.state is State.SUBMITTED:
                self._telling.push(Move(State.WORKING))
                self._telling.soon()
        elif not fold.is_told:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._conduct.first_word_seconds, self._become_task)

    def _become_task(self) -> None:
        if not (self.is_settled or self.is_lost or self._telling.fold.is_told):
            self._telling.push(Move(State.WORKING))
            self._telling.flush()

    def _journal(self) -> Journal:
        if self._telling.journal is None:
            self._telling.journal = Journal()
        return self._telling.journal

    def _worded(self, words: Words | None) -> Message | None:
        if words is None:
            return None
        if isinstance(words, Message):
            return replace(words, role=Role.AGENT, task_id=self.task_id, context_id=self.context_id)
        return Message(self._clock.new_id(), Role.AGENT, as_parts(words), self.context_id, self.task_id)

    def _anew(self, artifact: Artifact, append: bool) -> tuple[Artifact, bool]:
        """In a run made anew: the first chunk after what is remembered replaces what was left there."""
        key = artifact.artifact_id
        if not append or key not in self._before:
            self._before[key] = (artifact, [])
        first, parts = self._before[key]
        parts.extend(artifact.parts)
        assert self._touched is not None, "only a turn that runs again says things anew"
        if self._said >= self._said_before and key not in self._touched:
            self._touched.add(key)
            return replace(first, parts=tuple(parts)), False
        return artifact, append

    async def _tell(self, command: Move | Give) -> None:
        self._said += 1
        if self._said <= self._said_before:
            self._journal().spoke(self._said)
            return
        if self._answer is not None:
            await self._answered()
        if self.is_settled:
            raise Lost("this turn has ended its task and can say no more")
        telling = self._telling
        if telling.fold.status.state is State.SUBMITTED and type(command) is Give:
            telling.push(Move(State.WORKING))
        telling.push(command)
        telling.soon()
        if len(telling.pending) >= AHEAD_MAX:
            await telling.drained()
        elif self._said % BREATH == 0:
            await asyncio.sleep(0)

    async def _answered(self) -> None:
        """Nothing is told while a question waits, by whatever branch: the claim ended with it."""
        while self._answer is not None and not self._answer.done():
            await asyncio.wait((self._answer,))

    async def _settle(self, command: Move | Say) -> None:
        telling = self._telling
        if self._answer is not None:
            await self._answered()
        if self.is_settled:
            raise Lost("this turn has already ended its task")
        if telling.is_flying:
            await telling.drained()
        # An agent that never said a word, or that goes on by itself from a question, was working.
        if type(command) is Move and command.state not in TRANSITIONS[telling.fold.status.state]:
            telling.push(Move(State.WORKING))
        telling.push(command)
        self.is_settled = True
        if self._timer is not None:
            self._timer.cancel()
        telling.flush(ends=(telling.work.id,), is_last=True)
        if telling.is_flying:
            await telling.drained()

    def _answer_after(self, seq: int) -> Message:
        for data in self._store.read(self.task_id, seq):
            event = decode(data)
            if isinstance(event, MessageAdded):
                return event.message_added
        raise AssertionError(f"task {self.task_id} runs on without the answer to its question at {seq}")

    # What the executor asks.

    @property
    def claim(self) -> Claim:
        """The right under which this turn appends."""
        return self._telling.work.claim

    @property
    def is_lost(self) -> bool:
        return self._telling.refusal is not None

    def lose(self) -> None:
        """The task is over by somebody else's word: nothing more of this turn is taken."""
        self._telling.lose()

    @property
    def is_asking(self) -> bool:
        """Whether it waits for an answer, with nothing of it left to do."""
        return self._answer is not None and not self._answer.done()

    def resume(self, work: Work, fold: Fold, seq: int) -> bool:
        """The answer came while the code was still in memory: go on with it under this claim.

        Not if the task went on elsewhere meanwhile: then this code stands at a point long past.
        """
        assert self._answer is not None, "only a turn that asks is resumed"
        at = self._telling.asked_at
        since = [decode(data) for data in self._store.read(self.task_id, at, 1000)]
        if work.attempts > 1 or any(
            isinstance(event, StatusChanged | ArtifactChanged) for event in since[1:]
        ):
            return False
        self._telling.under(work, fold, seq)
        self.holds_slot = True
        answer, self._answer = self._answer, None
        answer.set_result(self._answer_after(at))
        return True


class Chunks:
    """An artifact while it is written."""

    def __init__(self, turn: Turn, name: str, description: str) -> None:
        self._turn = turn
        self._name = name
        self._description = description
        self._begun = False

    async def write(self, words: Words, *, last: bool = False) -> None:
        """One chunk: one event, told as soon as it is durable. Say `last` if you know it to be."""
        begun, self._begun = self._begun, True
        if begun:
            artifact = Artifact(self._name, as_parts(words))
        else:
            artifact = Artifact(self._name, as_parts(words), self._name, self._description)
        await self._turn.give(artifact, append=begun, last=last)


Driver = Callable[[Turn], Awaitable[None]]
# Stops what a turn drove outside, and returns when it is sure to have stopped.
Stop = Callable[[str], Awaitable[None]]


def _is_async(do: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(do) or inspect.iscoroutinefunction(type(do).__call__)


def _nobody(turn: Turn) -> None:
    """Outside an executor nobody minds whether a turn waits."""
