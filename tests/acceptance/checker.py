"""The judge of the fault campaigns: reads the store's file and the logs of clients and agents, trusts nobody.

It imports nothing of the product. What it knows of the file is its schema; what it knows of the protocol is
written down here again. `python -m tests.acceptance.checker STORE TOLD EFFECTS` judges by hand.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

TERMINAL = {"completed", "failed", "canceled", "rejected"}
WAITING = {"input-required", "auth-required"}
MAY_SUCCEED = 0.8


def word(state: str) -> str:
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def expected(script: str, answer: str = "yes") -> str:
    """What an agent that played this script to its end has said."""
    said, last = [], ""
    for place, step in enumerate(script.split()):
        kind, count = step[0], int(step[1:] or 1)
        if kind in "ct":
            said += [f"{place}.{number}{last} " for number in range(count)]
        elif kind == "f":
            said += ["x" * 1023 + " "] * count
        elif kind == "s":
            last = f"[s{place}]"
        elif kind == "a":
            last = answer
    return "".join(said)


@dataclass
class Folded:
    """A task as its events make it."""

    state: str = "unknown"
    artifacts: dict[str, list[Any]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    reason: str = ""

    def apply(self, event: dict[str, Any]) -> None:
        if "task" in event:
            task = event["task"]
            self.state = word(task["status"]["state"])
            self.messages = [message["messageId"] for message in task.get("history", ())]
            self.artifacts = {a["artifactId"]: list(a["parts"]) for a in task.get("artifacts", ())}
        elif "statusUpdate" in event:
            update = event["statusUpdate"]
            self.state = word(update["status"]["state"])
            self.reason = (update.get("metadata") or {}).get("reason", self.reason)
        elif "artifactUpdate" in event:
            update = event["artifactUpdate"]
            artifact = update["artifact"]
            if update.get("append"):
                self.artifacts.setdefault(artifact["artifactId"], []).extend(artifact["parts"])
            else:
                self.artifacts[artifact["artifactId"]] = list(artifact["parts"])
        elif "messageAdded" in event:
            self.messages.append(event["messageAdded"]["messageId"])
            if self.state in WAITING:
                self.state = "working"

    @property
    def text(self) -> str:
        return text_of(self.artifacts.values())


def text_of(artifacts: Iterable[Iterable[Any]]) -> str:
    return "".join(part.get("text", "") for parts in artifacts for part in parts)


def is_shown(event: dict[str, Any]) -> bool:
    return not ("messageAdded" in event or "cancelAsked" in event)


class Stored:
    """Everything in a store's file, and what is wrong with the file itself."""

    def __init__(self, path: Path) -> None:
        self.wrong: list[str] = []
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.states: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        with copied(path) as db:
            found = db.execute("PRAGMA integrity_check").fetchall()
            if found != [("ok",)]:
                self.wrong.append(f"integrity: {found}")
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'logs'").fetchone():
                self._read(db)

    def _read(self, db: sqlite3.Connection) -> None:
        rows: dict[int, list[tuple[int, int, bytes]]] = defaultdict(list)
        for log, last, count, body in db.execute(
            "SELECT log, last, count, body FROM appends ORDER BY position"
        ):
            rows[log].append((last, count, body))
        for id, name, kind, agent, state, seq in db.execute(
            "SELECT id, name, kind, agent, state, seq FROM logs"
        ):
            events, at = [], 0
            for last, count, body in rows.pop(id, ()):
                if last != at + count:
                    self.wrong.append(f"{name}: after {at} come {count} events that end at {last}")
                at = last
                events += [body] if count == 1 else msgspec.msgpack.decode(body, type=list[bytes])
            if not at == seq == len(events):
                self.wrong.append(f"{name}: says it has {seq} events, has {len(events)} up to {at}")
            decoded = [json.loads(event) for event in events]
            if kind == "task":
                self.logs[name], self.states[name], self.agents[name] = decoded, state, agent
        if rows:
            self.wrong.append(f"{len(rows)} logs have events and no row")

    def folded(self, task: str, at: int | None = None) -> Folded:
        folded = Folded()
        for event in self.logs[task][:at]:
            folded.apply(event)
        return folded

    def history(self, task: str) -> list[str]:
        """The states a task was in, one after the other."""
        folded, states = Folded(), []
        for event in self.logs[task]:
            folded.apply(event)
            states.append(folded.state)
        return states


