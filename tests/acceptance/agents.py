"""The agents of the fault campaigns: each plays the script in its message, and writes down what it did to the world.

A script is words: `c` a chunk (`c9` nine), `t` one as slow as a model's, `f` one of a kilobyte, `s` a step,
`a` a question, `w` a wait for the file named by the environment variable GATE. What a whole script must say,
`checker.expected` knows.
The node's process appends to a file of its own below EFFECTS: a step that ran, a step whose result came back.
"""

from __future__ import annotations

import asyncio
import json
import os
import time

from dragoman import Agent, Turn

_effects = os.environ.get("EFFECTS", "")
_file = (
    os.open(f"{_effects}/{os.getpid()}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if _effects
    else -1
)


def note(what: str, task: str, step: str) -> None:
    # One write, so that a kill leaves whole lines; the page cache outlives the process.
    if _file >= 0:
        line = {"t": time.monotonic_ns(), "what": what, "task": task, "step": step}
        os.write(_file, json.dumps(line).encode() + b"\n")


async def effect(task: str, step: str) -> str:
    note("ran", task, step)
    await asyncio.sleep(0)
    return f"[{step}]"


async def play(turn: Turn) -> None:
    task, last = turn.task_id, ""
    note("began", task, "")
    async with turn.stream() as out:
        for place, word in enumerate(turn.text.split()):
            kind, count = word[0], int(word[1:] or 1)
            if kind in "ct":
                for number in range(count):
                    await out.write(f"{place}.{number}{last} ")
                    await asyncio.sleep(0.002 if kind == "t" else 0)
            elif kind == "f":
                for _ in range(count):
                    await out.write("x" * 1023 + " ")
            elif kind == "s":
                last = await turn.step(f"s{place}", effect, task, f"s{place}")
                note("back", task, f"s{place}")
            elif kind == "a":
                last = (await turn.ask(f"q{place}")).text
            elif kind == "w":
                gate = os.environ["GATE"]
                # A file, because the gate must outlive the process.
                while not os.path.exists(gate):
                    await asyncio.sleep(0.02)
                note("passed", task, "")


player = Agent("player", play, description="Plays the script in the message.", attempts_max=1_000_000)
brittle = Agent("brittle", play, description="Plays it once or fails.", on_interrupt="fail")
