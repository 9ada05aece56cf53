"""Open connections: streams while they flow, calls while they wait, and what ends them.

There is no queue per reader. A reader that is slow is merely behind in the log; one whose
connection has not moved for a while is let go, with the place to resume from in its last event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any

from ..core.tasks import TERMINAL
from ..model.errors import AgentError
from ..model.events import Event, Logged, StatusChanged, TaskCreated
from ..model.operations.a2a import Subscribe
from ..model.peer import Caller, Peer
from ..model.task import State
from ..wire.codec import Voice
from ..wire.sse import KEEP_ALIVE, frame, retry_after

__all__ = ["ENDS", "ENDS_AT_QUESTION", "KEEP_ALIVE_SECONDS", "STALL_SECONDS", "Streams", "past_questions"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# The states with which a stream ends; and one that a send opened, where the answer is a send of its own.
ENDS = TERMINAL
ENDS_AT_QUESTION = TERMINAL | {State.INPUT_REQUIRED}

KEEP_ALIVE_SECONDS = 15.0
STALL_SECONDS = 45.0
# How often connections are looked at, and after how long a waiting call is watched for a hang-up.
LOOK_SECONDS = 5.0
# As much as is written at once: a reader that is slow holds no more.
WRITE_BYTES = 256 * 1024
RETRY_MILLISECONDS = 2000

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class _Open:
    """A stream. `writing` is since when a write has been under way."""

    __slots__ = ("send", "task", "writing", "written")

    def __init__(self, task: asyncio.Task[Any], send: Send, now: float) -> None:
        self.task = task
        self.send = send
        self.written = now
        self.writing = 0.0


class Streams:
    """All open connections of a site."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Task[Any], _Open] = {}
        # Calls that wait for an answer; those that were here at the last look have their caller listened to.
        self._calls: dict[asyncio.Task[Any], Receive] = {}
        self._listeners: dict[asyncio.Task[Any], asyncio.Task[None]] = {}
        self._gone: set[asyncio.Task[Any]] = set()
        self._side: set[asyncio.Future[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self.is_closing = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def calls(self) -> int:
        """How many requests wait for an answer, streams among them."""
        return len(self._calls)

    # Calls.

    def called(self, receive: Receive) -> asyncio.Task[Any]:
        """A call waits for its answer; if it waits long, its caller is listened to."""
        task = asyncio.current_task()
        assert task is not None, "requests run in tasks"
        self._calls[task] = receive
        if self._ticker is None:
            self._ticker = asyncio.get_running_loop().create_task(self._tick())
        return task

    def answered(self, task: asyncio.Task[Any]) -> None:
        del self._calls[task]
        if self._listeners:
            self._unlisten(task)

    def is_gone(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether a request was cancelled because its caller went away."""
        return task in self._gone

    # Streams.

    async def run(
        self,
        runs: AsyncGenerator[Sequence[Logged], None],
        first: Sequence[Logged] | None,
        voice: Voice,
        failed: Callable[[AgentError], bytes],
        receive: Receive,
        send: Send,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Send a stream until its log has no more, its reader is gone, or the node closes."""
        clock = asyncio.get_running_loop().time
        task = self.called(receive)
        one = self._open[task] = _Open(task, send, clock())
        self._listen(task, receive)
        seq = 0
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *headers]})
            body = retry_after(RETRY_MILLISECONDS)
            run = first
            while run is not None:
                for last, frames in _written(voice, run):
                    one.writing = clock()
                    await send({"type": "http.response.body", "body": body + frames, "more_body": True})
                    one.written, one.writing = one.writing, 0.0
                    body, seq = b"", last
                try:
                    run = await anext(runs, None)
                except AgentError as wrong:
                    body = frame(0, failed(wrong))
                    break
            await send({"type": "http.response.body", "body": body, "more_body": False})
        except asyncio.CancelledError:
            if not (task in self._gone or self.is_closing):
                raise
            if task not in self._gone:
                hint = b": this node is closing; go on with Last-Event-ID: %d\n" % seq
                await send({"type": "http.response.body", "body": hint, "more_body": False})
        finally:
            del self._open[task]
            self.answered(task)

    def _listen(self, task: asyncio.Task[Any], receive: Receive) -> None:
        self._listeners[task] = asyncio.get_running_loop().create_task(self._hang_up(task, receive))

    def _unlisten(self, task: asyncio.Task[Any]) -> None:
        listener = self._listeners.pop(task, None)
        if listener is not None:
            listener.cancel()

    async def _hang_up(self, task: asyncio.Task[Any], receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._let_go(task)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._gone.add(task)
        task.add_done_callback(self._gone.discard)
        task.cancel()

    # What time brings.

    async def _tick(self) -> None:
        clock = asyncio.get_running_loop().time
        waiting: set[asyncio.Task[Any]] = set()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = clock()
            for one in list(self._open.values()):
                if one.writing and now - one.writing >= STALL_SECONDS:
                    self._let_go(one.task)
                elif not one.writing and now - one.written >= KEEP_ALIVE_SECONDS - LOOK_SECONDS / 2:
                    one.written = now
                    self._aside(
                        one.send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
                    )
            for task in waiting & self._calls.keys() - self._listeners.keys():
                self._listen(task, self._calls[task])
            waiting = set(self._calls)

    def _aside(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._side.add(task)
        task.add_done_callback(self._side.discard)

    async def close(self) -> None:
        """End every stream with the place to resume from, and every waiting call with a reason."""
        self.is_closing = True
        tasks = list(self._calls)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        if self._ticker is not None:
            self._ticker.cancel()


def _written(voice: Voice, run: Sequence[Logged]) -> Iterator[tuple[int, bytes]]:
    """The events of a run as they are written: some together, and the position of the last of them."""
    before, after = voice.before, voice.after
    frames: list[bytes] = []
    size = last = 0
    for seq, item in voice.tell(run):
        frames.append(frame(seq, b"".join((before, item, after))))
        size += len(frames[-1])
        last = seq
        if size >= WRITE_BYTES:
            yield seq, b"".join(frames)
            frames, size = [], 0
    if frames:
        yield last, b"".join(frames)


async def past_questions(
    peer: Peer, caller: Caller, runs: AsyncGenerator[Sequence[Logged], None]
) -> AsyncGenerator[Sequence[Logged], None]:
    """A stream that does not end when the agent asks: what is left of it is a subscription's."""
    try:
        while True:
            last: Logged | None = None
            async for run in runs:
                yield run
                last = run[-1]
            if last is None or (task_id := _asked_on(last.event)) is None:
                return
            runs = peer.watch(caller, Subscribe(task_id), last.seq or None)
            begin = await anext(runs, ())
            # The task as it stood when it asked is known.
            news = begin if begin and _asked_on(begin[0].event) is None else begin[1:]
            if news:
                yield news
    finally:
        await runs.aclose()


def _asked_on(event: Event) -> str | None:
    """The task whose question this is."""
    match event:
        case StatusChanged() if event.status.state is State.INPUT_REQUIRED:
            return event.status_update.task_id
        case TaskCreated() if event.task.state is State.INPUT_REQUIRED:
            return event.task.id
        case _:
            return None
