"""Where other parties' programs live: each in an environment of its own under .peers/, made once per pin."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
HOME = ROOT / ".peers"
SECONDS_MAX = 600


class Missing(Exception):
    """An environment that could not be made, and why."""


@dataclass(frozen=True)
class Peer:
    """Another party: its name, the version that is pinned, its programs and what runs them."""

    name: str
    folder: Path
    version: str
    pins: Path

    @property
    def is_python(self) -> bool:
        return self.pins.suffix == ".txt"

    @property
    def home(self) -> Path:
        mark = hashlib.sha256(self.pins.read_bytes() + sys.version.encode()).hexdigest()[:12]
        return HOME / f"{self.folder.name}-{mark}"

    def program(self, name: str) -> list[str]:
        """The command that runs one of its programs, in its environment."""
        made = self.made()
        if self.is_python:
            return [str(made / "bin" / "python"), str(self.folder / f"{name}.py")]
        # Node finds packages beside the program, so the program is put beside the packages.
        program = made / f"{name}.mjs"
        shutil.copyfile(self.folder / f"{name}.mjs", program)
        return ["node", str(program)]

    def made(self) -> Path:
        """The environment, made now if it is not there."""
        stamp = self.home / "made"
        if not stamp.exists():
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            for command in self._steps():
                self._do(command)
            stamp.touch()
        return self.home

    def _steps(self) -> list[list[str]]:
        if self.is_python:
            python = str(self.home / "bin" / "python")
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
            return [[sys.executable, "-m", "venv", str(self.home)], [*pip, "-r", str(self.pins)]]
        shutil.copyfile(self.pins, self.home / "package.json")
        return [["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]]

    def _do(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, cwd=self.home, timeout=SECONDS_MAX, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise Missing(f"{self.name} {self.version}: there is no {command[0]} here") from None
        except subprocess.TimeoutExpired:
            raise Missing(
                f"{self.name} {self.version}: {command[0]} took more than {SECONDS_MAX} s"
            ) from None
        if done.returncode:
            raise Missing(
                f"{self.name} {self.version}: {' '.join(command[:4])} failed: {done.stderr.strip()[-500:]}"
            )


def _python(name: str, folder: str) -> Peer:
    pins = HERE / folder / "requirements.txt"
    found = re.search(rf"^{re.escape(name)}(?:\[.*\])?==(\S+)", pins.read_text(), re.MULTILINE)
    assert found, f"{pins} pins {name}"
    return Peer(name, HERE / folder, found[1], pins)


def _node(name: str, folder: str) -> Peer:
    pins = HERE / folder / "package.json"
    return Peer(name, HERE / folder, json.loads(pins.read_text())["dependencies"][name], pins)


PEERS = {peer.name: peer for peer in (_python("a2a-sdk", "a2a_sdk"), _node("@a2a-js/sdk", "a2a_js"))}


def environ() -> dict[str, str]:
    """What other parties' programs may know of ours: nothing."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }


def shows(operation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Names the operation that a test stands for in the table."""

    def name(test: Callable[..., Any]) -> Callable[..., Any]:
        test.operation = operation  # type: ignore[attr-defined]
        return test

    return name