@contextmanager
def copied(path: Path) -> Iterator[sqlite3.Connection]:
    """The file and its write-ahead log, opened elsewhere: looking must change nothing."""
    with tempfile.TemporaryDirectory(prefix="dragoman-look-") as folder:
        for suffix in ("", "-wal"):
            if path.with_name(path.name + suffix).exists():
                shutil.copyfile(path.with_name(path.name + suffix), Path(folder, "store.db" + suffix))
        with closing(sqlite3.connect(Path(folder, "store.db"))) as db:
            # Nobody needs the copy after us.
            db.execute("PRAGMA synchronous = off")
            yield db


@dataclass
class Verdict:
    """What the judge found. `lost` and `doubled` count tasks, `wrong` says everything."""

    wrong: list[str]
    figures: dict[str, Any]

    def __str__(self) -> str:
        figures = " ".join(f"{name}={value}" for name, value in self.figures.items())
        return "\n".join([figures, *self.wrong[:40]])


def lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines of a log; what a kill cut off is not one."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def judge(path: Path, told: list[dict[str, Any]], effects: Path | None, *, quiet: bool = True) -> Verdict:
    """Everything that was promised, against everything that is there."""
    stored = Stored(path)
    wrong = list(stored.wrong)
    lost = _acks(stored, told, wrong)
    doubled = _keys(stored, told, wrong)
    _shapes(stored, wrong, quiet)
    shown = _streams(stored, told, wrong)
    _results(stored, told, wrong)
    again = _steps(stored, effects, wrong) if effects else 0
    begun = sum(one["kind"] == "begun" for one in told)
    done = sum(one["kind"] == "done" for one in told)
    if begun and done < MAY_SUCCEED * begun:
        wrong.append(f"void: only {done} of {begun} operations succeeded")
    states = defaultdict(int)
    for state in stored.states.values():
        states[state] += 1
    figures = {
        "tasks": len(stored.logs),
        "operations": begun,
        "succeeded": done,
        "acks": sum(one["kind"] == "ack" for one in told),
        "shown": shown,
        "lost": lost,
        "doubled": doubled,
        "steps_again": again,
        **{state.replace("-", "_"): count for state, count in sorted(states.items())},
    }
    return Verdict(wrong, figures)


def _acks(stored: Stored, told: list[dict[str, Any]], wrong: list[str]) -> int:
    lost = set()
    histories: dict[str, list[str]] = {}
    for one in told:
        if one["kind"] != "ack":
            continue
        task, state = one["task"], word(one["state"])
        if task not in stored.logs:
            lost.add(task)
            wrong.append(f"lost: {task} was acknowledged as {state}")
            continue
        states = histories.get(task) or histories.setdefault(task, stored.history(task))
        if state not in states:
            lost.add(task)
            wrong.append(
                f"lost: {task} was said to be {state}, its log knows {states[-1]} after {len(states)}"
            )
        elif state in TERMINAL and states[-1] != state:
            wrong.append(f"changed: {task} was said to be {state}, is {states[-1]}")
        elif state in TERMINAL and "text" in one and one["text"] != stored.folded(task).text:
            wrong.append(f"changed: {task} was said to have answered otherwise than it did")
    return len(lost)


def _keys(stored: Stored, told: list[dict[str, Any]], wrong: list[str]) -> int:
    doubled = 0
    tasks_of: dict[str, set[str]] = defaultdict(set)
    for one in told:
        if one["kind"] == "ack" and one.get("key"):
            tasks_of[one["key"]].add(one["task"])
    for key, tasks in tasks_of.items():
        if len(tasks) > 1:
            doubled += 1
            wrong.append(f"doubled: key {key} was answered with {sorted(tasks)}")
    places: dict[str, int] = defaultdict(int)
    for task in stored.logs:
        for message in stored.folded(task).messages:
            places[message] += 1
    for message, count in places.items():
        if count > 1:
            doubled += 1
            wrong.append(f"doubled: message {message} is there {count} times")
    return doubled


def _shapes(stored: Stored, wrong: list[str], quiet: bool) -> None:
    for task in stored.logs:
        if not stored.logs[task] or "task" not in stored.logs[task][0]:
            wrong.append(f"beginning: {task} does not begin with its task")
            continue
        states = stored.history(task)
        over = next((at for at, state in enumerate(states) if state in TERMINAL), None)
        if over is not None and over != len(states) - 1:
            wrong.append(f"after the end: {task} goes on after {states[over]}")
        if states[-1] != stored.states[task]:
            wrong.append(f"head: {task} is listed as {stored.states[task]} and is {states[-1]}")
        if quiet and states[-1] in ("submitted", "working"):
            wrong.append(f"stuck: {task} is {states[-1]}")


