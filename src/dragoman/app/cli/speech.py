"""What is said where: results on stdout, all else on stderr; and how a command is written to be typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

__all__ = ["Unheard", "command", "is_terminal", "note", "say", "say_json"]


# In UTF-8: DEL, the 8-bit controls, and what reorders bidirectional text.
_OBEYED = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


class Unheard(Exception):
    """Whoever read the result has had enough of it."""


def say(text: str, *, end: str = "\n") -> None:
    """A line of the result."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        raise Unheard from None


def say_json(value: Any) -> None:
    """A result as one JSON document on one line."""
    import msgspec

    text = value if isinstance(value, bytes) else msgspec.json.encode(value)
    # JSON escapes what is below the space; terminals obey more than that.
    text = _OBEYED.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), text)
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise Unheard from None


def note(text: str) -> None:
    """Something beside the result, for people."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def is_terminal() -> bool:
    """Whether a person watches what is said beside the result."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def command(*words: str) -> str:
    """A command of ours, as it can be typed in this shell."""
    return " ".join([_program(), *map(shlex.quote, words)])


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{Path(sys.executable).name} -m dragoman"
    if called.name != "dragoman" or ((found := shutil.which("dragoman")) and os.path.samefile(found, called)):
        return "dragoman"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)
