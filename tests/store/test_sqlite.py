"""What only a store with a file promises: it survives the process, the power and a full disk, or says so."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from dragoman.model.task import State
from dragoman.store.lock import Lock, StoreHeld, read_lock
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite_file import SchemaNewer, connect
from dragoman.store.sqlite_writer import TIGHT_SECONDS
from dragoman.store.store import (
    Append,
    Batch,
    Conflict,
    Fenced,
    Head,
    NewWork,
    Present,
    Record,
    Refusal,
    StoreFull,
    StoreLost,
)
from tests.store.exercise import (
    COMPLETED,
    EVERYONE,
    HandClock,
    Worker,
    begin,
    claimed,
    growing,
    names,
    opening,
    put,
    refused,
    together,
    turn,
)


async def open_store(path: Path, **rest: Any) -> SqliteStore:
    return await SqliteStore.open(path / "store.db", clock=HandClock(), **rest)


def check_integrity(path: Path) -> None:
    db = apsw.Connection(str(path / "store.db"))
    assert db.pragma("integrity_check") == "ok"
    db.close()


# What outlives the process.


async def test_everything_committed_is_there_when_the_file_is_opened_again(tmp_path: Path):
    store = await open_store(tmp_path)
    await store.commit(Batch((opening("t1"),), (turn("t1", body=b"b"),), (Record("key", "k", b"t1", "t1"),)))
    await store.commit(Batch((growing("t1", 1, 3, COMPLETED, snapshot=b"s"),)))
    row, fed = store.row("t1"), store.feed(0)
    await store.close()

    store = await open_store(tmp_path)
    assert store.row("t1") == row
    assert list(store.read("t1", 1)) == [b"2", b"3", b"4"]
    assert store.snapshot("t1") == (4, b"s")
    assert store.record("key", "k") == b"t1"
    assert store.feed(0) == fed
    assert await names(store) == ["t1"]
    [work] = await claimed(store)
    assert (work.log, work.body) == ("t1", b"b")
    await refused(store, Batch((growing("t1", 2),)), Conflict)
    await refused(store, Batch(records=(Record("key", "k", b"x", is_new=True),)), Present)
    await store.commit(Batch((growing("t1", 4),)))
    await store.close()


async def test_an_append_whose_answer_was_lost_is_recognised_after_a_restart(tmp_path: Path):
    store = await open_store(tmp_path)
    first = Batch((opening("t1"),), (turn("t1"),), (Record("key", "k", b"t1", "t1", is_new=True),))
    await store.commit(first)
    await store.close()
    store = await open_store(tmp_path)
    await store.commit(first)
    [work] = await claimed(store)
    last = Batch((growing("t1", 1, 2, COMPLETED, snapshot=b"s"),), claim=work.claim, ends=(work.id,))
    await store.commit(last)
    await store.close()
    store = await open_store(tmp_path)
    await store.commit(last)
    assert len(store.read("t1", 0)) == 3
    assert await claimed(store) == []
    await store.close()


async def test_opening_the_file_ends_all_leases_and_fences_their_holders(tmp_path: Path):
    store = await open_store(tmp_path)
    store.offer(Worker(echo=1))
    await store.commit(Batch((opening("t1"),), (turn("t1"),)))
    await put(store, turn("t2", name="timer"))
    [named] = await claimed(store)
    await store.close()

    store = await open_store(tmp_path)
    await refused(store, Batch((growing("t1", 1),), claim=named.claim), Fenced)
    again = {work.log: work for work in await claimed(store)}
    assert {log: (work.epoch, work.attempts) for log, work in again.items()} == {"t1": (2, 2), "t2": (2, 2)}
    await refused(store, Batch((growing("t1", 1),), claim=named.claim), Fenced)
    await store.commit(Batch((growing("t1", 1),), claim=again["t1"].claim))
    await store.close()


async def test_positions_are_never_used_twice_even_when_everything_was_deleted(tmp_path: Path):
    last = 0
    for round_ in range(3):
        store = await open_store(tmp_path)
        await begin(store, "t1")
        await store.commit(Batch((growing("t1", 1, head=COMPLETED),)))
        positions = [fed.position for fed in store.feed(0)]
        assert len(positions) == 2
        assert last < positions[0] < positions[1], f"round {round_}"
        last = positions[1]
        assert await store.sweep(99.0, 10) == 1
        await store.close()


async def test_the_bound_on_active_tasks_is_known_after_a_restart(tmp_path: Path):
    store = await open_store(tmp_path, active_tasks_max=3)
    await begin(store, "t1", "t2", "t3")
    await store.commit(Batch((growing("t1", 1, head=COMPLETED),)))
    await store.close()
    store = await open_store(tmp_path, active_tasks_max=3)
    answers = await together(store, Batch((opening("t4"),)), Batch((opening("t5"),)))
    assert [type(answer) for answer in answers] == [type(None), StoreFull]
    await store.close()


async def test_logs_that_were_long_not_used_are_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.store.sqlite_known.LOGS_KNOWN_MAX", 2)
    store = await open_store(tmp_path)
    logs = [f"t{n}" for n in range(10)]
    await begin(store, *logs)
    for log in logs:
        await refused(store, Batch((replace(opening(log), id="other"),)), Conflict)
        await store.commit(Batch((growing(log, 1, head=COMPLETED),)))
        assert len(store.read(log, 0)) == 2
    assert [store.row(log) for log in logs] == list(reversed((await store.find(EVERYONE)).rows))
    await store.close()


# The file and its lock.


async def test_a_file_in_use_is_refused_with_the_address_of_its_node(tmp_path: Path):
    store = await open_store(tmp_path)
    store.set_address("http://127.0.0.1:41241")
    with pytest.raises(StoreHeld, match=re.escape("http://127.0.0.1:41241")):
        await open_store(tmp_path)
    holder = read_lock(tmp_path / "store.db")
    assert holder is not None
    assert (holder.pid, holder.address, len(holder.token) >= 32) == (
        os.getpid(),
        "http://127.0.0.1:41241",
        True,
    )
    await begin(store, "t1")
    await store.close()
    assert read_lock(tmp_path / "store.db") is None
    store = await open_store(tmp_path)
    assert store.lock.holder.token != holder.token
    await store.close()


def test_a_lock_left_by_a_process_that_died_is_nobodys(tmp_path: Path):
    path = tmp_path / "store.db"
    (tmp_path / "store.db.lock").write_text('{"pid":1,"token":"t","address":"http://gone"}')
    assert read_lock(path) is None
    lock = Lock(path, "mine")
    assert read_lock(path) == lock.holder
    lock.release()


async def test_nobody_else_may_read_the_files(tmp_path: Path):
    store = await open_store(tmp_path)
    await begin(store, "t1")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    names = ("store.db", "store.db-wal", "store.db-shm", "store.db.lock", "store.db.ballast")
    assert modes == dict.fromkeys(names, 0o600)
    await store.close()


async def test_a_file_of_a_later_release_is_refused_and_left_alone(tmp_path: Path):
    store = await open_store(tmp_path)
    await begin(store, "t1")
    await store.close()
    db = apsw.Connection(str(tmp_path / "store.db"))
    db.execute("UPDATE meta SET value = 9999 WHERE name = 'schema'")
    db.close()
    with pytest.raises(SchemaNewer, match="9999"):
        await open_store(tmp_path)
    assert read_lock(tmp_path / "store.db") is None


def test_every_commit_is_synced(tmp_path: Path):
    db = connect(tmp_path / "store.db")
    assert (db.pragma("journal_mode"), db.pragma("synchronous")) == ("wal", 2)
    db.close()


# Batches that cannot be written.


async def test_a_batch_that_cannot_be_written_takes_no_other_with_it(tmp_path: Path):
    store = await open_store(tmp_path)
    worker = Worker(echo=9)
    store.offer(worker)
    lone_surrogate = Record("key", "\ud800", b"v")
    answers = await together(
        store,
        Batch((opening("t1"),), (turn("t1"),)),
        Batch((opening("t2"),), (turn("t2"),), (lone_surrogate,)),
        Batch((opening("t3"),), (turn("t3"),)),
    )
    assert [type(answer) for answer in answers] == [type(None), Refusal, type(None)]
    assert [store.row(log) is not None for log in ("t1", "t2", "t3")] == [True, False, True]
    assert [work.log for work in worker.given] == ["t1", "t3"]
    assert worker.free == {"echo": 7}
    await store.close()


# Faults of the disk, by a file system of our own below SQLite.


class Disk(apsw.VFS):
    """The machine's file system, with room for so many bytes and syncs that fail; knows what was synced."""

    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)
        self.room: int | None = None
        self.is_failing = False
        self.syncs = 0
        self.synced: dict[str, bytes] = {}

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.synced.pop(filename, None)


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.disk = disk
        self.path = name if isinstance(name, str) or name is None else name.filename()

    def xWrite(self, data: bytes, offset: int) -> None:
        if self.disk.room is not None:
            if self.disk.room < len(data):
                raise apsw.FullError("no space left on device")
            self.disk.room -= len(data)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.disk.syncs += 1
        if self.disk.is_failing:
            raise apsw.IOError(os.strerror(errno.EIO))
        super().xSync(flags)
        if self.path:
            self.disk.synced[self.path] = Path(self.path).read_bytes()


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()
    gc.collect()


