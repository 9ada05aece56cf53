"""Answers the A2A operations for local agents: decides, commits, and reads the log back.

It never calls an agent. A send is an append that causes work; whoever works, appends; here it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import assert_never

import msgspec

from ..core.tasks import INTERRUPTED, SETTLED, TERMINAL, Add, Fold, Open, decide
from ..core.tasks import Cancel as Stop
from ..model.agent import IDEMPOTENCY_URI, Conduct, accepts
from ..model.audit import AuditEntry
from ..model.errors import AgentError, error
from ..model.events import Logged, encode
from ..model.operations.a2a import Cancel, Get, List, Request, Send, Subscribe
from ..model.peer import Answer, Caller, Clock, timestamp
from ..model.task import Message, Role, State, replace
from ..store.store import (
    Append,
    Batch,
    Conflict,
    Head,
    Label,
    NewWork,
    Present,
    Record,
    Row,
    Store,
    StoreFull,
    StoreLost,
)
from .reading import Reading
from .watching import Start, Watching

__all__ = ["Engine"]

# An id of a caller's is kept with each event of the task, and said back with each.
ID_CHARS_MAX = 512
KEY_CHARS_MAX = 256
PARTS_MAX = 1000
# A caller's append races with the agent's own; each loss means the log moved on, so a few tries are plenty.
TRIES = 64


class Engine:
    """One local agent as a Peer. A node has one for each agent it answers for."""

    def __init__(self, store: Store, clock: Clock, conduct: Conduct) -> None:
        self.conduct = conduct
        self._store = store
        self._clock = clock
        self._reading = Reading(store, conduct.name)
        self._watching = Watching(store, self._reading)

    async def call(self, caller: Caller, request: Request) -> Answer:
        """Ask once."""
        match request:
            case Send():
                return await self._send(caller, request)
            case Get():
                row = self._reading.own(caller, request.id)
                return self._reading.task(row, request.history_length)
            case List():
                return await self._reading.page(caller, request)
            case Cancel():
                return await self._cancel(caller, request)
            case Subscribe():
                raise error("InvalidRequest", "a subscription is watched, not called")
            case _:
                assert_never(request)

    def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        """Follow a task's log."""
        return self._watching.follow(partial(self._begin, caller, request, after))

    async def _begin(self, caller: Caller, request: Request, after: int | None) -> Start:
        if not self.conduct.streaming:
            raise error(
                "UnsupportedOperation",
                f"agent {self.conduct.name!r} does not stream",
                nuance="StreamingNotSupported",
            )
        match request:
            case Send():
                task_id, seq = await self._accept(caller, request, "stream")
                # One that was opened is shown from its first event on.
                return await self._watching.sent(task_id, seq if seq > 1 else 0)
            case Subscribe():
                return self._watching.subscribed(self._reading.own(caller, request.id), after)
            case _:
                raise error("InvalidRequest", f"{type(request).__name__} is called, not watched")

    # Send.

    async def _send(self, caller: Caller, request: Send) -> Answer:
        task_id, seq = await self._accept(caller, request, "send")
        row = await self._answerable(task_id, seq, request.configuration.return_immediately)
        if row is None:
            raise error("TaskNotFound", f"task {task_id} was removed while it was worked on")
        return self._reading.task(row, request.configuration.history_length)

    async def _answerable(self, task_id: str, seq: int, immediately: bool) -> Row | None:
        """The task once it waits for a caller or is over; at once, or once it is known to be one, if asked so.

        One that was opened just now, with its first event, is neither yet.
        """
        store = self._store
        if seq == 1 and not immediately:
            await store.wait(task_id, 1)
        row = store.row(task_id)
        while row is not None and row.head.state not in SETTLED and (row.head.hidden or not immediately):
            await store.wait(task_id, row.seq)
            row = store.row(task_id)
        return row

    async def _accept(self, caller: Caller, request: Send, operation: str) -> tuple[str, int]:
        """Make the message durable; the task it belongs to, and the position it got."""
        message = request.message
        self._check(caller, request)
        try:
            if caller.names_tasks and message.task_id:
                return await self._say(caller, request, operation)
            if message.task_id:
                return await self._add(caller, message, operation)
            return await self._open(caller, request, operation)
        except StoreFull as full:
            raise _full(full) from None
        except StoreLost:
            raise _lost() from None

    async def _say(self, caller: Caller, request: Send, operation: str) -> tuple[str, int]:
        """A message to a task that its caller names: it is opened by the first, the others go to it.

        The message that opened it, said again, is a retry: the task is the answer. Of later ones only those
        that come while nothing was asked can be retries; to "yes" one may well be asked twice.
        """
        message = request.message
        row = self._reading.named(caller, message.task_id)
        if row is None:
            try:
                return await self._open(
                    caller, request, operation, self._reading.log_of(caller, message.task_id)
                )
            except Conflict:
                # Twice at once: the other was quicker.
                row = self._reading.named(caller, message.task_id)
                assert row is not None, "who was quicker has begun the log"
        name = self._key_of(caller, message)
        if name and (known := self._store.record("key", name)) is not None:
            return self._again(known, caller, message), 0
        told = [_words(said) for said in self._reading.fold(row).history if said.role is Role.USER]
        if _words(message) in (told[:1] if row.head.state in INTERRUPTED else told):
            return row.log, 0
        return await self._add(caller, replace(message, task_id=row.log), operation)

    def _check(self, caller: Caller, request: Send) -> None:
        conduct = self.conduct
        for needed in conduct.extensions_required:
            if needed not in caller.extensions:
                raise error(
                    "ExtensionSupportRequired", f"the agent requires the extension {needed}", extension=needed
                )
        message = request.message
        for name, id in (("contextId", message.context_id), ("messageId", message.message_id)):
            if len(id) > ID_CHARS_MAX:
                raise error(
                    "InvalidParams", f"an id is up to {ID_CHARS_MAX} characters", at=f"message.{name}"
                )
        if message.role is not Role.USER:
            raise error("InvalidParams", "what a caller says has the role ROLE_USER", at="message.role")
        if len(message.parts) > PARTS_MAX:
            raise error("InvalidParams", f"a message has up to {PARTS_MAX} parts", at="message.parts")
        if request.configuration.task_push_notification_config is not None:
            raise error("PushNotificationNotSupported", at="configuration.taskPushNotificationConfig")
        for i, id in enumerate(message.reference_task_ids):
            # What is not here may be elsewhere, and is handed on as it is; what is another's is not.
            row = self._store.row(id)
            if row is not None and (row.label.tenant, row.label.owner) != (caller.tenant, caller.owner):
                raise error("TaskNotFound", f"there is no task {id}", at=f"message.referenceTaskIds[{i}]")
        for i, part in enumerate(message.parts):
            if part.media_type and not accepts(conduct.input_modes, part.media_type):
                raise error(
                    "ContentTypeNotSupported",
                    f"agent {conduct.name!r} takes {', '.join(conduct.input_modes)}, not {part.media_type}",
                    at=f"message.parts[{i}].mediaType",
                )

    def _check_context(self, caller: Caller, context_id: str) -> None:
        """A context is its owner's: nobody else begins a task in it, or learns of it."""
        whose = self._store.owner_of_context(context_id)
        if whose is not None and whose != (caller.tenant, caller.owner):
            raise error("TaskNotFound", f"there is no context {context_id}", at="message.contextId")

    async def _open(self, caller: Caller, request: Send, operation: str, named: str = "") -> tuple[str, int]:
        clock, conduct, message = self._clock, self.conduct, request.message
        if message.context_id:
            self._check_context(caller, message.context_id)
        now = clock.now()
        task_id = named or clock.new_id()
        context_id = message.context_id or clock.new_id()
        fold = Fold()
        [opened] = decide(fold, Open(task_id, context_id, message, request.metadata or None), timestamp(now))
        fold.apply(opened)
        records = self._remembered(caller, message, task_id)
        head = Head(State.SUBMITTED, now, conduct.answers != "task")
        label = Label("task", caller.owner, caller.tenant, conduct.name, context_id, caller.trace)
        append = Append(task_id, 0, task_id, (encode(opened),), head, label)
        work = NewWork("turn", conduct.name, task_id, name=task_id, memo=(fold, label))
        audit = (self._entry(caller, operation, task_id, context_id, caller.trace, now),)
        try:
            await self._store.commit(Batch((append,), (work,), records, audit=audit))
        except Present as present:
            return self._again(present.record.body, caller, message), 0
        return task_id, 1

    def _again(self, body: bytes, caller: Caller, message: Message) -> str:
        """The task that an earlier send with this key opened, if that send said the same."""
        task_id, told = msgspec.json.decode(body, type=tuple[str, str])
        if told != _print(_told(caller, message)):
            raise error("IdempotencyConflict")
        return task_id

    def _key_of(self, caller: Caller, message: Message) -> str:
        """The name of the record that says which task was opened under the caller's key, if there is a key."""
        key = _key(caller, message)
        return f"{caller.tenant}\n{caller.owner}\n{self.conduct.name}\n{key}" if key else ""

    async def _add(self, caller: Caller, message: Message, operation: str) -> tuple[str, int]:
        store, clock = self._store, self._clock
        append_id, key = clock.new_id(), _key(caller, message)
        for _ in range(TRIES):
            row = self._reading.own(caller, message.task_id, at="message.taskId")
            if message.context_id and message.context_id != row.label.context:
                raise error(
                    "InvalidParams",
                    f"task {row.log} belongs to another context than {message.context_id}",
                    at="message.contextId",
                )
            if key and (told := self._reading.message(row, message.message_id)) is not None:
                if _print(told) != _print(replace(message, task_id=row.log, context_id=row.label.context)):
                    raise error("IdempotencyConflict")
                return row.log, row.seq
            now = clock.now()
            events = decide(self._reading.stub(row), Add(message), timestamp(now))
            is_answer = row.head.state in INTERRUPTED
            head = Head(State.WORKING, now) if is_answer else None
            append = Append(row.log, row.seq, append_id, [encode(event) for event in events], head)
            work = (NewWork("turn", row.label.agent, row.log, name=row.log),) if is_answer else ()
            drops = (f"deadline:{row.log}",) if is_answer else ()
            # With an id of its own a message is known by that.
            records = self._remembered(caller, message, row.log) if caller.names_tasks else ()
            audit = (self._entry(caller, operation, row.log, row.label.context, row.label.trace, now),)
            try:
                await store.commit(Batch((append,), work, records, drops=drops, audit=audit))
            except Conflict:
                continue
            except Present as present:
                return self._again(present.record.body, caller, message), row.seq
            return row.log, row.seq + len(events)
        raise error("Unavailable", f"task {message.task_id} is too busy to be written to")

    def _remembered(self, caller: Caller, message: Message, log: str) -> Sequence[Record]:
        """Under which key a message was said, if under one: said again under it, it is the same."""
        name = self._key_of(caller, message)
        if not name:
            return ()
        return (Record("key", name, msgspec.json.encode((log, _print(_told(caller, message)))), log, True),)

    # Cancel.

    async def _cancel(self, caller: Caller, request: Cancel) -> Answer:
        clock = self._clock
        grace = self.conduct.cancel_grace_seconds
        append_id = clock.new_id()
        for _ in range(TRIES):
            row = self._reading.own(caller, request.id)
            now = clock.now()
            with_grace = grace > 0 and row.head.state not in INTERRUPTED
            if row.head.state in TERMINAL and row.log != request.id:
                # To callers who name their tasks a cancel that comes too late is no error (S4-022).
                return self._reading.task(row, None)
            fold = self._reading.fold(row) if with_grace else self._reading.stub(row)
            events = decide(fold, Stop(request.metadata, with_grace), timestamp(now))
            if not events:
                return self._reading.task(row, None)
            entry = self._entry(caller, "cancel", row.log, row.label.context, row.label.trace, now)
            batch = self._stopped(
                row, append_id, [encode(event) for event in events], now, grace if with_grace else 0, entry
            )
            try:
                await self._store.commit(batch)
            except Conflict:
                continue
            except StoreFull as full:
                raise _full(full) from None
            except StoreLost:
                raise _lost() from None
            return self._reading.task(self._reading.own(caller, request.id), None)
        raise error("Unavailable", f"task {request.id} is too busy to be canceled; try again")

    def _stopped(
        self, row: Row, append_id: str, events: Sequence[bytes], now: float, grace: float, entry: AuditEntry
    ) -> Batch:
        if grace:
            append = Append(row.log, row.seq, append_id, events)
            end = NewWork("deadline", "deadline", row.log, now + grace, b"cancel", f"cancel:{row.log}")
            return Batch((append,), (end,), audit=(entry,))
        fold = self._reading.fold(row)
        for event in events:
            fold.apply(Logged(0, event).event)
        snapshot = msgspec.json.encode(fold.task())
        append = Append(row.log, row.seq, append_id, events, Head(State.CANCELED, now), None, snapshot)
        stop = NewWork("stop", f"stop {row.label.agent}", row.log)
        drops = (row.log, f"deadline:{row.log}", f"cancel:{row.log}")
        return Batch((append,), (stop,), drops=drops, closes=(f"turn:{row.log}:1",), audit=(entry,))

    # What is said of a call afterwards.

    def _entry(
        self, caller: Caller, operation: str, task: str, context: str, trace: str, now: float
    ) -> AuditEntry:
        """For the audit log, with what the call changes. A task that began in no trace is one of its own."""
        return AuditEntry(
            now,
            caller.owner,
            self.conduct.name,
            operation,
            "ok",
            task,
            context,
            trace or task.replace("-", ""),
            caller.tenant,
            caller.credential,
            caller.via,
        )


