"""The judge itself: a history that is true passes, and each way of cheating is found."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.acceptance.checker import judge, keep_journals
from tests.acceptance.load import Client, Told, answer, follow, leave, wait
from tests.acceptance.nodes import Caller, serving, until_quiet

Notes = list[dict[str, Any]]


async def true_history(folder: Path) -> Notes:
    """What two clients were told by a node that nobody disturbed."""
    told = Told(folder / "told.jsonl")
    async with serving(folder) as node:
        await node.start()
        async with Caller(node.url) as caller:
            for story in (wait, follow, answer, leave):
                client = Client(node, told, caller, story.__name__)
                told.note("begun")
                await story(client)
                told.note("done")
            first = Client(node, told, caller, "first")
            await first.stream("c c s c")
            await until_quiet(caller)
        await node.stop()
    told.close()
    return told.all


def last_of(db: sqlite3.Connection) -> tuple[int, int]:
    """The newest task's log, and its length."""
    return db.execute("SELECT id, seq FROM logs WHERE kind = 'task' ORDER BY id DESC LIMIT 1").fetchone()


def lose_a_task(db: sqlite3.Connection) -> None:
    log, _ = last_of(db)
    db.execute("DELETE FROM appends WHERE log = ?", (log,))
    db.execute("DELETE FROM logs WHERE id = ?", (log,))


def lose_an_event(db: sqlite3.Connection) -> None:
    log, _ = last_of(db)
    db.execute(
        "DELETE FROM appends WHERE log = ? AND last = (SELECT min(last) FROM appends WHERE log = ? AND last > 1)",
        (log, log),
    )


def lose_the_end(db: sqlite3.Connection) -> None:
    log, seq = last_of(db)
    (before,) = db.execute("SELECT max(last) FROM appends WHERE log = ? AND last < ?", (log, seq)).fetchone()
    db.execute("DELETE FROM appends WHERE log = ? AND last = ?", (log, seq))
    db.execute("UPDATE logs SET seq = ?, state = 'working' WHERE id = ?", (before, log))


def change_a_word(db: sqlite3.Connection) -> None:
    log, _ = last_of(db)
    # The first chunk says `0.0 `: same length, other word.
    for position, body in db.execute("SELECT position, body FROM appends WHERE log = ?", (log,)).fetchall():
        db.execute(
            "UPDATE appends SET body = ? WHERE position = ?", (body.replace(b'"0.0 "', b'"9.9 "'), position)
        )


def go_on_after_the_end(db: sqlite3.Connection) -> None:
    log, seq = last_of(db)
    body = json.dumps(
        {"statusUpdate": {"taskId": "", "contextId": "", "status": {"state": "TASK_STATE_WORKING"}}}
    )
    db.execute(
        "INSERT INTO appends SELECT max(position) + 1, ?, ?, 1, ? FROM appends", (log, seq + 1, body.encode())
    )
    db.execute("UPDATE logs SET seq = ?, state = 'working' WHERE id = ?", (seq + 1, log))


def double_a_task(db: sqlite3.Connection) -> None:
    log, _ = last_of(db)
    rest = "kind, owner, tenant, agent, context, state, at, hidden, seq, append_id, trace"
    db.execute(f"INSERT INTO logs SELECT -id, name || 'x', {rest} FROM logs WHERE id = ?", (log,))
    db.execute(
        "INSERT INTO appends SELECT -position, -log, last, count, body FROM appends WHERE log = ?", (log,)
    )


def show_an_event_twice(told: Notes) -> None:
    at = max(place for place, one in enumerate(told) if one["kind"] == "event")
    told.insert(at, told[at])


def skip_an_event(told: Notes) -> None:
    del told[max(place for place, one in enumerate(told) if one["kind"] == "event") - 1]


def answer_a_key_twice(told: Notes) -> None:
    first, *_, last = [one for one in told if one["kind"] == "ack" and one["key"]]
    told.append({**last, "key": first["key"]})


def fail_most(told: Notes) -> None:
    told[:] = [one for one in told if one["kind"] != "done"]


STORES: dict[Callable[[sqlite3.Connection], None], str] = {
    lose_a_task: "lost:",
    lose_an_event: "come",
    lose_the_end: "is not in the log",
    change_a_word: "shown otherwise",
    go_on_after_the_end: "after the end:",
    double_a_task: "doubled:",
}
TOLD: dict[Callable[[Notes], None], str] = {
    show_an_event_twice: "came",
    skip_an_event: "came",
    answer_a_key_twice: "doubled:",
    fail_most: "void:",
}


async def test_the_judge_passes_what_is_true_and_finds_each_way_of_cheating(tmp_path: Path):
    """Shows: F01"""
    told = await true_history(tmp_path)
    path, effects = tmp_path / "store.db", tmp_path / "effects"
    assert judge(path, told, effects).wrong == []
    for cheat, words in STORES.items():
        other = tmp_path / cheat.__name__ / "store.db"
        other.parent.mkdir()
        shutil.copyfile(path, other)
        with closing(sqlite3.connect(other)) as db, db:
            cheat(db)
        wrong = judge(other, told, effects).wrong
        assert any(words in one for one in wrong), (cheat.__name__, wrong)
    for cheat, words in TOLD.items():
        notes = copy.deepcopy(told)
        cheat(notes)
        wrong = judge(path, notes, effects).wrong
        assert any(words in one for one in wrong), (cheat.__name__, wrong)


async def test_the_judge_finds_a_step_that_ran_again(tmp_path: Path):
    """Shows: F01"""
    told = await true_history(tmp_path)
    file = next((tmp_path / "effects").glob("*.jsonl"))
    ran = next(line for line in file.read_text().splitlines() if '"ran"' in line)
    with file.open("a") as notes:
        notes.write(json.dumps({**json.loads(ran), "t": time.monotonic_ns()}) + "\n")
    assert any("again:" in one for one in judge(tmp_path / "store.db", told, tmp_path / "effects").wrong)


async def test_the_judge_learns_from_a_dead_nodes_file_which_steps_it_had_kept(tmp_path: Path):
    """Shows: F01"""
    told = Told(tmp_path / "told.jsonl")
    async with serving(tmp_path, GATE=str(tmp_path / "gate")) as node:
        await node.start()
        async with Caller(node.url) as caller:
            await Client(node, told, caller, "one").send("s a")
        node.kill()
        await node.ended()
        keep_journals(node.path, node.effects, time.monotonic_ns())
    told.close()
    kept = [json.loads(line) for line in (node.effects / "kept.jsonl").read_text().splitlines()]
    assert [(one["what"], one["step"]) for one in kept] == [("kept", "s0")]
    assert judge(node.path, told.all, node.effects).wrong == []