async def test_on_a_full_disk_writes_are_refused_and_reads_go_on_until_there_is_room(
    tmp_path: Path, disk: Disk
):
    """Shows: F16"""
    clock = HandClock()
    store = await SqliteStore.open(tmp_path / "store.db", clock=clock)
    worker = Worker(echo=10**6)
    store.offer(worker)
    acked: list[str] = []
    for cycle in range(20):
        disk.room = random.Random(cycle).randrange(0, 200_000)
        full = 0
        for n in range(1000):
            logs = [f"c{cycle}-{n}-{m}" for m in range(3)]
            batches = [
                Batch((Append(log, 0, log, (b"x" * 3000,), Head(State.SUBMITTED, 1.0), opening(log).label),))
                for log in logs
            ]
            answers = await together(store, *batches, Batch(work=(turn(logs[0]),)))
            acked += [log for log, answer in zip(logs, answers, strict=False) if answer is None]
            if any(answers):
                assert {type(answer) for answer in answers} == {StoreFull}
                full += 1
            if full == 3:
                break
        assert full == 3
        assert all(store.read(log, 0) for log in acked[-10:])
        assert (await store.find(EVERYONE)).total == len(acked)
        disk.room = None
        clock.time += TIGHT_SECONDS
        await begin(store, f"after{cycle}")
        acked.append(f"after{cycle}")
    assert worker.free["echo"] == 10**6 - len(worker.given)
    await store.close()
    check_integrity(tmp_path)
    store = await open_store(tmp_path)
    assert all(store.row(log) is not None for log in acked)
    assert (await store.find(EVERYONE)).total == len(acked)
    await store.close()


