"""Clients that never give up, what they were told, and when the node under them is killed.

A client writes down what it was told the moment it was told. Whatever breaks, it asks again with the same
key and the same message once the node is back.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.acceptance.checker import keep_journals
from tests.acceptance.nodes import BROKEN, Caller, Died, Node, Refused, aclosing, message

T = TypeVar("T")

UNAVAILABLE = -32093
NOT_CANCELABLE = -32002
UNSUPPORTED = -32004
OVER = {f"TASK_STATE_{state}" for state in ("COMPLETED", "FAILED", "CANCELED", "REJECTED")}


class Told:
    """What clients were told, in the order in which they heard it."""

    def __init__(self, path: Path) -> None:
        self.all: list[dict[str, Any]] = []
        self.counts = dict.fromkeys(("begun", "ack", "event", "done", "sent"), 0)
        self.on: Callable[[str], None] = lambda kind: None
        # Whole lines at once, so that what a campaign heard can be read while it runs, or after it broke.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._streams = 0

    def note(self, kind: str, **rest: Any) -> None:
        one = {"kind": kind, "t": time.monotonic_ns(), **rest}
        self.all.append(one)
        os.write(self._file, json.dumps(one).encode() + b"\n")
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.on(kind)

    def ack(self, key: str, task: dict[str, Any]) -> None:
        said = task.get("artifacts") or ()
        text = "".join(part.get("text", "") for artifact in said for part in artifact["parts"])
        self.note("ack", key=key, task=task["id"], state=task["status"]["state"], text=text)

    def stream(self) -> int:
        self._streams += 1
        return self._streams

    def close(self) -> None:
        os.close(self._file)


class Client:
    """One caller of a node that may die at any moment."""

    def __init__(self, node: Node, told: Told, caller: Caller, seed: str) -> None:
        self.node = node
        self.told = told
        self.caller = caller
        self.random = random.Random(seed)
        self.name = seed
        self._count = 0

    def key(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}"

    async def again(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Until it is answered, by whichever process."""
        while True:
            await self.node.is_ready.wait()
            if self.node.broken is not None:
                raise self.node.broken
            try:
                self.told.note("sent")
                return await ask()
            except BROKEN:
                # Killed, or about to be found so; a node that is alive answers at once.
                await asyncio.sleep(0)
            except Refused as refused:
                if refused.code != UNAVAILABLE:
                    raise

    async def send(
        self, script: str, *, task: str = "", now: bool = False, agent: str = ""
    ) -> dict[str, Any]:
        key = self.key()
        params = {**message(script, key, task), "configuration": {"returnImmediately": now}}

        async def ask() -> dict[str, Any]:
            answer: dict[str, Any] = (await self.caller.ask("SendMessage", params, key, agent))["task"]
            self.told.ack("" if task else key, answer)
            return answer

        return await self.again(ask)

    async def get(self, task: str, agent: str = "") -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            answer: dict[str, Any] = await self.caller.get(task, agent)
            self.told.ack("", answer)
            return answer

        return await self.again(ask)

    async def cancel(self, task: str) -> None:
        async def ask() -> None:
            try:
                answer = await self.caller.ask("CancelTask", {"id": task})
            except Refused as refused:
                if refused.code != NOT_CANCELABLE:
                    raise
            else:
                self.told.ack("", answer)

        await self.again(ask)

    async def stream(self, script: str, agent: str = "") -> str:
        """Send and follow; after a break resume with the cursor, or send again if nothing was heard."""
        key = self.key()
        task, at = "", 0

        async def follow() -> None:
            nonlocal task, at
            number, after = self.told.stream(), at if task else 0
            if task:
                events = self.caller.watch("SubscribeToTask", {"id": task}, after=at, agent=agent)
            else:
                events = self.caller.watch("SendStreamingMessage", message(script, key), key, agent=agent)
            async with aclosing(events):
                async for seq, event in events:
                    if not task:
                        task = event["task"]["id"]
                        self.told.ack(key, event["task"])
                    self.told.note("event", stream=number, task=task, after=after, id=seq, data=event)
                    at = seq
                    if _state(event) == "TASK_STATE_INPUT_REQUIRED":
                        # A stream that was resumed would go on past the question.
                        return
                    if _state(event) in OVER:
                        return
            raise ConnectionResetError("the stream ended before its task")

        await self.again(follow)
        return task

    async def subscribe(self, task: str) -> None:
        """Follow without a cursor, as a plain client does."""

        async def follow() -> None:
            number = self.told.stream()
            try:
                async with aclosing(self.caller.watch("SubscribeToTask", {"id": task})) as events:
                    async for seq, event in events:
                        self.told.note("event", stream=number, task=task, after=None, id=seq, data=event)
                        if _state(event) in OVER:
                            return
                raise ConnectionResetError("the stream ended before its task")
            except Refused as refused:
                # It is over: nothing more will happen.
                if refused.code != UNSUPPORTED:
                    raise

        await self.again(follow)

    # Operations, each a story.

    async def operate(self) -> None:
        story = self.random.choice(STORIES)
        self.told.note("begun", story=story.__name__)
        await story(self)
        self.told.note("done", story=story.__name__)

    def script(self) -> str:
        return " ".join(self.random.choices(("c", "c3", "s", "s", "c12"), k=self.random.randint(1, 6)))


