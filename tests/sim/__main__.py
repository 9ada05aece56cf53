"""`python -m tests.sim --seed 7 --tasks 20000`: episodes from a seed on, as many as these tasks need."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import cpu_count

from tests.sim.episode import TASKS, Ran, episode


def seeds(seed: int, tasks: int) -> range:
    """The seeds of the episodes: those of two neighbouring seeds do not overlap."""
    return range(seed * 1_000_000, seed * 1_000_000 + -(-tasks // TASKS))


def episodes(seed: int, tasks: int, processes: int) -> Iterator[Ran]:
    """All episodes, in order; the first that breaks a law raises."""
    if processes == 1:
        yield from map(episode, seeds(seed, tasks))
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(episode, seeds(seed, tasks), chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="where the random numbers begin")
    parser.add_argument("--tasks", type=int, default=20_000, help="how many tasks in all")
    parser.add_argument("--processes", type=int, default=cpu_count() or 1)
    parser.add_argument("--episode", type=int, help="play only this episode: the seed that a failure names")
    asked = parser.parse_args()
    if asked.episode is not None:
        print(episode(asked.episode))
        return 0
    began = time.monotonic()
    trace = hashlib.blake2b(digest_size=8)
    total: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for ran in episodes(asked.seed, asked.tasks, asked.processes):
        trace.update(ran.trace.encode())
        total.update(
            {
                "tasks": ran.tasks,
                "commits": ran.commits,
                "refusals": ran.refusals,
                "deaths": ran.deaths,
                "takeovers": ran.takeovers,
            }
        )
        states.update(ran.states)
        if sys.stderr.isatty():
            print(f"\r{total['tasks']} tasks", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    print(
        f"seed {asked.seed} trace {trace.hexdigest()}: "
        + ", ".join(f"{n} {word}" for word, n in total.items())
    )
    print(", ".join(f"{n} {word}" for word, n in sorted(states.items())))
    print(f"{total['tasks'] / seconds:.0f} tasks/s in {asked.processes} processes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
