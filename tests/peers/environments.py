"""Who the other parties are, and where their programs live: each pin in an environment of its own under .peers/."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dragoman.wire.versions import DIALECTS, Dialect

__all__ = ["HOME", "PEERS", "Missing", "Peer"]

HERE = Path(__file__).parent
PINS, PROGRAMS = HERE / "pins", HERE / "programs"
HOME = HERE.parent.parent / ".peers"
SECONDS_MAX = 600


class Missing(Exception):
    """An environment that could not be made, and why."""


@dataclass(frozen=True)
class Peer:
    """Another party: what is pinned, its programs by what they are for, and the dialects it speaks.

    `spelling` is how its client program takes messages: as 1.0 has them, or marked with `kind` or `type`.
    """

    name: str
    pins: Path
    programs: dict[str, str]
    dialects: tuple[Dialect, ...]
    spelling: str

    @property
    def version(self) -> str:
        text = self.pins.read_text()
        if not self.is_python:
            return str(json.loads(text)["dependencies"][self.name])
        found = re.search(rf"^{re.escape(self.name)}(?:\[.*\])?==(\S+)", text, re.MULTILINE)
        assert found, f"{self.pins} pins {self.name}"
        return found[1]

    @property
    def is_python(self) -> bool:
        return self.pins.suffix == ".txt"

    @property
    def home(self) -> Path:
        mark = hashlib.sha256(self.pins.read_bytes() + sys.version.encode()).hexdigest()[:12]
        return HOME / f"{self.pins.stem}-{mark}"

    def program(self, use: str) -> list[str]:
        """The command that runs one of its programs, in its environment."""
        made, name = self.made(), self.programs[use]
        if self.is_python:
            return [str(made / "bin" / "python"), str(PROGRAMS / name)]
        # Node finds packages beside the program, so the programs are put beside the packages.
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copyfile(program, made / program.name)
        return ["node", str(made / name)]

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
        who = f"{self.name} {self.version}"
        try:
            done = subprocess.run(
                command, cwd=self.home, timeout=SECONDS_MAX, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise Missing(f"{who}: there is no {command[0]} here") from None
        except subprocess.TimeoutExpired:
            raise Missing(f"{who}: {command[0]} took more than {SECONDS_MAX} s") from None
        if done.returncode:
            words = done.stderr.strip()[-500:]
            raise Missing(f"{who}: {' '.join(command[:4])} failed: {words}")


def _peer(name: str, pins: str, client: str, server: str, dialects: str, spelling: str) -> Peer:
    """A row. Where there is no client or no server, its program is empty; `dialects` are `BINDING VERSION`."""
    programs = {use: program for use, program in (("client", client), ("server", server)) if program}
    found = (words.split() for words in dialects.split(", "))
    return Peer(
        name, PINS / pins, programs, tuple(DIALECTS[binding, version] for binding, version in found), spelling
    )


_0_3 = "JSONRPC 0.3, HTTP+JSON 0.3"
_ALL = f"JSONRPC 1.0, HTTP+JSON 1.0, {_0_3}"
# How one insists that bytes are put into base64 once, as they do and the protocol says, instead of as a2a-sdk does.
_ONCE = "HTTP+JSON 0.3/once"
_PY, _JS = "a2a-sdk", "@a2a-js/sdk"
PEERS = (
    _peer(_PY, "a2a-sdk-1.txt", "a2a_sdk_1_client.py", "a2a_sdk_1_server.py", _ALL, "1.0"),
    _peer(_PY, "a2a-sdk-0.3.txt", "a2a_sdk_0_3_client.py", "a2a_sdk_0_server.py", _0_3, "kind"),
    _peer(_PY, "a2a-sdk-0.2.txt", "a2a_sdk_0_2_client.py", "a2a_sdk_0_server.py", "JSONRPC 0.2", "kind"),
    _peer(_JS, "a2a-js-1.json", "a2a_js_1_client.mjs", "a2a_js_1_server.mjs", f"{_ALL}, {_ONCE}", "1.0"),
    _peer(_JS, "a2a-js-0.3.json", "a2a_js_0_client.mjs", "a2a_js_0_server.mjs", f"{_0_3}, {_ONCE}", "kind"),
    # The last whose REST is JSON with `kind`.
    _peer(
        _JS,
        "a2a-js-0.3-kind.json",
        "a2a_js_0_client.mjs",
        "a2a_js_0_server.mjs",
        "HTTP+JSON 0.3/kind",
        "kind",
    ),
    _peer("fasta2a", "fasta2a.txt", "fasta2a_client.py", "fasta2a_server.py", "JSONRPC 1.0", "1.0"),
    _peer(
        "python-a2a", "python-a2a.txt", "python_a2a_client.py", "python_a2a_server.py", "JSONRPC 0.1", "type"
    ),
    _peer("a2a-adapter", "a2a-adapter.txt", "", "a2a_adapter_server.py", "JSONRPC 1.0, HTTP+JSON 1.0", "1.0"),
)