def _results(stored: Stored, told: list[dict[str, Any]], wrong: list[str]) -> None:
    """A task that is completed has said exactly what its script says, however often it was interrupted."""
    for task, events in stored.logs.items():
        if not events or "task" not in events[0]:
            continue  # said already
        script = text_of([events[0]["task"]["history"][0]["parts"]])
        folded = stored.folded(task)
        if folded.state == "completed" and folded.text != expected(script):
            wrong.append(f"artifact: {task} ({script}) has {folded.text[:200]!r}")
        if folded.state == "failed" and (stored.agents[task] != "brittle" or folded.reason != "interrupted"):
            wrong.append(f"failed: {task} of {stored.agents[task]}: {events[-1]}")


def _streams(stored: Stored, told: list[dict[str, Any]], wrong: list[str]) -> int:
    """Each connection showed its log from where it began, event by event, up to where it broke."""
    streams: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for one in told:
        if one["kind"] == "event":
            streams[one["stream"]].append(one)
    for shown in streams.values():
        problem = _stream(stored, shown)
        if problem:
            wrong.append(f"stream of {shown[0]['task']} after {shown[0]['after']}: {problem}")
    return sum(len(shown) for shown in streams.values())


def _stream(stored: Stored, shown: list[dict[str, Any]]) -> str:
    task, after = shown[0]["task"], shown[0]["after"]
    log = stored.logs.get(task)
    if log is None:
        return "its task is lost"
    at = 0
    for place, one in enumerate(shown):
        seq, data = one["id"], one["data"]
        if seq > len(log):
            return f"event {seq} was shown and is not in the log"
        if place == 0 and "task" in data and seq > 1:
            if after not in (None, 0, seq) and not (data["task"].get("metadata") or {}).get("gap"):
                return f"the task as of {seq} was shown to a reader who was at {after}"
            if (problem := _differs(stored, task, seq, data["task"])) is not None:
                return problem
        else:
            if place == 0 and after is not None:
                at = after if after != 1 or seq != 1 else 0
            missed = [n for n in range(at + 1, seq) if is_shown(log[n - 1])]
            if place == 0 and after is None:
                missed = []
            if missed or seq <= at:
                return f"after {at} came {seq}"
            if data != log[seq - 1]:
                return f"event {seq} was shown otherwise than it is"
        at = seq
    return ""


def _differs(stored: Stored, task: str, seq: int, shown: dict[str, Any]) -> str | None:
    folded, seen = stored.folded(task, seq), Folded()
    seen.apply({"task": shown})
    if (folded.state, folded.artifacts, folded.messages) != (seen.state, seen.artifacts, seen.messages):
        return f"as of {seq} it was {folded.state} {folded.text[:80]!r}, shown as {seen.state} {seen.text[:80]!r}"
    return None


def _steps(stored: Stored, effects: Path, wrong: list[str]) -> int:
    """A step whose result came back once never runs again, in whatever process."""
    notes = sorted((one for file in effects.glob("*.jsonl") for one in lines(file)), key=lambda one: one["t"])
    back: set[tuple[str, str]] = set()
    again = 0
    for one in notes:
        step = one["task"], one["step"]
        if one["what"] == "back":
            back.add(step)
        elif one["what"] == "ran":
            if one["task"] not in stored.logs:
                wrong.append(f"lost: {one['task']} did something to the world and is not there")
            if step in back:
                again += 1
                wrong.append(f"again: step {step} ran after its result was kept")
        elif one["what"] == "kept":
            back.add(step)
    return again


def keep_journals(path: Path, effects: Path, now: int) -> None:
    """Write down which steps a dead node's file holds: from now on none of them may run."""
    with copied(path) as db, (effects / "kept.jsonl").open("a") as file:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'logs'").fetchone():
            return
        query = "SELECT name, count, body FROM logs JOIN appends ON log = logs.id WHERE kind <> 'task'"
        for name, count, body in db.execute(query):
            for entry in [body] if count == 1 else msgspec.msgpack.decode(body, type=list[bytes]):
                key = json.loads(entry).get("key")
                if key is not None:
                    note = {"t": now, "what": "kept", "task": name.split(":")[1], "step": key}
                    file.write(json.dumps(note) + "\n")


if __name__ == "__main__":
    verdict = judge(Path(sys.argv[1]), lines(Path(sys.argv[2])), Path(sys.argv[3]))
    print(verdict)
    sys.exit(bool(verdict.wrong))
