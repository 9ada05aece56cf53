"""What is done around a node: its settings shown, a first agent written, the machine examined."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from ..config import SECTIONS, ConfigError, load, masked
from .failures import Failure
from .places import home_store
from .speech import command, note, say, say_json

__all__ = ["examine", "show_config", "write_agent"]

AGENT = '''"""An agent: `dragoman serve agent.py`, then `dragoman send http://127.0.0.1:8420 hello`."""

from dragoman import Agent, Turn


async def greet(turn: Turn):
    """Greets whoever it talks to, by name."""
    answer = await turn.ask("What is your name?")
    for word in ("Hello, ", answer.text, "!"):
        yield word


agent = Agent("greeter", greet)
'''


def show_config(file: str | None, as_json: bool) -> int:
    """Each setting, its value, and what set it."""
    effective = load(file)
    settings = {
        f"{section}.{key}": (
            masked(value, "" if section == "tls" else key),
            effective.sources.get(f"{section}.{key}", "default"),
        )
        for section in SECTIONS
        for key, value in msgspec.structs.asdict(getattr(effective, section)).items()
    }
    if as_json:
        say_json({name: {"value": value, "source": source} for name, (value, source) in settings.items()})
    else:
        for name, (value, source) in settings.items():
            say(f"{name}: {_spelled(value)} ({source})")
    return 0


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()


def write_agent(folder: str) -> int:
    """An agent.py that streams and asks."""
    path = Path(folder) / "agent.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            file.write(AGENT)
    except FileExistsError:
        raise Failure("DRAGOMAN_ERR_FILE", f"{path} is there already", "Name another folder.") from None
    except OSError as wrong:
        raise Failure("DRAGOMAN_ERR_FILE", f"{path} cannot be written: {wrong.strerror}") from None
    say(f"Wrote: {path}")
    note(f"Next:  {command('serve', str(path))}")
    return 0


def examine(file: str | None, flags: dict[str, Any], as_json: bool) -> int:
    """What the doctor finds; 1 when a node could not run."""
    from ..doctor import Finding, examine

    try:
        config = load(file, flags=flags)
    except ConfigError as wrong:
        findings = [Finding("config", "blocked", str(wrong), "Mend that setting.")]
    else:
        if "store.url" not in config.sources:
            # What `dragoman up` would take.
            config.store.url = f"sqlite:{home_store()}"
        findings = asyncio.run(examine(config))
    is_blocked = any(finding.state == "blocked" for finding in findings)
    if as_json:
        say_json({"ok": not is_blocked, "findings": findings})
        return int(is_blocked)
    for finding in findings:
        say(f"{finding.state:<8} {finding.what:<8} {finding.words}")
        if finding.advice:
            say(f"{'':<8} {'':<8} -> {finding.advice}")
    return int(is_blocked)