def _key(caller: Caller, message: Message) -> str:
    """The idempotency key: beside the message (a header), or in its metadata under our extension."""
    if caller.key or not message.metadata:
        return caller.key
    key = message.metadata.get(IDEMPOTENCY_URI, "")
    if not isinstance(key, str) or len(key) > KEY_CHARS_MAX:
        # To go on without it would be to do twice what was asked for once.
        raise error(
            "InvalidParams",
            f"an idempotency key is a text of up to {KEY_CHARS_MAX} characters",
            at=f"message.metadata[{IDEMPOTENCY_URI}]",
        )
    return key


def _words(message: Message) -> Message:
    """A message without what differs each time it is said."""
    return replace(message, message_id="", task_id="", context_id="")


def _told(caller: Caller, message: Message) -> Message:
    """What of a message its caller has chosen. Callers of 0.1 give messages no ids."""
    return _words(message) if caller.names_tasks else message


def _print(message: Message) -> str:
    """What a message says, short: two sends with one key must agree in it."""
    return hashlib.blake2b(msgspec.json.encode(message, order="sorted"), digest_size=16).hexdigest()


def _lost() -> AgentError:
    return error("Unavailable", "the node lost its disk and is going down; try another or wait")


def _full(full: StoreFull) -> AgentError:
    refused = error("StoreFull", f"There is no room for more work ({full}); try again later.")
    refused.retry_seconds = 5.0
    return refused
