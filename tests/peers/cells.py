"""A cell of the table: another party in one dialect and one direction; and the gaps that are known of it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from dragoman.wire.versions import Dialect
from tests.peers.cases import CASES, RECONNECT, THEY, WE, Case
from tests.peers.environments import PEERS, Peer
from tests.peers.talking import Talk

__all__ = ["CELLS", "GAPS", "Cell", "Gap", "Line", "cases_of"]

# How a test gets to talk.
Line = Callable[[], AbstractAsyncContextManager[Talk]]


@dataclass(frozen=True)
class Cell:
    """Another party, in one dialect and one direction."""

    peer: Peer
    dialect: Dialect
    direction: str

    def __str__(self) -> str:
        return f"{self.peer.name} {self.peer.version} {self.dialect.binding} {self.dialect.version}"


@dataclass(frozen=True)
class Gap:
    """What does not work by a peer's fault: it must fail, and says why. What is left out means all."""

    peers: tuple[str, ...]
    cases: tuple[str, ...]
    reason: str
    dialects: tuple[str, ...] = ()
    direction: str = ""
    but: tuple[str, ...] = ()
    sometimes: bool = False

    def covers(self, cell: Cell, case: Case) -> bool:
        dialect = f"{cell.dialect.binding} {cell.dialect.version}"
        return (
            f"{cell.peer.name} {cell.peer.version}" in self.peers
            and (not self.dialects or dialect in self.dialects)
            and self.direction in ("", cell.direction)
            and (self.cases == ("*",) or case.name in self.cases)
            and case.name not in self.but
        )


GAPS = tuple(
    Gap(**{name: tuple(it) if isinstance(it, list) else it for name, it in row.items()})
    for row in tomllib.loads((Path(__file__).parent / "gaps.toml").read_text()).get("gap", ())
)


def _cells() -> Iterator[Cell]:
    """Every cell. That 0.3 has several forms over REST is for who calls to know: others call us in one."""
    for direction, use in ((THEY, "client"), (WE, "server")):
        for peer in PEERS:
            spoken: set[tuple[str, str]] = set()
            for dialect in peer.dialects if use in peer.programs else ():
                version = (dialect.binding, dialect.version.partition("/")[0])
                if direction == WE or version not in spoken:
                    spoken.add(version)
                    yield Cell(peer, dialect, direction)


CELLS = tuple(_cells())


def cases_of(cell: Cell) -> Iterator[Case]:
    """What its dialect has words for."""
    for case in (*CASES, RECONNECT):
        if case.is_expressible(cell.dialect, cell.direction):
            yield case
