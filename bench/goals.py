"""The goals: each number we hold ourselves to, the figures it is read from, and the rule that judges it."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from book import Book

FLOOR, MEMORY, SQLITE = "floor", "ours memory", "ours SQLite"
SDK, SDK_SQLITE = "a2a-sdk memory", "a2a-sdk SQLite"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Goal:
    """`measure` gives one value per round; the median is judged. `sense` is +1 when more is better."""

    section: str
    what: str
    sense: int
    bound: float
    unit: str
    measure: Callable[[Book], list[float]]

    def verdict(self, value: float) -> str:
        reached = value / self.bound if self.sense > 0 else self.bound / value if value else float("inf")
        if self.bound == 0:
            reached = 1.0 if value == 0 else 0.0
        return "met" if reached >= 1 else "within 20 %" if reached >= 0.8 else "missed"


def value(section: str, row: str, cell: str, figure: str) -> Callable[[Book], list[float]]:
    return lambda book: list(book.values(section, row, cell, figure).values())


def ratio(above: Key, below: Key, figure: str) -> Callable[[Book], list[float]]:
    return lambda book: book.ratios(above, below, figure)


def _unary(row: str, connections: int) -> Key:
    return "unary", row, str(connections)


def _more(what: str, bound: float, ours: Key, theirs: Key) -> Goal:
    return Goal(ours[0], what, 1, bound, "×", ratio(ours, theirs, "per_second"))


def _less_cpu(what: str, bound: float, ours: Key, theirs: Key) -> Goal:
    return Goal(ours[0], what, 1, bound, "×", ratio(theirs, ours, "cpu_us"))


def _per_event(what: str, bound: float, row: str, cell: str) -> Goal:
    return Goal("stream", what, -1, bound, " µs", value("stream", row, cell, "cpu_us_per_event"))


def _flat(row: str) -> Goal:
    long, short = ("stream", row, "10000 events"), ("stream", row, "1 stream")
    measure = ratio(long, short, "cpu_us_per_event")
    return Goal(
        "stream", f"{row}: CPU per event at 10,000 events over that at 100 (flat)", -1, 1.2, "×", measure
    )


def _version(dialect: str, cell: str, what: str) -> Goal:
    """No version may cost much more than 1.0 over JSON-RPC does."""
    measure = ratio(("versions", dialect, cell), ("versions", "1.0 JSON-RPC", cell), "cpu_us")
    return Goal("versions", f"{dialect}: {what} over that of 1.0 JSON-RPC", -1, 1.3, "×", measure)


GOALS = (
    _more("memory, 16: req/s over a2a-sdk memory", 15, _unary(MEMORY, 16), _unary(SDK, 16)),
    _more("memory, 16: req/s over the floor", 0.4, _unary(MEMORY, 16), _unary(FLOOR, 16)),
    Goal(
        "unary",
        "memory, 16: CPU per request over the floor's",
        -1,
        2.5,
        "×",
        ratio(_unary(MEMORY, 16), _unary(FLOOR, 16), "cpu_us"),
    ),
    Goal("unary", "memory, 16: p99", -1, 5, " ms", value(*_unary(MEMORY, 16), "p99_ms")),
    _more("SQLite, 16: req/s over a2a-sdk SQLite", 40, _unary(SQLITE, 16), _unary(SDK_SQLITE, 16)),
    _more("SQLite, 64: req/s over a2a-sdk SQLite", 40, _unary(SQLITE, 64), _unary(SDK_SQLITE, 64)),
    _less_cpu(
        "SQLite, 16: CPU per request, times less than a2a-sdk", 30, _unary(SQLITE, 16), _unary(SDK_SQLITE, 16)
    ),
    _less_cpu(
        "SQLite, 64: CPU per request, times less than a2a-sdk", 30, _unary(SQLITE, 64), _unary(SDK_SQLITE, 64)
    ),
    _more("SQLite, 16: req/s over a2a-sdk memory", 4, _unary(SQLITE, 16), _unary(SDK, 16)),
    _per_event("memory, 1 stream: CPU per event", 20, MEMORY, "1 stream"),
    _per_event("memory, 16 streams: CPU per event", 20, MEMORY, "16 streams"),
    _per_event("SQLite, 1 stream: CPU per event", 150, SQLITE, "1 stream"),
    _per_event("SQLite, 16 streams: CPU per event", 40, SQLITE, "16 streams"),
    _flat(MEMORY),
    _flat(SQLITE),
    _more("client, 16: calls/s over a2a-sdk's", 8, ("client", "ours", "16"), ("client", "a2a-sdk", "16")),
    _more("client, 1: calls/s over a2a-sdk's", 2.5, ("client", "ours", "1"), ("client", "a2a-sdk", "1")),
    _less_cpu(
        "client, 16: CPU per call, times less", 5, ("client", "ours", "16"), ("client", "a2a-sdk", "16")
    ),
    _version("1.0 REST", "served", "CPU per request served"),
    _version("0.3 JSON-RPC", "served", "CPU per request served"),
    Goal(
        "memory",
        "memory store, per 10,000 tasks",
        -1,
        16,
        " MB",
        value("memory", MEMORY, "growth", "mb_per_10k"),
    ),
    # "Constant" needs a number: the allocator's noise over 10,000 tasks stays under two megabytes.
    Goal(
        "memory",
        "SQLite, per 10,000 tasks (constant)",
        -1,
        2,
        " MB",
        value("memory", SQLITE, "growth", "mb_per_10k"),
    ),
    Goal(
        "import",
        "import dragoman over import asyncio, msgspec (best of each)",
        -1,
        1.3,
        "×",
        ratio(("import", "ours", "start"), ("import", "floor", "start"), "min_ms"),
    ),
    Goal(
        "start",
        "first answer over the stored tasks",
        -1,
        300,
        " ms",
        value("start", SQLITE, "stored", "first_answer_ms"),
    ),
    Goal("recovery", "ready after kill -9", -1, 5, " s", value("recovery", SQLITE, "kill -9", "ready_s")),
    Goal("recovery", "acknowledged tasks lost", -1, 0, "", value("recovery", SQLITE, "kill -9", "lost")),
)


def judged(book: Book, sections: set[str]) -> list[dict]:
    lines = []
    for goal in GOALS:
        if goal.section not in sections:
            continue
        values = goal.measure(book)
        line = {
            "section": goal.section,
            "goal": goal.what,
            "bound": goal.bound,
            "sense": goal.sense,
            "unit": goal.unit,
        }
        if values:
            middle = median(values)
            line |= {
                "median": middle,
                "min": min(values),
                "max": max(values),
                "verdict": goal.verdict(middle),
            }
        else:
            line |= {"verdict": "not measured"}
        lines.append(line)
    return lines