async def test_after_a_failed_sync_nothing_is_acknowledged_again(tmp_path: Path, disk: Disk):
    """Shows: F17"""
    lost: list[str] = []
    store = await open_store(tmp_path, on_lost=lambda: lost.append("lost"))
    await begin(store, "t1")
    disk.is_failing = True
    answers = await together(store, Batch((growing("t1", 1),)), Batch((opening("t2"),)))
    assert [type(answer) for answer in answers] == [StoreLost, StoreLost]
    assert lost == ["lost"]
    # The disk seems to be well again, but what it swallowed it will not give back.
    disk.is_failing = False
    syncs = disk.syncs
    await refused(store, Batch((growing("t1", 1),)), StoreLost)
    await refused(store, Batch((opening("t2"),)), StoreLost)
    await asyncio.wait_for(store.wait("t1", 1), 5)
    assert disk.syncs == syncs
    assert lost == ["lost"]
    await store.close()
    assert disk.syncs == syncs

    store = await open_store(tmp_path)
    assert store.row("t1") is not None
    await store.close()
    check_integrity(tmp_path)


async def test_a_sync_that_fails_while_the_log_is_folded_into_the_file_loses_the_store(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
):
    """Shows: F17"""
    monkeypatch.setattr("dragoman.store.sqlite_writer.WAL_PAGES_MAX", 0)
    store = await open_store(tmp_path)
    await begin(store, "t1")
    real = File.xSync

    def only_the_file(self: File, flags: int) -> None:
        if str(self.path).endswith(".db"):
            raise apsw.IOError(os.strerror(errno.EIO))
        real(self, flags)

    monkeypatch.setattr(File, "xSync", only_the_file)
    store.submit(Batch((opening("t2"),)), lambda refusal: None)
    # The commit before it was well, so somebody may still be answered.
    answers = await together(store, *[Batch((opening(f"late{n}"),)) for n in range(3)])
    await refused(store, Batch((opening("t3"),)), StoreLost)
    assert {type(answer) for answer in answers} == {StoreLost}
    await store.close()


