"""Watches a store from outside and says when a law is broken. It keeps its own books and believes nobody's.

Checked at every commit: positions, edges, terminal is for ever, who holds which lease, that what was accepted is
settled, leased or due. At quiet moments: snapshot = fold, the feed, what watchers saw, what became of each task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from dragoman.core.tasks import INTERRUPTED, TRANSITIONS, Fold
from dragoman.model.events import Logged, MessageAdded, StatusChanged, TaskCreated, decode
from dragoman.model.task import State, Task
from dragoman.store.store import Append, Batch, Refusal, Work


class Broken(AssertionError):
    """A law does not hold. Says where: the same seed comes to the same place again."""


class Shadow:
    """A task as the commits say it is."""

    __slots__ = ("agent", "events", "fold", "id", "owner")

    def __init__(self, append: Append) -> None:
        assert append.label is not None
        self.id = append.log
        self.agent = append.label.agent
        self.owner = append.label.owner
        self.events: list[bytes] = []
        self.fold = Fold()


class Checker:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.step = 0
        self.broken: Broken | None = None
        self.on_broken: Callable[[], object] = lambda: None
        self.tasks: dict[str, Shadow] = {}
        self.journals: dict[str, list[dict[str, Any]]] = {}
        # Work that must be there, by name: kind and log.
        self.pending: dict[str, str] = {}
        # Work that is held: by whom, at which epoch, and its name.
        self.held: dict[int, tuple[str, int, str]] = {}
        self.epochs: dict[int, int] = {}
        self.until: dict[str, float] = {}
        self.opened: dict[str, str] = {}
        self.commits = self.refusals = self.deaths = self.takeovers = 0
        self._trace = hashlib.blake2b(digest_size=8)

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    def note(self, *words: object) -> None:
        """One more step of the trace."""
        self.step += 1
        self._trace.update(repr(words).encode())

    def law(self, holds: bool, *words: object) -> None:
        if not holds and self.broken is None:
            self.broken = Broken(f"(seed {self.seed}, step {self.step}): {' '.join(map(str, words))}")
            self.on_broken()
        if self.broken is not None:
            raise self.broken

    # What happens at the store.

    def answered(self, node: str, batch: Batch, refusal: Refusal | None, now: float) -> None:
        self.note(
            node, round(now, 6), type(refusal).__name__, [(a.log, a.after, a.events) for a in batch.appends]
        )
        if refusal is not None:
            self.refusals += 1
            return
        self.commits += 1
        if batch.claim is not None:
            holder = self.held.get(batch.claim.work)
            self.law(
                holder is not None and holder[:2] == (node, batch.claim.epoch),
                f"{node} wrote under work {batch.claim.work} epoch {batch.claim.epoch}, which is held: {holder}",
            )
        for append in batch.appends:
            if append.log.startswith("turn:"):
                self._journalled(append)
            else:
                self._appended(append)
        for work in batch.ends:
            name = self.held.pop(work, ("", 0, ""))[2]
            self.pending.pop(name, None)
        for name in batch.drops:
            self.pending.pop(name, None)
        for log in batch.closes:
            self.journals.pop(log, None)
        for new in batch.work:
            if new.name:
                self.pending[new.name] = new.log
        for append in batch.appends:
            shadow = self.tasks.get(append.log)
            if shadow is not None:
                self.is_cared_for(shadow)

    def _journalled(self, append: Append) -> None:
        entries = self.journals.setdefault(append.log, [])
        self.law(append.after == len(entries), f"{append.log} has {len(entries)} and got {append.after}+1")
        entries += [json.loads(event) for event in append.events]

    def _appended(self, append: Append) -> None:
        shadow = self.tasks.get(append.log)
        if shadow is None:
            shadow = self.tasks[append.log] = Shadow(append)
        self.law(
            append.after == len(shadow.events),
            f"{append.log} is at {len(shadow.events)} and took an append after {append.after}",
        )
        for data in append.events:
            event = decode(data)
            state, over = shadow.fold.status.state, shadow.fold.is_over
            self.law(not over, f"{append.log} is {state.word} and yet went on: {data!r}")
            if isinstance(event, StatusChanged):
                after = event.status.state
                self.law(after in TRANSITIONS[state], f"{append.log} went from {state.word} to {after.word}")
            if isinstance(event, TaskCreated):
                self.law(not shadow.events, f"{append.log} began twice")
                # Every message of the simulation carries a key: however often it arrives, it opens one task.
                message_id = event.task.history[0].message_id
                other = self.opened.setdefault(message_id, append.log)
                self.law(other == append.log, f"message {message_id} opened {other} and {append.log}")
            shadow.fold.apply(event)
            shadow.events.append(data)
        if append.head is not None:
            state = State.COMPLETED if shadow.fold.reply is not None else shadow.fold.status.state
            self.law(
                append.head.state is state, f"{append.log}: head {append.head.state.word}, fold {state.word}"
            )

    def is_cared_for(self, shadow: Shadow) -> None:
        """Settled, leased or due; and a question has a deadline."""
        if shadow.fold.is_over:
            return
        state = shadow.fold.status.state
        name = f"deadline:{shadow.id}" if state in INTERRUPTED else shadow.id
        self.law(
            name in self.pending, f"{shadow.id} is {state.word} and nobody will ever do anything about it"
        )

    def leased(self, node: str, work: Work) -> None:
        self.note(node, work.kind, work.log, work.epoch)
        holder = self.held.get(work.id)
        self.law(
            holder is None,
            f"work {work.id} ({work.kind} {work.log}) was given to {node}, and {holder} has it",
        )
        self.law(
            work.epoch > self.epochs.get(work.id, 0), f"work {work.id} was taken twice at epoch {work.epoch}"
        )
        self.takeovers += work.epoch > 1
        self.epochs[work.id] = work.epoch
        name = work.log if work.kind == "turn" else ""
        if work.kind == "deadline":
            name = f"{'cancel' if work.body else 'deadline'}:{work.log}"
        if name:
            self.law(name in self.pending, f"work {work.id} ({name}) was given to {node} though it had ended")
        self.held[work.id] = (node, work.epoch, name)

    def released(self, node: str, work: int, epoch: int) -> None:
        if self.held.get(work, ("", 0))[:2] == (node, epoch):
            del self.held[work]

    def beat(self, node: str, until: float, now: float) -> None:
        self.until[node] = until
        silent = {name for name, end in self.until.items() if end <= now}
        for name in silent:
            del self.until[name]
        for work in [work for work, holder in self.held.items() if holder[0] not in self.until]:
            del self.held[work]

    def step_runs(self, task_id: str, key: str) -> None:
        """An agent begins a step: it must not be remembered already."""
        entries = self.journals.get(f"turn:{task_id}:1", ())
        self.law(all(entry.get("key") != key for entry in entries), f"{task_id} runs step {key} again")

    # At quiet moments.

    def is_same(self, task_id: str, task: Task) -> None:
        self.law(
            self.tasks[task_id].fold.task() == task, f"{task_id}: the stored fold is not the fold of its log"
        )

    def watched(self, task_id: str, seen: Sequence[Logged], first: int) -> None:
        """What one watcher saw of a task, through all its reconnects."""
        events = self.tasks[task_id].events
        last = seen[-1].seq if seen else first
        due = [
            (seq, data)
            for seq, data in enumerate(events, 1)
            if first < seq <= last and Logged(seq, data).is_seen
        ]
        got = [(logged.seq, logged.data) for logged in seen]
        self.law(got == due, f"{task_id}: a watcher saw {[n for n, _ in got]} and not {[n for n, _ in due]}")

    def as_of(self, task_id: str, logged: Logged) -> None:
        fold = Fold()
        for data in self.tasks[task_id].events[: logged.seq]:
            fold.apply(decode(data))
        event = logged.event
        self.law(isinstance(event, TaskCreated), f"{task_id}: a stream began with {event}")
        assert isinstance(event, TaskCreated)
        self.law(
            event.task == fold.task(),
            f"{task_id}: a stream began with another task than that at {logged.seq}",
        )

    def answers(self, shadow: Shadow) -> list[str]:
        """What callers answered to the questions of a task: the message after each."""
        given: list[str] = []
        asked = False
        for data in shadow.events:
            event = decode(data)
            if isinstance(event, StatusChanged):
                asked = asked or event.status.state in INTERRUPTED
            elif isinstance(event, MessageAdded) and asked:
                given.append(event.message_added.text)
                asked = False
        return given

    def all_over(self) -> list[str]:
        return [task_id for task_id, shadow in self.tasks.items() if not shadow.fold.is_over]

    def states(self) -> dict[str, int]:
        count: dict[str, int] = {}
        for shadow in self.tasks.values():
            word = "message" if shadow.fold.reply else shadow.fold.status.state.word
            count[word] = count.get(word, 0) + 1
        return count
