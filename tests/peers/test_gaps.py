"""The gaps that are known are of rows that there are, and each row is of one gap at most."""

from __future__ import annotations

from tests.peers.cells import CELLS, GAPS, cases_of

ROWS = [(cell, case) for cell in CELLS for case in cases_of(cell)]


def test_each_gap_is_of_rows_that_there_are():
    for gap in GAPS:
        covered = [(cell, case) for cell, case in ROWS if gap.covers(cell, case)]
        peers = {f"{cell.peer.name} {cell.peer.version}" for cell, _ in covered}
        dialects = {f"{cell.dialect.binding} {cell.dialect.version}" for cell, _ in covered}
        assert set(gap.peers) == peers, gap.reason
        assert set(gap.dialects) <= dialects, gap.reason
        assert {*gap.cases} - {"*"} <= {case.name for _, case in covered}, gap.reason
        assert {*gap.but} <= {case.name for _, case in ROWS}, gap.reason


def test_each_row_is_of_one_gap_at_most():
    for cell, case in ROWS:
        gaps = [gap.reason for gap in GAPS if gap.covers(cell, case)]
        assert len(gaps) <= 1, f"{cell} {cell.direction} {case.name}: {gaps}"
