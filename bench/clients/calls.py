"""How calls are counted, the same for every client: warm-up, so many in flight, CPU of this process."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

WARM_SECONDS = 0.3


async def counted(call: Callable[[str], Awaitable[bool]], in_flight: int, seconds: float) -> None:
    """`call` sends a text and says whether the completed echo of it came back."""
    await _run(call, in_flight, WARM_SECONDS)
    spent, begin = time.process_time(), time.perf_counter()
    right, wrong, latencies = await _run(call, in_flight, seconds)
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - spent
    answers, ordered = right + wrong, sorted(latencies)
    figures = {
        "answers": answers,
        "wrong": wrong,
        "per_second": answers / elapsed,
        "cpu_us": 1e6 * cpu / max(1, answers),
        "p50_ms": 1000 * ordered[len(ordered) // 2],
        "p99_ms": 1000 * ordered[int(len(ordered) * 0.99)],
    }
    print(json.dumps(figures))


async def _run(call, in_flight: int, seconds: float) -> tuple[int, int, list[float]]:
    deadline = time.perf_counter() + seconds
    counts, latencies = [0, 0], []

    async def caller(number: int) -> None:
        attempt = 0
        while (begin := time.perf_counter()) < deadline:
            attempt += 1
            is_right = await call(f"echo {number} {attempt}")
            latencies.append(time.perf_counter() - begin)
            counts[0 if is_right else 1] += 1

    await asyncio.gather(*(caller(number) for number in range(in_flight)))
    return counts[0], counts[1], latencies
