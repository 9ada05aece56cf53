"""What a site counts, and how Prometheus reads it: integers, added to in passing and spelled when asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping

__all__ = ["MEDIA_TYPE", "Metrics"]

MEDIA_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the durations that are told apart, in seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """Counts of one site. `gauges` are asked for when somebody reads."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._gauges = gauges
        # By operation, outcome and dialect: how many took how long, and how long all of them took together.
        self._cells: dict[tuple[str, str, str], list[float]] = {}

    def answered(self, operation: str, outcome: str, via: str, seconds: float) -> None:
        """One call was answered, or one stream has ended."""
        cell = self._cells.get((operation, outcome, via))
        if cell is None:
            cell = self._cells[operation, outcome, via] = [0.0] * (len(BOUNDS) + 2)
        cell[bisect_left(BOUNDS, seconds)] += 1
        cell[-1] += seconds

    def text(self) -> bytes:
        """All of it, as Prometheus wants it."""
        lines = _head("dragoman_calls_total", "counter", "Calls answered, and streams ended.")
        for (operation, outcome, via), cell in sorted(self._cells.items()):
            labels = _labels(operation=operation, outcome=outcome, via=via)
            lines.append(f"dragoman_calls_total{labels} {sum(cell[:-1]):.0f}")
        lines += _head("dragoman_call_seconds", "histogram", "How long calls took, and streams lasted.")
        for operation in sorted({operation for operation, _, _ in self._cells}):
            cells = [cell for (name, _, _), cell in self._cells.items() if name == operation]
            lines += _histogram(operation, [sum(counts) for counts in zip(*cells, strict=True)])
        for name, value in sorted(self._gauges().items()):
            lines += [
                *_head(f"dragoman_{name}", "gauge", name.replace("_", " ")),
                f"dragoman_{name} {value:g}",
            ]
        return ("\n".join(lines) + "\n").encode()


def _histogram(operation: str, cell: list[float]) -> list[str]:
    *counts, seconds = cell
    lines, below = [], 0.0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
        below += count
        lines.append(f"dragoman_call_seconds_bucket{_labels(operation=operation, le=bound)} {below:.0f}")
    labels = _labels(operation=operation)
    lines.append(f"dragoman_call_seconds_sum{labels} {seconds:.6f}")
    lines.append(f"dragoman_call_seconds_count{labels} {below:.0f}")
    return lines


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _labels(**several: str) -> str:
    spelled = ",".join(f'{name}="{_escaped(value)}"' for name, value in several.items())
    return f"{{{spelled}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
