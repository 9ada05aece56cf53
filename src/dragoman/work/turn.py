"""A turn: what an agent's code holds while it works on a task.

Whatever it says goes to the task's log first and is told from there. What it says while a commit
is in flight shares the next one; the code waits only when it is far ahead of the disk.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ..core.tasks import TRANSITIONS, Fold, Give, Move, Say, decide
from ..model.agent import Conduct
from ..model.events import MessageAdded, decode, encode
from ..model.peer import Clock, timestamp
from ..model.task import Artifact, Message, Metadata, Part, Role, State, Task, replace
from ..store.store import Append, Batch, Claim, Conflict, Fenced, Head, Label, NewWork, Refusal, Store, Work
from .journal import Asked, Entry, Journal, Stepped, digest, journal_log

__all__ = ["Driver", "Lost", "Turn", "as_parts"]

# How many events may wait for the disk before the agent's code waits too.
AHEAD_MAX = 64
# An agent that never pauses lets others run after this many words.
BREATH = 64
# A running task's fold is stored after this many events, then whenever its log has doubled.
SNAPSHOT_EVENTS = 256

Words = str | bytes | dict[str, Any] | list[Any] | Part | Message | Sequence[Part]


class Lost(Exception):
    """This turn no longer owns its task: it was canceled, or another node took over."""


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
        journal: Journal,
        label: Label,
    ) -> None:
        self._store = store
        self._clock = clock
        self._conduct = conduct
        self._work = work
        self._fold = fold
        self._seq = seq
        self._journal = journal
        self._label = label
        self._pending: list[bytes] = []
        self._in_flight: list[bytes] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._refusal: Refusal | None = None
        self._snapshot_at = 0
        self._is_due = False
        self._said = 0
        self._asks = 0
        self._message = fold.last_from_caller()
        self._answer: asyncio.Future[Message] | None = None
        # Artifacts that this run has spoken to: a run made anew replaces what the last one left.
        self._touched: set[str] | None = None if journal.seq == 0 and work.attempts <= 1 else set()
        self._before: dict[str, tuple[Artifact, list[Part]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.is_settled = False
        # Whether this turn counts against its agent's bound; one that asks does not.
        self.holds_slot = True
        self.on_park: Callable[[Turn], None] = _nobody

    # What the agent reads.

    @property
    def task_id(self) -> str:
        return self._fold.id

    @property
    def context_id(self) -> str:
        return self._fold.context_id

    @property
    def message(self) -> Message:
        """The message this turn is about: the newest, as the turn began or was answered."""
        return self._message

    @property
    def text(self) -> str:
        """The message's text parts, joined by newlines."""
        return self._message.text

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._message.parts

    @property
    def metadata(self) -> Metadata:
        return self._fold.metadata or {}

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the task so far, oldest first."""
        return tuple(self._fold.history)

    @property
    def answers(self) -> str:
        """What the agent declared to answer with."""
        return self._conduct.answers

    @property
    def owner(self) -> str:
        """Who asked."""
        return self._label.owner

    @property
    def cancelled(self) -> bool:
        """Whether a caller asked to stop and this agent was given time to wind up."""
        return self._fold.cancel_asked

    # What the agent says.

    async def say(self, words: Words, metadata: Metadata | None = None) -> None:
        """Tell how it goes: the task stays working, and the words are its status message."""
        await self._tell(Move(State.WORKING, self._words(words), metadata))

    async def artifact(
        self, words: Words, name: str = "answer", *, description: str = "", metadata: Metadata | None = None
    ) -> None:
        """Hand over a whole artifact. The same name again replaces it."""
        await self.give(Artifact(name, as_parts(words), name, description, metadata), append=False, last=True)

    @asynccontextmanager
    async def stream(self, name: str = "answer", *, description: str = "") -> AsyncIterator[Chunks]:
        """Hand over an artifact in chunks: `async with turn.stream("report") as out: await out.write("…")`."""
        yield Chunks(self, name, description)

    async def ask(self, words: Words, *, auth: bool = False, deadline_seconds: float | None = None) -> Message:
        """Ask the caller and wait for the answer, however long and through whatever restarts.

        The task is input-required (auth-required with `auth`) meanwhile and nothing runs.
        """
        ordinal = self._asks
        self._asks += 1
        known = await self._journal.asked(ordinal)
        if known is not None:
            answer = self._answer_after(known)
            self._message = answer
            return answer
        state = State.AUTH_REQUIRED if auth else State.INPUT_REQUIRED
        await self._drained()
        self._push(Move(state, self._words(words)))
        answer = self._answer = asyncio.get_running_loop().create_future()
        entry = Asked(ordinal, self._seq + len(self._pending), self._said)
        wait_seconds = self._conduct.input_deadline_seconds if deadline_seconds is None else deadline_seconds
        due = self._clock.now() + wait_seconds
        deadline = NewWork("deadline", "deadline", self.task_id, due, name=f"deadline:{self.task_id}")
        self._flush(entry, work=(deadline,), ends=(self._work.id,))
        await self._drained()
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
        self._journal.use(key)
        mark = digest(name, args, kwargs)
        known = await self._journal.stepped(key, mark)
        if known is None:
            value = do(*args, **kwargs) if _is_async(do) else await asyncio.to_thread(do, *args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
            known = msgspec.Raw(msgspec.json.encode(value))
            await self._drained()
            self._flush(Stepped(key, mark, known, self._said))
            await self._drained()
        return msgspec.json.decode(known)

    # How the agent ends. Without any of these, returning completes the task.

    async def complete(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """End well, perhaps with a last word."""
        await self._settle(Move(State.COMPLETED, self._words(words), metadata))

    async def fail(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """End badly and say why."""
        await self._settle(Move(State.FAILED, self._words(words), metadata))

    async def reject(self, words: Words | None = None, metadata: Metadata | None = None) -> None:
        """Decline the task."""
        await self._settle(Move(State.REJECTED, self._words(words), metadata))

    async def cancel(self, words: Words | None = None) -> None:
        """Confirm, in the time given for it, that the work has stopped."""
        await self._settle(Move(State.CANCELED, self._words(words)))

    async def reply(self, words: Words) -> None:
        """Answer with a bare message instead of a task. The agent must declare `answers` message or either."""
        if self._conduct.answers == "task":
            raise ValueError(
                f"agent {self._conduct.name!r} answers with tasks: declare Agent(…, answers='either') to reply"
            )
        message = self._words(words)
        assert message is not None, "words make a message"
        await self._settle(Say(message))

    # Inside.

    def begin(self) -> None:
        """Say `working`: with the first words if they come at once, else by itself."""
        if self._fold.status.state is State.SUBMITTED and self._conduct.answers == "task":
            self._push(Move(State.WORKING))
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._come_due)
        elif self._conduct.answers != "task" and not self._fold.is_told:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._conduct.first_word_seconds, self._become_task)

    def _become_task(self) -> None:
        if not (self.is_settled or self._fold.is_told or self._refusal):
            self._push(Move(State.WORKING))
            self._flush()

    def _words(self, words: Words | None) -> Message | None:
        if words is None:
            return None
        if isinstance(words, Message):
            return replace(words, role=Role.AGENT, task_id=self.task_id, context_id=self.context_id)
        parts = as_parts(words)
        return Message(self._clock.new_id(), Role.AGENT, parts, self.context_id, self.task_id)

    async def give(self, artifact: Artifact, append: bool = False, last: bool = True) -> None:
        """Hand over an artifact, or a chunk of one, spelled out. `artifact` and `stream` are the short ways."""
        if self._touched is not None:
            artifact, append = self._anew(artifact, append)
        await self._tell(Give(artifact, append, last))

    def _anew(self, artifact: Artifact, append: bool) -> tuple[Artifact, bool]:
        """In a turn that runs again: the first chunk after what is remembered replaces what was left there."""
        key = artifact.artifact_id
        if not append or key not in self._before:
            self._before[key] = (artifact, [])
        first, parts = self._before[key]
        parts.extend(artifact.parts)
        assert self._touched is not None, "only a turn that runs again says things anew"
        if self._said >= self._journal.said and key not in self._touched:
            self._touched.add(key)
            return replace(first, parts=tuple(parts)), False
        return artifact, append

    async def _tell(self, command: Move | Give) -> None:
        self._said += 1
        if self._said <= self._journal.said:
            return
        if self.is_settled:
            raise Lost("this turn has ended its task and can say no more")
        if self._fold.status.state is State.SUBMITTED and not isinstance(command, Move):
            self._push(Move(State.WORKING))
        self._push(command)
        if not self._is_due:
            # Not at once: what is said without a pause goes into the log together.
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._come_due)
        if len(self._pending) >= AHEAD_MAX:
            await self._drained()
        elif self._said % BREATH == 0:
            await asyncio.sleep(0)

    def _come_due(self) -> None:
        self._is_due = False
        self._flush()

    def _push(self, command: Move | Give | Say) -> None:
        if self._refusal is not None:
            raise Lost("this turn no longer owns its task") from self._refusal
        for event in decide(self._fold, command, timestamp(self._clock.now())):
            self._fold.apply(event)
            self._pending.append(encode(event))

    def _flush(
        self,
        entry: Entry | None = None,
        *,
        work: Sequence[NewWork] = (),
        ends: Sequence[int] = (),
        snapshot: bytes | None = None,
        closes: Sequence[str] = (),
    ) -> None:
        if self._in_flight is not None or not (self._pending or entry or ends) or self._refusal is not None:
            return
        events, self._pending = self._pending, []
        self._in_flight = events
        appends = [self._append(events, snapshot)] if events or snapshot else []
        if entry is not None:
            appends.append(self._journalled(entry))
        batch = Batch(appends, work, (), self._work.claim, ends, (), closes)
        self._store.submit(batch, lambda refusal: self._done(refusal, batch, entry))

    def _append(self, events: list[bytes], snapshot: bytes | None) -> Append:
        fold = self._fold
        seq = self._seq + len(events)
        if snapshot is None and seq - self._snapshot_at >= max(SNAPSHOT_EVENTS, self._snapshot_at):
            snapshot = msgspec.json.encode(fold.task())
        if snapshot is not None:
            self._snapshot_at = seq
        if fold.reply is not None:
            head = Head(State.COMPLETED, self._clock.now(), True)
        else:
            head = Head(fold.status.state, self._clock.now(), not fold.is_told)
        return Append(fold.id, self._seq, f"{self._work.id}.{self._work.epoch}.{self._seq}", events, head, None, snapshot)

    def _journalled(self, entry: Entry) -> Append:
        after = self._journal.seq
        label = Label("turn", self._label.owner, self._label.tenant, self._label.agent) if after == 0 else None
        name = f"{self._work.id}.{self._work.epoch}.{after}"
        return Append(journal_log(self.task_id), after, name, (self._journal.spell(entry),), None, label)

    def _done(self, refusal: Refusal | None, batch: Batch, entry: Entry | None) -> None:
        events = self._in_flight
        assert events is not None, "a commit that nobody asked for came back"
        self._in_flight = None
        if refusal is None:
            self._seq += len(events)
            self._journal.seq += entry is not None
        elif isinstance(refusal, Conflict) and refusal.log == self.task_id:
            self._catch_up(batch, events, entry)
            return
        else:
            self._refusal = refusal
            if self._answer is not None and not self._answer.done():
                self._answer.cancel()
        if self._pending:
            self._flush()
        if self._in_flight is None and self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    def _catch_up(self, batch: Batch, events: list[bytes], entry: Entry | None) -> None:
        """A caller spoke meanwhile: take in what they said, then append after it."""
        news = self._store.read(self.task_id, self._seq)
        self._seq += len(news)
        fold = load(self._store, self.task_id, self._seq)
        for data in events:
            fold.apply(decode(data))
        self._fold = fold
        snapshot = msgspec.json.encode(fold.task()) if batch.appends[0].snapshot is not None else None
        self._in_flight = events
        appends = [self._append(events, snapshot)]
        if isinstance(entry, Asked):
            entry = msgspec.structs.replace(entry, seq=entry.seq + len(news))
        if entry is not None:
            appends.append(self._journalled(entry))
        for data in self._pending:
            fold.apply(decode(data))
        retry = msgspec.structs.replace(batch, appends=appends)
        self._store.submit(retry, lambda refusal: self._done(refusal, retry, entry))

    async def _drained(self) -> None:
        """Until everything said is in the log."""
        while self._in_flight is not None or self._pending:
            if self._in_flight is None:
                self._flush()
                continue
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        if self._refusal is not None:
            raise Lost("this turn no longer owns its task") from self._refusal

    async def _settle(self, command: Move | Say) -> None:
        if self.is_settled:
            raise Lost("this turn has already ended its task")
        if self._in_flight is not None:
            await self._drained()
        if isinstance(command, Move):
            # An agent that never said a word, or that goes on by itself from a question, was working.
            if command.state not in TRANSITIONS[self._fold.status.state]:
                self._push(Move(State.WORKING))
        self._push(command)
        self.is_settled = True
        if self._timer is not None:
            self._timer.cancel()
        snapshot = None if self._fold.reply is not None else msgspec.json.encode(self._fold.task())
        closes = (journal_log(self.task_id),) if self._journal.seq else ()
        self._flush(snapshot=snapshot, ends=(self._work.id,), closes=closes)
        if self._in_flight is not None or self._refusal is not None:
            await self._drained()

    def _answer_after(self, seq: int) -> Message:
        for data in self._store.read(self.task_id, seq):
            event = decode(data)
            if isinstance(event, MessageAdded):
                return event.message_added
        raise AssertionError(f"task {self.task_id} runs on without the answer to its question at {seq}")

    @property
    def claim(self) -> Claim:
        """The right under which this turn appends."""
        return self._work.claim

    @property
    def is_lost(self) -> bool:
        return self._refusal is not None

    def lose(self) -> None:
        """The task is over by somebody else's word: nothing more of this turn is taken."""
        self._refusal = self._refusal or Fenced("the task is over")

    @property
    def is_asking(self) -> bool:
        """Whether it waits for an answer, with nothing of it left to do."""
        return self._answer is not None and not self._answer.done()

    def resume(self, work: Work, fold: Fold, seq: int) -> None:
        """The answer came while the code was still in memory: go on with it under the new claim."""
        assert self._answer is not None, "only a turn that asks is resumed"
        self._work, self._fold, self._seq = work, fold, seq
        self.holds_slot = True
        answer, self._answer = self._answer, None
        answer.set_result(fold.last_from_caller())


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

