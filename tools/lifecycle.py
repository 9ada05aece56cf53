"""Writes tests/vectors/lifecycle: for every state and every command, the events it leads to or the error.

Run it when `core/tasks.py` decides otherwise than before, and read the difference: it is the change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from dragoman.core.tasks import Add, Cancel, Command, Fold, Give, Move, Open, Say, decide
from dragoman.model.errors import AgentError
from dragoman.model.events import encode
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task

VECTORS = Path(__file__).parent.parent / "tests" / "vectors" / "lifecycle"
AT = "2026-01-15T12:00:00.000Z"
SAID = Message("m2", Role.USER, (Part(text="more"),))
WORDS = Message("a1", Role.AGENT, (Part(text="words"),), "c1", "t1")
FIRST = Message("m1", Role.USER, (Part(text="hello"),), "c1", "t1")

COMMANDS: dict[str, list[Command]] = {
    "open": [Open("t1", "c1", Message("m1", Role.USER, (Part(text="hello"),)))],
    "add": [Add(SAID)],
    "cancel": [Cancel(), Cancel({"why": "late"}), Cancel(with_grace=True)],
    "move": [*(Move(state) for state in State), Move(State.WORKING, WORDS)],
    "give": [
        Give(Artifact("seen", (Part(text="x"),))),
        Give(Artifact("seen", (Part(text="x"),)), append=True, last_chunk=False),
        Give(Artifact("unseen", (Part(text="x"),)), append=True),
    ],
    "say": [Say(WORDS)],
}


def before(state: State, *, is_told: bool = True) -> Task:
    """A task in a state: submitted ones have not been spoken of, all others have given an artifact."""
    given = (Artifact("seen", (Part(text="a"),)),) if is_told else ()
    return Task("t1", Status(state, None, AT), "c1", given, (FIRST,))


def fold_of(state: State) -> Fold:
    is_told = state is not State.SUBMITTED
    fold = Fold(before(state, is_told=is_told))
    fold.is_told = is_told
    return fold


def spelled(command: Command) -> dict[str, Any]:
    """A command as JSON, without the members that say nothing."""
    members = json.loads(msgspec.json.encode(command))
    return {name: value for name, value in members.items() if value not in (None, False)}


def cases(name: str) -> Iterator[dict[str, Any]]:
    for command in COMMANDS[name]:
        for state in State:
            case: dict[str, Any] = {"state": state.word, "command": spelled(command)}
            try:
                case["events"] = [json.loads(encode(event)) for event in decide(fold_of(state), command, AT)]
            except AgentError as wrong:
                case["error"] = wrong.name
            yield case


def page(name: str) -> str:
    """The vectors of a command as the file has them: one case a line."""
    lines = ",\n".join("  " + json.dumps(case, ensure_ascii=False) for case in cases(name))
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    for name in COMMANDS:
        (VECTORS / f"{name}.json").write_text(page(name))
