"""What was measured: the figures of every cell in every round, and which cells failed and so have none."""

import sys
from collections import defaultdict
from statistics import median


class Book:
    def __init__(self) -> None:
        self.cells: dict[tuple[str, str, str], dict[int, dict]] = defaultdict(dict)
        self.faults: dict[tuple[str, str, str], str] = {}

    def add(self, section: str, row: str, cell: str, turn: int, figures: dict) -> None:
        self.cells[section, row, cell][turn] = figures

    def fault(self, section: str, row: str, cell: str, problem: object) -> None:
        print(f"bench: {section}, {row}, {cell}: {problem}", file=sys.stderr, flush=True)
        self.faults.setdefault((section, row, cell), str(problem))

    def has_failed(self, section: str, row: str, cell: str) -> bool:
        """A cell is lost with any of its rounds; a row that did not start is lost with all its cells."""
        return (section, row, cell) in self.faults or (section, row, "all") in self.faults

    def values(self, section: str, row: str, cell: str, figure: str) -> dict[int, float]:
        """By round; empty when any round of the cell failed."""
        if self.has_failed(section, row, cell):
            return {}
        rounds = self.cells.get((section, row, cell), {})
        return {turn: figures[figure] for turn, figures in rounds.items() if figure in figures}

    def ratios(self, above: tuple[str, str, str], below: tuple[str, str, str], figure: str) -> list[float]:
        """Round by round, so that what disturbed the machine disturbed both."""
        upper, lower = self.values(*above, figure), self.values(*below, figure)
        return [upper[turn] / lower[turn] for turn in upper if lower.get(turn)]

    def as_json(self) -> dict:
        cells = []
        for (section, row, cell), rounds in self.cells.items():
            if self.has_failed(section, row, cell):
                continue
            names = {name for figures in rounds.values() for name in figures}
            figures = {
                name: spread(list(self.values(section, row, cell, name).values())) for name in sorted(names)
            }
            cells.append(
                {"section": section, "row": row, "cell": cell, "rounds": len(rounds), "figures": figures}
            )
        faults = [
            dict(zip(("section", "row", "cell"), key, strict=True), problem=text)
            for key, text in self.faults.items()
        ]
        return {"cells": cells, "faults": faults}


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}