async def test_a_commit_counts_even_when_the_file_has_no_room_to_fold_the_log_into(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
):
    """Shows: F16"""
    monkeypatch.setattr("dragoman.store.sqlite_writer.WAL_PAGES_MAX", 0)
    store = await open_store(tmp_path)
    await begin(store, "t1")
    real = File.xWrite

    def only_the_log(self: File, content: bytes, offset: int) -> None:
        if str(self.path).endswith(".db"):
            raise apsw.FullError("no space left on device")
        real(self, content, offset)

    monkeypatch.setattr(File, "xWrite", only_the_log)
    for n in range(1, 20):
        await store.commit(Batch((growing("t1", n),)))
    await store.close()
    store = await open_store(tmp_path)
    assert len(store.read("t1", 0)) == 20
    await store.close()


async def _ack_until_power_fails(tmp_path: Path, disk: Disk, seed: int) -> list[str]:
    """Work, then lose what was not synced: what was acknowledged by then, and only synced bytes in `cut`."""
    chance = random.Random(seed)
    store = await open_store(tmp_path)
    acked: list[str] = []

    async def work(worker: int) -> None:
        for n in range(100):
            log = f"w{worker}-{n}"
            await store.commit(Batch((opening(log),), (turn(log),)))
            acked.append(log)

    workers = [asyncio.create_task(work(worker)) for worker in range(4)]
    wanted = chance.randrange(1, 150)
    while len(acked) < wanted:
        await asyncio.sleep(0)
    known, synced = list(acked), dict(disk.synced)
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await store.close()
    cut = tmp_path / "cut"
    cut.mkdir()
    for path, content in synced.items():
        (cut / Path(path).name).write_bytes(content)
    return known


async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, disk: Disk, scale: int):
    """Shows: F03"""
    for seed in range(10 * scale):
        place = tmp_path / str(seed)
        place.mkdir()
        disk.synced.clear()
        acked = await _ack_until_power_fails(place, disk, seed)
        check_integrity(place / "cut")
        store = await open_store(place / "cut")
        assert [log for log in acked if store.row(log) is None] == []
        await store.close()
        shutil.rmtree(place)


async def test_the_power_cut_would_show_a_store_that_does_not_sync(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
):
    """Shows: F03"""
    monkeypatch.setattr(
        "dragoman.store.sqlite.connect", lambda path, **rest: _unsynced(connect(path, **rest))
    )
    acked = await _ack_until_power_fails(tmp_path, disk, 7)
    store = await open_store(tmp_path / "cut") if (tmp_path / "cut" / "store.db").exists() else None
    assert store is None or [log for log in acked if store.row(log) is None] != []
    if store is not None:
        await store.close()


def _unsynced(db: apsw.Connection) -> apsw.Connection:
    db.pragma("synchronous", "normal")
    return db


# Killed.

