"""Start and recovery: how soon a node answers over many stored tasks, and what is left after kill -9."""

import http.client
import shutil
import signal
import sys
import threading
import time
import uuid

from book import Book
from environments import place
from nodes import OURS_SQLITE, ask, message, said, start, verify_echo
from processes import Failed, Served, load, stop

SETTLE_SECONDS_MAX = 60


class Seeded:
    """A SQLite store that a node filled with finished tasks by answering as many messages."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.folder = place() / "stores" / f"seeded-{uuid.uuid4().hex}"
        self.gate = self.folder / "gate"
        self.is_filled = False

    @property
    def store(self) -> str:
        return f"sqlite:{self.folder / 'store.db'}"

    def node(self) -> Served:
        return start(OURS_SQLITE, "gated", self.store, {"BENCH_GATE": str(self.gate)})

    def fill(self) -> None:
        if self.is_filled:
            return
        print(f"bench: storing {self.tasks} tasks", file=sys.stderr, flush=True)
        self.folder.mkdir(parents=True)
        served = self.node()
        try:
            load(served, 600, connections=64, count=self.tasks)
        finally:
            stop(served.process)
        self.is_filled = True

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def first_answer(book: Book, seeded: Seeded, times: int) -> None:
    """From the start of the process to the first completed answer, over the filled store and an empty one."""
    try:
        seeded.fill()
        for turn in range(times):
            book.add("start", "ours SQLite", "stored", turn, _started_in(seeded))
        empty = Seeded(0)
        empty.folder.mkdir(parents=True)
        for turn in range(times):
            book.add("start", "ours SQLite", "empty", turn, _started_in(empty))
        empty.remove()
    except (Failed, OSError, KeyError) as problem:
        book.fault("start", "ours SQLite", "stored", problem)


def _started_in(seeded: Seeded) -> dict:
    begin = time.perf_counter()
    served = seeded.node()
    try:
        verify_echo(served, 1)
        return {"first_answer_ms": 1000 * (time.perf_counter() - begin), "tasks": seeded.tasks}
    finally:
        stop(served.process)


def recovery(book: Book, seeded: Seeded, active: int) -> None:
    """kill -9 with active tasks and calls in flight; then every acknowledged task is asked for by its id."""
    try:
        seeded.fill()
        seeded.gate.unlink(missing_ok=True)
        figures = _recovered(seeded, active)
    except (Failed, OSError, KeyError, ValueError) as problem:
        book.fault("recovery", "ours SQLite", "kill -9", problem)
        return
    book.add("recovery", "ours SQLite", "kill -9", 0, figures)


def _recovered(seeded: Seeded, active: int) -> dict:
    served = seeded.node()
    try:
        waiting = [_left_waiting(served) for _ in range(active)]
        acknowledged = _killed_under_load(served)
    finally:
        stop(served.process, signal.SIGKILL)
    begin = time.perf_counter()
    served = seeded.node()
    try:
        verify_echo(served, 1)
        ready = time.perf_counter() - begin
        lost = sum(not _holds(served, task, text) for task, text in acknowledged.items())
        seeded.gate.touch()
        settled = _settled(served, waiting)
        return {
            "ready_s": ready,
            "active": active,
            "acknowledged": len(acknowledged),
            "lost": lost + active - settled,
            "settled_s": time.perf_counter() - begin,
        }
    finally:
        stop(served.process)


def _left_waiting(served: Served) -> str:
    configuration = {"returnImmediately": True}
    task = ask(served, "SendMessage", {**message("wait for the gate"), "configuration": configuration})[
        "task"
    ]
    return task["id"]


def _killed_under_load(served: Served) -> dict[str, str]:
    """The tasks whose completed answer had arrived before the process was gone, with what each must hold."""
    acknowledged: dict[str, str] = {}

    def caller(number: int) -> None:
        for attempt in range(100_000):
            text = f"echo {number} {attempt}"
            try:
                task = ask(served, "SendMessage", message(text))["task"]
            except (OSError, ValueError, Failed, http.client.HTTPException):
                return
            acknowledged[task["id"]] = text

    callers = [threading.Thread(target=caller, args=(number,), daemon=True) for number in range(8)]
    for one in callers:
        one.start()
    time.sleep(1.0)
    served.process.kill()
    for one in callers:
        one.join(30)
    if not acknowledged:
        raise Failed("nothing was acknowledged before the kill")
    return acknowledged


def _holds(served: Served, task_id: str, text: str) -> bool:
    try:
        task = ask(served, "GetTask", {"id": task_id})
    except Failed:
        return False
    return task["status"]["state"] == "TASK_STATE_COMPLETED" and said(task) == text


def _settled(served: Served, waiting: list[str]) -> int:
    """How many of the interrupted tasks are completed in the end, with the right words."""
    left, deadline = set(waiting), time.monotonic() + SETTLE_SECONDS_MAX
    while left and time.monotonic() < deadline:
        left -= {task for task in left if _holds(served, task, "wait for the gate")}
        time.sleep(0.05)
    return len(waiting) - len(left)
