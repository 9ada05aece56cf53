"""The heart under a seeded simulation, and proof that the simulation notices when a law is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.store.memory import MemoryStore
from dragoman.store.store import Batch, Done, Work
from dragoman.work import journal
from tests.sim.__main__ import seeds
from tests.sim.checker import Broken
from tests.sim.episode import TASKS, episode

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("DRAGOMAN_TEST_SEED", "1"))
ALL_TASKS = 20_000
# Parts are what runs beside each other under `pytest -n`.
PARTS = 20
PLAN = list(seeds(SEED, ALL_TASKS))


@pytest.mark.parametrize("part", range(PARTS))
def test_the_heart_keeps_its_laws_in_any_weather(part: int):
    """Shows: F01, F02, F04, S4-019, S4-024, S4-041"""
    ran = [episode(seed) for seed in PLAN[part::PARTS]]
    assert sum(one.tasks for one in ran) == ALL_TASKS // PARTS
    # The weather was bad: else nothing was shown.
    assert sum(one.deaths for one in ran) > 5
    assert sum(one.takeovers for one in ran) > 20
    assert {"completed", "failed", "canceled", "rejected", "message"} <= set().union(
        *(one.states for one in ran)
    )


def test_the_plan_holds_all_the_tasks():
    assert len(PLAN) * TASKS == ALL_TASKS


def test_one_seed_gives_one_trace():
    assert episode(5) == episode(5)


def test_another_seed_gives_another_trace():
    assert episode(5).trace != episode(6).trace


def test_a_seed_gives_the_same_trace_in_another_process():
    traces = set()
    for hashing in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", "from tests.sim.episode import episode; print(episode(7).trace)"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": f"{ROOT}/src"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        traces.add(ran.stdout)
    assert len(traces) == 1


# The simulation bites: each of these stores or workers breaks one law on purpose.


class Unfenced(MemoryStore):
    """Takes a worker's append whatever its claim says."""

    def submit(self, batch: Batch, done: Done) -> None:
        super().submit(replace(batch, claim=None), done)


class Forgetful(MemoryStore):
    """Loses the work of one batch in a hundred."""

    batches = 0

    def submit(self, batch: Batch, done: Done) -> None:
        self.batches += 1
        super().submit(replace(batch, work=()) if self.batches % 100 == 0 else batch, done)


class Generous(MemoryStore):
    """Gives the same work to whoever asks next, too."""

    given: Sequence[Work] = ()

    async def claim(self, kind: str, *rest: Any) -> Sequence[Work]:
        again, self.given = self.given, await super().claim(kind, *rest)
        return [*self.given, *(work for work in again if work.kind == kind)]


class Doubling(MemoryStore):
    """Tells one reader in fifty an event twice."""

    reads = 0

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        self.reads += 1
        events = list(super().read(log, after, limit))
        return [*events[:1], *events] if self.reads % 50 == 0 and after else events


class Amnesiac(MemoryStore):
    """Lets go of what turns remember."""

    def submit(self, batch: Batch, done: Done) -> None:
        super().submit(batch, done)
        for append in batch.appends:
            if append.log.startswith("turn:"):
                super().submit(Batch(closes=(append.log,)), lambda refusal: None)


class Keyless(MemoryStore):
    """Does not know an idempotency key again."""

    def submit(self, batch: Batch, done: Done) -> None:
        super().submit(replace(batch, records=()), done)


@pytest.mark.parametrize(
    "careless", [Unfenced, Forgetful, Generous, Doubling, Amnesiac, Keyless], ids=lambda kind: kind.__name__
)
def test_a_store_that_breaks_a_law_is_noticed(careless: Callable[..., MemoryStore]):
    with pytest.raises((Broken, AssertionError), match="seed"):
        for seed in range(20):
            try:
                episode(seed, TASKS, careless(tasks_max=100_000))
            except AssertionError as wrong:
                raise AssertionError("; ".join([str(wrong), *getattr(wrong, "__notes__", ())])) from wrong


def test_a_turn_that_forgets_the_order_of_its_steps_is_noticed(monkeypatch: pytest.MonkeyPatch):
    async def at_once(self: journal.Journal, place: int) -> None:
        self._at += 1

    monkeypatch.setattr(journal.Journal, "_in_order", at_once)
    with pytest.raises(Broken, match="should have given"):
        for seed in range(60):
            episode(seed)
