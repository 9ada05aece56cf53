"""How figures are shown: one table per section, each figure as median and spread, and the table of goals."""

from statistics import median

from book import Book

# section → (heading, figures in column order as (name in the book, title))
SECTIONS = {
    "unary": (
        "SendMessage → completed task; cells are numbers of connections",
        (("per_second", "req/s"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("cpu_us", "CPU µs/req")),
    ),
    "stream": (
        "task + chunks + completed, one write per event; rates are events",
        (
            ("per_second", "events/s"),
            ("cpu_us_per_event", "CPU µs/event"),
            ("writes_per_event", "writes/event"),
            ("p50_ms", "p50 ms/stream"),
        ),
    ),
    "client": (
        "clients against the floor; cells are calls in flight",
        (("per_second", "calls/s"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("cpu_us", "CPU µs/call")),
    ),
    "versions": (
        "each version at 16 connections: one node that serves it, and our client that calls it",
        (("per_second", "calls/s"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("cpu_us", "CPU µs/call")),
    ),
    "gateway": (
        "through to the floor at 16 connections: what the process between costs",
        (("per_second", "req/s"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("cpu_us", "CPU µs/req added")),
    ),
    "memory": (
        "resident memory per 10,000 finished tasks",
        (("mb_per_10k", "MB/10k tasks"), ("rss_mb", "RSS MB at the end")),
    ),
    "import": ("a Python that imports and ends", (("min_ms", "best ms"), ("median_ms", "median ms"))),
    "start": (
        "process start → first completed answer",
        (("first_answer_ms", "ms"), ("tasks", "tasks stored")),
    ),
    "recovery": (
        "kill -9 under load, then a new node on the same store",
        (
            ("ready_s", "ready s"),
            ("active", "active"),
            ("acknowledged", "acknowledged under load"),
            ("lost", "lost"),
            ("settled_s", "all settled s"),
        ),
    ),
}


def number(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shown(values: list[float]) -> str:
    if not values:
        return "–"
    middle = number(median(values))
    if len(values) == 1:
        return middle
    low, high = number(min(values)), number(max(values))
    return middle if low == high else f"{middle} ({low}–{high})"


def table(head: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[at]) for line in [head, *lines]) for at in range(len(head))]

    def drawn(line: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"

    return "\n".join(drawn(line) for line in [head, ["-" * width for width in widths], *lines])


def section(book: Book, name: str) -> str:
    heading, figures = SECTIONS[name]
    keys = [key for key in book.cells if key[0] == name]
    cells = list(dict.fromkeys(key[2] for key in keys))
    lines = []
    for cell in cells:
        for key in (key for key in keys if key[2] == cell):
            columns = [shown(list(book.values(*key, figure).values())) for figure, _ in figures]
            lines.append([cell, key[1], str(len(book.cells[key])), *columns])
    head = ["cell", "row", "n", *(title for _, title in figures)]
    return f"{name}: {heading}\n{table(head, lines)}"


def goals(lines: list[dict]) -> str:
    drawn = []
    for line in lines:
        unit = line["unit"]
        bound = f"{'≥' if line['sense'] > 0 else '≤'} {number(line['bound'])}{unit}"
        measured = shown([line["min"], line["median"], line["max"]]) + unit if "median" in line else "–"
        drawn.append([line["goal"], bound, measured, line["verdict"]])
    return "goals: median of rounds (lowest–highest)\n" + table(
        ["goal", "bound", "measured", "verdict"], drawn
    )


def faults(book: Book) -> str:
    lines = [[*key, text[:160]] for key, text in book.faults.items()]
    return "lost cells, whose figures are not shown\n" + table(["section", "row", "cell", "why"], lines)