_VICTIM = """
import asyncio, sys
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import *
from tests.store.exercise import HandClock, Worker, opening, growing, turn, COMPLETED

async def main():
    store = await SqliteStore.open(sys.argv[1], clock=HandClock())
    async def work(name):
        n = 0
        while True:
            log = f"{sys.argv[2]}-{name}-{n}"
            await store.commit(Batch((opening(log),), (turn(log, name=log),)))
            sys.stdout.write(log + " 1\\n")
            sys.stdout.flush()
            await store.commit(Batch((growing(log, 1, 2, COMPLETED, snapshot=b"s"),), drops=(log,)))
            sys.stdout.write(log + " 3\\n")
            sys.stdout.flush()
            n += 1
    await asyncio.gather(*[work(n) for n in range(8)])

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path, scale: int):
    """Shows: F01"""
    acked: dict[str, int] = {}
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    for cycle in range(5 * scale):
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, str(tmp_path / "store.db"), str(cycle)],
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(random.Random(cycle).randrange(1, 400))]
        victim.send_signal(signal.SIGKILL)
        lines += victim.stdout.readlines()
        victim.stdout.close()
        victim.wait()
        for line in lines:
            if line.endswith(b"\n"):
                log, seq = line.decode().split()
                acked[log] = int(seq)
        store = await open_store(tmp_path)
        open_work = {work.log for work in await store.claim("turn", ["echo"], "n", 1.0, 100_000)}
        for log, seq in acked.items():
            row = store.row(log)
            assert row is not None
            assert row.seq >= seq
            # A task is over, or there is work that will bring it there.
            assert (row.seq == 3) != (log in open_work)
            assert len(store.read(log, 0)) == row.seq
        await store.close()
    assert len(acked) > 5
    check_integrity(tmp_path)


# Size.


async def test_a_file_with_many_tasks_opens_at_once_and_lists_by_index(tmp_path: Path, scale: int):
    count = 10_000 * scale
    store = await open_store(tmp_path)
    for first in range(0, count, 1000):
        await together(
            store,
            *[
                Batch((opening(f"t{n}", float(n), state=State.COMPLETED),))
                for n in range(first, first + 1000)
            ],
        )
    await store.close()
    started = time.perf_counter()
    store = await open_store(tmp_path)
    seconds = time.perf_counter() - started
    assert seconds < 1.0 * scale
    found = await store.find(EVERYONE)
    assert (found.total, found.rows[0].log) == (count, f"t{count - 1}")
    await store.close()


async def test_lists_due_work_and_sweeps_walk_an_index(tmp_path: Path):
    store = await open_store(tmp_path)
    await store.close()
    db = apsw.Connection(str(tmp_path / "store.db"))
    plans = {
        "SELECT count(*) FROM logs "
        "WHERE kind = 'task' AND hidden = 0 AND tenant = ? AND owner = ? AND state = ?": "COVERING",
        "SELECT name FROM logs WHERE kind = 'task' AND hidden = 0 AND tenant = ? AND owner = ? "
        "ORDER BY at DESC, id DESC LIMIT 50": "logs_of_caller",
        "SELECT name FROM logs WHERE kind = 'task' AND at < ? ORDER BY at LIMIT 20": "logs_by_age",
        "SELECT due FROM work WHERE node IS NULL ORDER BY due LIMIT 1": "work_by_due",
        "SELECT id FROM work WHERE node IS NULL AND kind = ? AND topic = ? AND due <= ?": "work_by_topic",
        "DELETE FROM records WHERE log = ? AND log <> ''": "records_of_log",
    }
    for query, index in plans.items():
        plan = " / ".join(
            str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {query}", (1.0,) * query.count("?"))
        )
        assert index in plan, f"{query}: {plan}"
        assert "TEMP B-TREE" not in plan, f"{query}: {plan}"
    db.close()


async def test_the_write_ahead_log_is_folded_into_the_file_and_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dragoman.store.sqlite_writer.WAL_PAGES_MAX", 50)
    store = await open_store(tmp_path)
    for n in range(100):
        await together(
            store,
            *[
                Batch((Append(f"t{n}-{m}", 0, "a", (b"x" * 5000,), COMPLETED, opening("t").label),))
                for m in range(10)
            ],
        )
    assert (tmp_path / "store.db-wal").stat().st_size < 200 * 4096
    assert (tmp_path / "store.db").stat().st_size > 4_000_000
    await store.close()
    assert (tmp_path / "store.db-wal").stat().st_size == 0


async def test_the_lock_file_says_all_that_a_command_needs(tmp_path: Path):
    store = await open_store(tmp_path)
    store.set_address("http://[::1]:8000")
    told = json.loads((tmp_path / "store.db.lock").read_text())
    assert told == {"pid": os.getpid(), "token": store.lock.holder.token, "address": "http://[::1]:8000"}
    await put(store, NewWork("turn", "echo", "t1"))
    await store.close()
    assert (tmp_path / "store.db.lock").read_text().strip() == ""
