"""The Store: logs, work and records in one transaction. What every store promises, and nothing of how.

The eight laws (`tests/store/exercise.py` proves them on each store):

1. Sequence numbers of a log are 1, 2, 3 … without gaps; an append at a wrong position fails and
   changes nothing.
2. A batch holds at most one append per log; a batch that fails changes nothing and harms no other.
3. Each append carries an id kept with the head; the same append id again answers as before.
4. An append that names a claim is refused when the claim's epoch is not current or its work is gone.
5. snapshot(k) + events after k = the fold of the log. The head moves with every append.
6. Work is visible iff the batch that caused it is. A claim is exclusive until its lease ends.
7. `feed` yields every append in an order that no later reader can be surprised by.
8. `wait` may wake early and never lies; pages are stable under inserts; owner and tenant are in
   every query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..model.audit import AuditEntry, AuditQuery
from ..model.task import State

__all__ = [
    "Append",
    "Batch",
    "Claim",
    "Claimant",
    "Conflict",
    "Fed",
    "Fenced",
    "Found",
    "Head",
    "Label",
    "NewWork",
    "Present",
    "Query",
    "Record",
    "Refusal",
    "Row",
    "Store",
    "StoreFull",
    "StoreLost",
    "Work",
]


class Label(Struct, frozen=True):
    """What a log is about: fixed when it begins. Only logs of kind "task" are found by queries.

    `trace` is the trace that the call which began it came in, if it came in one.
    """

    kind: str
    owner: str = ""
    tenant: str = ""
    agent: str = ""
    context: str = ""
    trace: str = ""


class Head(Struct, frozen=True):
    """The moving part of a log, set with each append: what lists and waiters look at.

    `hidden` keeps a task out of lists and reads until its agent has decided that it is one.
    """

    state: State = State.UNKNOWN
    at: float = 0.0
    hidden: bool = False


class Append(Struct, frozen=True):
    """Events for one log, after a position. `label` is given by the append that begins the log.

    `snapshot` is the fold including these events, given when the task settles and now and then before.
    """

    log: str
    after: int
    id: str
    events: Sequence[bytes] = ()
    head: Head | None = None
    label: Label | None = None
    snapshot: bytes | None = None


class Claim(Struct, frozen=True):
    """The right of a worker to append: the work it took, and which taking this was."""

    work: int
    epoch: int


class NewWork(Struct, frozen=True):
    """Something to do. `topic` says who can do it; `memo` rides along only to a claimant in this process.

    `name`, when given, is unique: putting work of a name that exists moves its due time instead.
    """

    kind: str
    topic: str
    log: str
    due: float = 0.0
    body: bytes = b""
    name: str = ""
    memo: Any = None


class Work(Struct):
    """Work as its claimant holds it."""

    id: int
    kind: str
    topic: str
    log: str
    body: bytes
    epoch: int
    attempts: int
    memo: Any = None

    @property
    def claim(self) -> Claim:
        return Claim(self.id, self.epoch)


class Record(Struct, frozen=True):
    """A keyed value. `is_new` asks that the key be free; `log` makes it die with that log."""

    kind: str
    key: str
    body: bytes
    log: str = ""
    is_new: bool = False


class Batch(Struct, frozen=True):
    """What happens together or not at all.

    `claim` fences the batch. `ends` lists work that is done (its rows go), by id; `drops` work by name.
    `closes` lists logs that are deleted with this batch (a turn's journal when the task settles). `audit` says
    which calls it came of.
    """

    appends: Sequence[Append] = ()
    work: Sequence[NewWork] = ()
    records: Sequence[Record] = ()
    claim: Claim | None = None
    ends: Sequence[int] = ()
    drops: Sequence[str] = ()
    closes: Sequence[str] = ()
    audit: Sequence[AuditEntry] = ()


class Row(Struct, frozen=True):
    """A log as a query sees it."""

    log: str
    label: Label
    head: Head
    seq: int


class Query(Struct, frozen=True):
    """Which tasks: always one owner's in one tenant and agent (`None` is every one, for the operator)."""

    owner: str | None
    tenant: str | None
    agent: str | None = None
    context: str = ""
    state: State | None = None
    since: float | None = None
    size: int = 50
    token: str = ""


class Found(Struct, frozen=True):
    """A page of rows, newest status first."""

    rows: Sequence[Row]
    token: str
    total: int


class Fed(Struct, frozen=True):
    """One append in the order of all appends."""

    position: int
    log: str
    seq: int


# Why a batch was refused. Each is an answer about the caller's batch and harms nobody else's.


class Refusal(Exception):
    """A batch that changed nothing."""


class Conflict(Refusal):
    """The log is not where the append thought."""

    def __init__(self, log: str, seq: int) -> None:
        super().__init__(f"{log} is at {seq}")
        self.log = log
        self.seq = seq


class Fenced(Refusal):
    """The claim is no longer the current one: somebody else works, or the work is gone."""


class Present(Refusal):
    """A record that should be new is there."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record.kind} {record.key} exists")
        self.record = record


class StoreFull(Refusal):
    """No room: too many active tasks, or the disk is full."""


class StoreLost(Refusal):
    """The store can no longer promise anything (a failed sync). The process must end and start again."""


class Claimant(Protocol):
    """Who does work in this process: offered to the store so that new work is leased as it is put."""

    node: str
    # topic → how many more it can take; the store takes one away as it leases, the claimant gives it back
    free: dict[str, int]

    def take(self, work: Work) -> None:
        """Work that was put and claimed in one transaction. Called after the commit, never awaited."""
        ...

    def hint(self) -> None:
        """There may be work to claim: some was put or given back that nobody holds. May come in vain."""
        ...


Done = Callable[[Refusal | None], None]


class Store(Protocol):
    """The one big seam. Times are seconds since 1970 by the caller's clock."""

    def submit(self, batch: Batch, done: Done) -> None:
        """Commit in order of submission; `done` is called once, on the loop, maybe before this returns."""
        ...

    async def commit(self, batch: Batch) -> None:
        """Submit and wait; raises the refusal."""
        ...

    def row(self, log: str) -> Row | None:
        """The label, head and position of a log, from committed data."""
        ...

    def read(self, log: str, after: int, limit: int = 1000) -> Sequence[bytes]:
        """Events after a position; the first has position after + 1."""
        ...

    def snapshot(self, log: str, at: int | None = None) -> tuple[int, bytes] | None:
        """The newest stored fold (not past `at`), with the position it includes."""
        ...

    async def wait(self, log: str, after: int) -> None:
        """Until the log is past a position or is gone. May wake early."""
        ...

    async def find(self, query: Query) -> Found:
        """A page of tasks."""
        ...

    def record(self, kind: str, key: str) -> bytes | None:
        """The value of a record."""
        ...

    def owner_of_context(self, context: str) -> tuple[str, str] | None:
        """The tenant and the owner whose tasks are in a context; None if it holds none."""
        ...

    def feed(self, after: int, limit: int = 1000) -> Sequence[Fed]:
        """Appends in the order of all appends."""
        ...

    async def audited(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
        """Entries of the audit log with their positions, newest first."""
        ...

    def offer(self, claimant: Claimant) -> None:
        """From now on work this claimant has room for is leased to it as it is put."""
        ...

    async def claim(
        self, kind: str, topics: Sequence[str], node: str, now: float, limit: int
    ) -> Sequence[Work]:
        """Take due work that nobody holds. Each taking raises the epoch and the attempts."""
        ...

    async def release(self, work: int, epoch: int, due: float) -> None:
        """Give work back, due at a time."""
        ...

    async def beat(self, node: str, until: float, now: float) -> int:
        """Renew all leases of a node, end those of nodes that are silent; how many were ended."""
        ...

    def next_due(self) -> float | None:
        """When the next unheld work is due, as far as is known."""
        ...

    async def sweep(self, before: float, limit: int) -> int:
        """Delete tasks that were over before a time, with all that belongs to them."""
        ...

    async def sweep_audit(self, before: float) -> None:
        """Delete what the audit log says of calls before a time."""
        ...

    async def close(self) -> None:
        """Finish what was submitted and let go of the file."""
        ...
