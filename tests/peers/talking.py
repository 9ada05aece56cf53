"""Two ways to ask an agent, with one face: through another party's client program, and through our client.

Who calls is all that a case does not know.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any, Protocol

import msgspec

from dragoman import AgentError, Client, Fault, Logged
from dragoman import Message as OurMessage
from dragoman.wire.versions import Dialect
from tests.peers.values import Card, Item, Json, Message, Page, Task, spell_message, spell_wishes

__all__ = ["Agents", "Ours", "Refused", "Talk", "Theirs", "driving", "environ", "running"]

START_SECONDS_MAX = 60
ASK_SECONDS_MAX = 6
END_SECONDS_MAX = 3
RESUMES_MAX = 3
# By the words that a case uses for an agent: its address. One may answer with a message instead of a task. `card` is
# where the card is, if the agent's own address does not say.
Agents = dict[str, str]


class Refused(Exception):
    """The agent's error, by the name that the client has for it."""

    def __init__(self, name: str, words: str = "", seen: list[Item] | None = None) -> None:
        super().__init__(f"{name}: {words}")
        self.name = name
        self.seen = seen or []


class Talk(Protocol):
    """What a case may ask of an agent. Streams come as a whole, or as far as `leave_after` items."""

    dialect: Dialect
    asks_us: bool

    @property
    def faults(self) -> list[Fault]: ...
    async def card(self) -> Card: ...
    async def send(self, text: str, *parts: Json, agent: str = ..., **more: Any) -> Task | Message: ...
    async def stream(
        self, text: str, *parts: Json, agent: str = ..., leave_after: int = ..., **more: Any
    ) -> list[Item]: ...
    async def get(self, task_id: str, history_length: int | None = None) -> Task: ...
    async def list(self, **which: Any) -> Page: ...
    async def cancel(self, task_id: str) -> Task: ...
    async def subscribe(self, task_id: str, leave_after: int = 0) -> list[Item]: ...


def message(text: str, parts: tuple[Json, ...], task_id: str, context_id: str) -> Json:
    """A message of a caller in the words of 1.0."""
    said: Json = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}, *parts]}
    if task_id:
        said["taskId"] = task_id
    if context_id:
        said["contextId"] = context_id
    return said


class Ours:
    """Our client, calling an agent that somebody else serves."""

    asks_us = False

    def __init__(self, client: Client, dialect: Dialect, card_at: str) -> None:
        self._client = client
        self._card_at = card_at
        self.dialect = dialect

    @classmethod
    @asynccontextmanager
    async def talk(cls, agents: Agents, dialect: Dialect) -> AsyncIterator[Ours]:
        options: dict[str, Any] = {"dialect": dialect.version, "binding": dialect.binding}
        options |= {"timeout_seconds": ASK_SECONDS_MAX, "resume_attempts": RESUMES_MAX}
        async with Client(agents["tasks"], **options) as client:
            yield cls(client, dialect, agents.get("card", agents["tasks"]))

    @property
    def faults(self) -> list[Fault]:
        return list(self._client.faults)

    async def card(self) -> Card:
        async with Client(self._card_at) as client:
            return Card.read(_plain(await client.card()))

    async def send(
        self,
        text: str,
        *parts: Json,
        agent: str = "tasks",
        task_id: str = "",
        context_id: str = "",
        **wishes: Any,
    ) -> Task | Message:
        said = msgspec.convert(message(text, parts, task_id, context_id), OurMessage)
        with _refusals():
            answer = _plain(await self._client.send(said, **wishes))
        return Task.read(answer) if "status" in answer else Message.read(answer)

    async def stream(
        self,
        text: str,
        *parts: Json,
        agent: str = "tasks",
        leave_after: int = 0,
        task_id: str = "",
        context_id: str = "",
    ) -> list[Item]:
        said = msgspec.convert(message(text, parts, task_id, context_id), OurMessage)
        return await _heard(self._client.stream(said), leave_after)

    async def get(self, task_id: str, history_length: int | None = None) -> Task:
        with _refusals():
            return Task.read(_plain(await self._client.get(task_id, history_length=history_length)))

    async def list(self, **which: Any) -> Page:
        with _refusals():
            return Page.read(_plain(await self._client.list(**which)))

    async def cancel(self, task_id: str) -> Task:
        with _refusals():
            return Task.read(_plain(await self._client.cancel(task_id)))

    async def subscribe(self, task_id: str, leave_after: int = 0) -> list[Item]:
        return await _heard(self._client.subscribe(task_id), leave_after)


async def _heard(events: Any, leave_after: int) -> list[Item]:
    seen: list[Item] = []
    with _refusals():
        async with aclosing(events):
            async for logged in events:
                assert isinstance(logged, Logged)
                seen.append(Item.read(_plain(logged.event)))
                if len(seen) == leave_after:
                    break
    return seen


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except AgentError as wrong:
        raise Refused(wrong.name, wrong.message) from wrong


def _plain(value: Any) -> Json:
    return json.loads(msgspec.json.encode(value))