def _state(event: dict[str, Any]) -> str:
    status = (event.get("statusUpdate") or event.get("task") or {}).get("status") or {}
    return str(status.get("state"))


class Tended:
    """Starts a node again whenever it dies, noting first what the dead one had kept."""

    def __init__(self, node: Node, then: Callable[[], None] = lambda: None) -> None:
        self.node = node
        self._then = then
        self._is_over = False
        # How those ended that were not asked to.
        self.codes: list[int] = []
        self._task = asyncio.create_task(self._tend())

    async def _tend(self) -> int:
        while True:
            code = await self.node.ended()
            if self._is_over:
                return code
            self.codes.append(code)
            keep_journals(self.node.path, self.node.effects, time.monotonic_ns())
            try:
                await self.node.start(fresh=False)
            except Died as died:
                self.node.broken = died
                self.node.is_ready.set()
                raise
            self._then()

    async def stop(self, how: int = signal.SIGTERM) -> int:
        """End it in good order, unless it just died; its exit code."""
        self._is_over = True
        ready = asyncio.create_task(self.node.is_ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        self.node.kill(how)
        return await self._task

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def wait(client: Client) -> None:
    await client.send(client.script())


async def leave(client: Client) -> None:
    await client.send(client.script(), now=True)


async def follow(client: Client) -> None:
    await client.stream(client.script())


async def answer(client: Client) -> None:
    """A question, answered; before and after it steps and chunks."""
    task = await client.send(f"{client.script()} a {client.script()}")
    if task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED":
        await client.send("yes", task=task["id"])


async def come_back(client: Client) -> None:
    """Left at once, heard of again without a cursor, read at the end."""
    task = await client.send(client.script() + " c30", now=True)
    await client.subscribe(task["id"])
    await client.get(task["id"])


async def give_up(client: Client) -> None:
    task = await client.send("c s c100 s c100 a", now=True)
    await client.cancel(task["id"])


async def risk(client: Client) -> None:
    """An agent that does not want to be run again."""
    await client.send(client.script(), agent="brittle")


STORIES = (wait, wait, leave, follow, follow, answer, answer, come_back, give_up, risk)


class Killer:
    """Kills the node at moments of a seeded schedule, in terms of what clients sent, were told and were shown."""

    def __init__(self, node: Node, told: Told, seed: str) -> None:
        self.node = node
        self.told = told
        self.random = random.Random(seed)
        self.kills = 0
        self._kind = ""
        self._left = 0
        self._is_due = asyncio.Event()
        told.on = self._count

    def _count(self, kind: str) -> None:
        if kind == self._kind and self._left:
            self._left -= 1
            if not self._left:
                self.node.kill()
                self._is_due.set()

    async def run(self, kills: int, most: int) -> None:
        """Start the node, let it live a while, kill it; at the end it is up. Each tenth start is a fresh one."""
        await self.node.start()
        while self.kills < kills:
            self._is_due.clear()
            self._kind = self.random.choice(("sent", "ack", "event"))
            self._left = self.random.randint(1, most * (5 if self._kind == "event" else 1))
            await self._is_due.wait()
            await self.node.ended()
            self.kills += 1
            keep_journals(self.node.path, self.node.effects, time.monotonic_ns())
            await self.node.start(fresh=self.kills % 10 == 0)


async def loaded(
    node: Node,
    told: Told,
    seed: int,
    clients: int,
    campaign: Awaitable[None],
    met: Callable[[Caller], None] = lambda caller: None,
) -> None:
    """Clients at work until the campaign is through; each ends the story it is in."""
    is_over = False

    async def work(client: Client) -> None:
        while not is_over:
            await client.operate()

    async with Caller(node.url) as caller, asyncio.TaskGroup() as group:
        met(caller)
        for number in range(clients):
            group.create_task(work(Client(node, told, caller, f"{seed}.{number}")))
        await campaign
        is_over = True
