"""A remote agent as a Peer: found by its card, called over the binding the card and we have in common."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace
from yarl import URL

from ..core.tasks import is_reachable
from ..model.agent import IDEMPOTENCY_URI
from ..model.card import Capabilities, Card, Interface
from ..model.errors import AgentError, Fault
from ..model.events import Event, Logged, Replied, TaskCreated, encode
from ..model.operations.a2a import Cancel, Get, Request, Send
from ..model.peer import Answer, Caller, SystemClock
from ..model.task import Message, State, Task
from ..wire.versions import Dialect, Wanted
from .discover import Finder, Way
from .errors import ClientError, Cut, NoCard, TimedOut, Unreachable
from .following import Binding, Following, not_safe, pause
from .http import BODY_BYTES_MAX, Http
from .jsonrpc import JsonRpc
from .rest import Rest

__all__ = ["BINDINGS", "Remote"]

# How requests travel over each binding. Which versions it has is the table in `wire/versions.py`.
BINDINGS: dict[str, Callable[[Http, Interface, URL, Dialect], Binding]] = {
    "JSONRPC": JsonRpc,
    "HTTP+JSON": Rest,
}
# An agent that answers so does not know what was asked: nothing has happened, and another way may do.
_NOT_SPOKEN = ("MethodNotFound", "VersionNotSupported")

STATES_MAX = 4096
FAULTS_MAX = 256
CARD_SECONDS_MAX = 30.0


class _States(dict[str, State]):
    """The last state of the tasks seen most recently."""

    def __setitem__(self, task_id: str, state: State) -> None:
        if len(self) >= STATES_MAX and task_id not in self:
            del self[next(iter(self))]
        super().__setitem__(task_id, state)


class Remote:
    """`call` and `watch` of an agent elsewhere. The card is read before the first of them."""

    def __init__(
        self,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        trust: Collection[str] = (),
        timeout_seconds: float | None = 300,
        connect_seconds: float = 10,
        resume_attempts: int = 8,
        body_bytes_max: int = BODY_BYTES_MAX,
        dialect: str = "",
        binding: str = "",
    ) -> None:
        self.timeout_seconds = timeout_seconds
        # What the agent did against the protocol, newest last.
        self.faults: deque[Fault] = deque(maxlen=FAULTS_MAX)
        self._attempts = resume_attempts
        self._http = Http(headers, connect_seconds, body_bytes_max)
        self._finder = Finder(self._http, target, trust)
        self._wanted = Wanted(dialect, binding)
        self._card: Card | None = None
        # How it may be called, the best first; the one in use is remembered once it has worked.
        self._ways: list[Way] = []
        self._binding: Binding | None = None
        self._is_proved = False
        self._finding = asyncio.Lock()
        self._is_durable = False
        self._known = _States()
        self._new_id = SystemClock().new_id

    async def aclose(self) -> None:
        await self._http.aclose()

    @property
    def dialect(self) -> Dialect:
        """How the agent is spoken to, as far as is known by now."""
        assert self._binding is not None, "the card says how"
        return self._binding.dialect

    async def card(self) -> Card:
        """The card, asked for again when its time is over."""
        async with self._finding:
            return self._take(await self._read_card(revalidate=True))

    async def call(self, caller: Caller, request: Request, timeout_seconds: float | None = None) -> Answer:
        """Ask once; again when the answer was lost and asking cannot make the agent work twice."""
        while True:
            binding = self._binding or await self._found()
            try:
                answer = await self._called(binding, caller, request, timeout_seconds)
            except (Unreachable, AgentError, Fault) as problem:
                if not self._turn_away(binding, problem):
                    raise
            else:
                self._is_proved = True
                return answer

    async def _called(
        self, binding: Binding, caller: Caller, request: Request, timeout_seconds: float | None
    ) -> Answer:
        if type(request) is Send:
            caller, request = self._signed(binding, caller, request)
        task_id = request.message.task_id if type(request) is Send else getattr(request, "id", "")
        before = self._known.get(task_id) if task_id else None
        seconds = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds):
                try:
                    answer = await binding.call(caller, request)
                except Cut as cut:
                    answer = await self._called_again(binding, caller, request, cut)
        except TimeoutError:
            raise self._timed_out(request, asyncio.get_running_loop().time() - began) from None
        except Fault as fault:
            self.faults.append(fault)
            raise
        if type(answer.value) is Task:
            self._check(request, task_id, before, answer.value)
        return answer

    async def watch(
        self, caller: Caller, request: Request, after: int | None = None, timeout_seconds: float | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        """Follow a task over as many connections as it takes."""
        is_begun = False
        while True:
            binding = self._binding or await self._found()
            try:
                async for batch in self._watched(binding, caller, request, after, timeout_seconds):
                    is_begun = self._is_proved = True
                    yield batch
                return
            except (Unreachable, AgentError, Fault) as problem:
                if is_begun or not self._turn_away(binding, problem):
                    raise

    async def _watched(
        self,
        binding: Binding,
        caller: Caller,
        request: Request,
        after: int | None,
        timeout_seconds: float | None,
    ) -> AsyncGenerator[Sequence[Logged], None]:
        assert self._card is not None
        if isinstance(request, Send):
            caller, request = self._signed(binding, caller, request)
            if not self._card.streams:
                async for batch in self._without_stream(binding, caller, request, timeout_seconds):
                    yield batch
                return
        following = self._following(binding, caller, request, after, timeout_seconds)
        following.can_subscribe = self._card.streams
        try:
            async for batch in following.events():
                yield batch
        except Fault as fault:
            if fault not in self.faults:
                self.faults.append(fault)
            raise

    def _signed(self, binding: Binding, caller: Caller, request: Send) -> tuple[Caller, Send]:
        """A message with all that makes a second one known as the same."""
        message = request.message
        key = caller.key or (message.metadata or {}).get(IDEMPOTENCY_URI, "")
        if not key:
            key = self._new_id()
            caller = replace(caller, key=key)
        if binding.dialect.names_tasks and not message.task_id:
            # Here the one who asks names the task: who asks again under a key means the same one.
            named = UUID(bytes=hashlib.blake2b(str(key).encode(), digest_size=16).digest())
            request = replace(request, message=replace(message, task_id=str(named)))
        return caller, request

    def _turn_away(self, binding: Binding, problem: Exception) -> bool:
        """Whether there is another way to call an agent that does not know this one. It is taken from now on."""
        if self._binding is not binding:
            return True  # somebody else has already turned away
        is_lost = (
            isinstance(problem, Unreachable)
            or (isinstance(problem, AgentError) and problem.name in _NOT_SPOKEN)
            or (isinstance(problem, Fault) and problem.seen.get("status") in (404, 405))
        )
        if self._is_proved or not is_lost or len(self._ways) < 2:
            return False
        if problem in self.faults:
            self.faults.remove(problem)  # type: ignore[arg-type]
        del self._ways[0]
        self._use(self._ways[0])
        return True

    def _use(self, way: Way) -> None:
        self._binding = BINDINGS[way.dialect.binding](self._http, way.interface, way.address, way.dialect)

    async def _without_stream(
        self, binding: Binding, caller: Caller, request: Send, timeout_seconds: float | None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        """An agent that does not stream is asked to wait, and told of as if it had."""
        value = (await self._called(binding, caller, request, timeout_seconds)).value
        assert isinstance(value, (Task, Message)), "the binding checked what answers a message"
        event: Event = TaskCreated(value) if isinstance(value, Task) else Replied(value)
        yield [Logged(0, encode(event), event)]

    def _following(
        self,
        binding: Binding,
        caller: Caller,
        request: Request,
        after: int | None,
        timeout_seconds: float | None,
    ) -> Following:
        return Following(
            binding,
            caller,
            request,
            after,
            timeout_seconds=self.timeout_seconds if timeout_seconds is None else timeout_seconds,
            attempts=self._attempts,
            has_cursor=self._is_durable,
            may_repeat=self._may_repeat(request),
            known=self._known,
            faults=self.faults,
        )

    async def _found(self) -> Binding:
        async with self._finding:
            if self._binding is None:
                self._take(await self._read_card())
        assert self._binding is not None
        return self._binding

    async def _read_card(self, revalidate: bool = False) -> Card:
        seconds = (
            CARD_SECONDS_MAX if self.timeout_seconds is None else min(CARD_SECONDS_MAX, self.timeout_seconds)
        )
        try:
            async with asyncio.timeout(seconds):
                return await self._finder.card(revalidate)
        except NoCard:
            if not any(self._wanted):
                raise
            # Who insists on how to call it does without a card.
            return _unknown(str(self._finder.target))
        except TimeoutError:
            raise TimedOut(
                f"{self._finder.target} gave no card in {seconds:g} s.",
                "Is that an agent's address?",
                elapsed_seconds=seconds,
                is_stream_open=False,
            ) from None
        except Fault as fault:
            self.faults.append(fault)
            raise

    def _take(self, card: Card) -> Card:
        """A card that is new decides anew whom we call and what may be relied on."""
        if card is not self._card:
            self._ways = self._finder.ways(card, self._wanted)
            self._use(self._ways[0])
            self._is_proved = False
            # Who lists our extension promises both: equal messages under one key are one task, and the
            # ids of its streams are places in the log.
            self._is_durable = any(
                extension.uri == IDEMPOTENCY_URI for extension in card.capabilities.extensions
            )
            self._card = card
        return card

    def _may_repeat(self, request: Request) -> bool:
        return not isinstance(request, Send) or self._is_durable

    async def _called_again(self, binding: Binding, caller: Caller, request: Request, cut: Cut) -> Answer:
        if not self._may_repeat(request):
            assert isinstance(request, Send), "only a message is unsafe to ask for again"
            raise not_safe(cut, request) from cut
        problem: ClientError = cut
        for tries in range(1, self._attempts + 1):
            await pause(tries)
            try:
                return await binding.call(caller, request)
            except (Cut, Unreachable) as again:
                problem = again
        raise problem

    def _check(self, request: Request, task_id: str, before: State | None, task: Task) -> None:
        """A snapshot must be of the task asked for, in a state it can be in by now."""
        known = self._known
        if task_id and task.id != task_id:
            raise self._fault(f"the peer answered about task {task.id!r} when asked for {task_id!r}", task)
        if (
            type(request) in (Get, Cancel, Send)
            and before is not None
            and not is_reachable(before, task.state)
        ):
            raise self._fault(
                f"the peer says that task {task.id!r} is {task.state.word}; it was {before.word}", task
            )
        # A stream may have told of later events while this answer was on its way.
        now = known.get(task.id)
        if now is None or is_reachable(now, task.state):
            known[task.id] = task.state

    def _fault(self, message: str, task: Task) -> Fault:
        fault = Fault(message, task_id=task.id, state=task.state)
        self.faults.append(fault)
        return fault

    def _timed_out(self, request: Request, elapsed: float) -> TimedOut:
        task_id = request.message.task_id if isinstance(request, Send) else getattr(request, "id", "")
        state = self._known.get(task_id)
        seen = f"Last seen: task {task_id} {state.word}." if state else "No task was seen."
        if isinstance(request, Send):
            advice = (
                f"The message was sent and the agent may be working. Follow it with subscribe({task_id!r})"
                if task_id
                else "The message was sent and the agent may be working: find its task with list()"
            )
            advice += "; use wait=False or stream() for long work, or allow more with timeout_seconds."
        else:
            advice = "Asking again is safe."
        return TimedOut(
            f"No answer in {elapsed:.1f} s (one request, no stream open). {seen}",
            advice,
            elapsed_seconds=elapsed,
            task_id=task_id,
            state=state,
            seq=0,
            is_stream_open=False,
        )


def _unknown(address: str) -> Card:
    """What is known of an agent that has no card: that it may be there."""
    return Card(address, "", (), "", Capabilities(streaming=True), (), (), ())