class Driver:
    """Another party's client as a process: a question a line goes in, an answer a line comes out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Json]] = {}
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    async def ask(self, what: str, **asked: Any) -> Json:
        """What the client saw. It has bounded time, and what it says about a failure is in the failure."""
        number = next(self._numbers)
        answer = self._waiting[number] = Future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "ask": what, "with": asked}) + "\n")
        self._process.stdin.flush()
        async with asyncio.timeout(ASK_SECONDS_MAX):
            return await asyncio.wrap_future(answer)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting.pop(answer["id"])
            # Nobody waits for an answer that comes too late.
            if waiting.set_running_or_notify_cancel():
                waiting.set_result(answer)
        for waiting in self._waiting.values():
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(AssertionError("the client program ended"))


class Theirs:
    """Another party's client, calling an agent of ours."""

    asks_us = True

    def __init__(self, driver: Driver, dialect: Dialect, spelling: str) -> None:
        self._driver = driver
        self._spelling = spelling
        self.dialect = dialect
        self.faults: list[Fault] = []

    async def card(self) -> Card:
        return Card.read(await self._asked("card"))

    async def send(
        self,
        text: str,
        *parts: Json,
        agent: str = "tasks",
        wait: bool = True,
        history_length: int | None = None,
        version: str = "",
        **place: str,
    ) -> Task | Message:
        params = self._params(text, parts, wait, history_length, **place)
        more = {"version": version} if version else {}
        item = Item.read(await self._asked("send", agent=agent, params=params, **more))
        answer = item.task or item.message
        assert answer is not None, f"a {item.kind} answers no message"
        return answer

    async def stream(
        self, text: str, *parts: Json, agent: str = "tasks", leave_after: int = 0, **place: str
    ) -> list[Item]:
        params = self._params(text, parts, True, None, **place)
        return await self._heard("stream", agent=agent, params=params, leave_after=leave_after)

    async def send_nothing(self) -> None:
        """A message without any part."""
        params = self._params("", (), True, None)
        params["message"]["parts"] = []
        await self._asked("send", agent="tasks", params=params)

    async def hook(self, task_id: str) -> None:
        """Ask for a webhook."""
        hook = {"taskId": task_id, "id": "hook", "url": "https://example.com/hook"}
        await self._asked("hook", params=hook)

    async def get(self, task_id: str, history_length: int | None = None) -> Task:
        length = {} if history_length is None else {"historyLength": history_length}
        return Task.read(await self._asked("get", params={"id": task_id, **length}))

    async def list(self, **which: Any) -> Page:
        state = which.pop("state", None)
        params = {"".join(_camel(name)): value for name, value in which.items() if value not in (None, "")}
        return Page.read(
            await self._asked("list", params=params | ({"status": state.value} if state else {}))
        )

    async def cancel(self, task_id: str) -> Task:
        return Task.read(await self._asked("cancel", params={"id": task_id}))

    async def subscribe(self, task_id: str, leave_after: int = 0) -> list[Item]:
        return await self._heard("subscribe", params={"id": task_id}, leave_after=leave_after)

    def _params(
        self,
        text: str,
        parts: tuple[Json, ...],
        wait: bool,
        history_length: int | None,
        task_id: str = "",
        context_id: str = "",
    ) -> Json:
        said = spell_message(self._spelling, message(text, parts, task_id, context_id))
        wishes = spell_wishes(self._spelling, wait, history_length)
        return {"message": said, **({"configuration": wishes} if wishes else {})}

    async def _asked(self, what: str, **asked: Any) -> Json:
        answer = await self._driver.ask(what, **asked)
        if "wrong" in answer:
            raise Refused(answer["wrong"], answer["words"])
        saw: Json = answer["saw"]
        return saw

    async def _heard(self, what: str, **asked: Any) -> list[Item]:
        answer = await self._driver.ask(what, **asked)
        seen = [Item.read(item) for item in answer["saw"]]
        if "wrong" in answer:
            raise Refused(answer["wrong"], answer["words"], seen)
        return seen


def _camel(name: str) -> Iterator[str]:
    first, *rest = name.split("_")
    yield first
    yield from (word.capitalize() for word in rest)


@contextmanager
def driving(command: list[str], log: Path) -> Iterator[Driver]:
    """A client as a process of its own; when its input ends, so does it."""
    with _process(command, environ(), log, stdin=subprocess.PIPE) as process:
        yield Driver(process)
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[Agents]:
    """A server as a process of its own; it says on a line where its agents are when it is ready."""
    with _process(command, environment, log) as process:
        assert process.stdout is not None
        late = Timer(START_SECONDS_MAX, process.kill)
        late.start()
        line = process.stdout.readline().strip()
        late.cancel()
        assert line, f"{command} ended, or was not ready in {START_SECONDS_MAX} s; see {log}"
        agents: Agents = json.loads(line)
        yield agents
        process.send_signal(signal.SIGTERM)


@contextmanager
def _process(
    command: list[str], environment: dict[str, str], log: Path, **more: Any
) -> Iterator[subprocess.Popen[str]]:
    """A process that is over at the end, whatever happens. What it complains of is in the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as complaints:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True, **more
        )
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            try:
                process.wait(timeout=END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def environ() -> dict[str, str]:
    """What other parties' programs may know of ours: nothing."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