_task = msgspec.json.Decoder(Task).decode


def load(store: Store, log: str, seq: int | None = None) -> Fold:
    """The fold of a task's log up to a position."""
    snapshot = store.snapshot(log, seq)
    fold = Fold()
    at = 0
    if snapshot is not None:
        at = snapshot[0]
        fold = Fold(_task(snapshot[1]))
        fold.is_told = True
    while seq is None or at < seq:
        events = store.read(log, at, 1000 if seq is None else min(1000, seq - at))
        if not events:
            break
        for data in events:
            fold.apply(decode(data))
        at += len(events)
    return fold


def as_parts(words: Words) -> tuple[Part, ...]:
    """What an agent says, as parts: text, bytes, JSON values, parts, or a message's own."""
    match words:
        case str():
            return (Part(text=words),)
        case bytes():
            return (Part(raw=words, media_type="application/octet-stream"),)
        case Part():
            return (words,)
        case Message():
            return words.parts
        case list() | tuple() if words and all(isinstance(part, Part) for part in words):
            return tuple(words)
        case _:
            return (Part(data=words),)


def _is_async(do: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(do) or inspect.iscoroutinefunction(getattr(do, "__call__", None))


def _nobody(turn: Turn) -> None:
    """Outside an executor nobody minds whether a turn waits."""
