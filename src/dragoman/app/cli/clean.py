"""What an agent may not do to a terminal: control sequences and reordering marks are taken out of its text.

An automaton, because a sequence may be cut anywhere between two chunks of a stream.
"""

from __future__ import annotations

import re

__all__ = ["Cleaner", "clean"]

# A string that is never ended swallows no more than this; what follows is shown again.
STRING_CHARACTERS_MAX = 4096

# Embeddings, overrides and isolates of bidirectional text: they make a line read otherwise than it is.
_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
# What begins a sequence or is a control of its own; tab and newline are text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_TEXT, _ESCAPE, _CSI, _STRING, _STRING_ESCAPE, _RETURN = range(6)
# After ESC or as one 8-bit control: CSI; and the strings DCS, SOS, OSC, PM, APC.
_OPENS = {"[": _CSI, "P": _STRING, "X": _STRING, "]": _STRING, "^": _STRING, "_": _STRING}
_OPENS |= {chr(ord(letter) + 0x40): state for letter, state in _OPENS.items()}


class Cleaner:
    """Cleans one text that comes in pieces."""

    def __init__(self) -> None:
        self._state = _TEXT
        self._length = 0

    def feed(self, text: str) -> str:
        """What of the next piece may be shown."""
        if self._state == _TEXT and not _CONTROL.search(text):
            return _MARKS.sub("", text)
        return _MARKS.sub("", "".join(filter(None, map(self._step, text))))

    def _step(self, c: str) -> str:
        if self._state == _RETURN:
            # A carriage return alone would write over the line; before a newline it is nothing.
            self._state = _TEXT
            return ("" if c == "\n" else "\n") + self._step(c)
        if c in "\x18\x1a":
            self._state = _TEXT
        elif c == "\x1b":
            self._state = _STRING_ESCAPE if self._state in (_STRING, _STRING_ESCAPE) else _ESCAPE
        elif self._state == _TEXT:
            return self._plain(c)
        elif self._state in (_STRING, _STRING_ESCAPE):
            return self._in_string(c)
        elif self._state == _ESCAPE:
            self._escaped(c)
        elif c < " " or "\x80" <= c <= "\x9f":
            # Terminals obey a control in the middle of a sequence; so is a newline kept.
            return self._plain(c)
        elif not (" " <= c <= "?" or c == "\x7f"):
            # The letter that ends the sequence; or something that no sequence has, which is text again.
            self._state = _TEXT
            return "" if c <= "~" else c
        return ""

    def _plain(self, c: str) -> str:
        if c in "\t\n" or " " <= c < "\x7f" or c > "\x9f":
            return c
        if c == "\r":
            self._state = _RETURN
        elif c in _OPENS:
            self._state, self._length = _OPENS[c], 0
        return ""

    def _escaped(self, c: str) -> None:
        if c in "[P]X^_":
            self._state, self._length = _OPENS[c], 0
        elif not " " <= c <= "/":
            self._state = _TEXT

    def _in_string(self, c: str) -> str:
        self._length += 1
        if self._state == _STRING_ESCAPE and c != "\\":
            # Not the end of the string but of nothing: the escape begins a sequence of its own.
            self._state = _ESCAPE
            self._escaped(c)
        elif (
            c in "\x07\x9c\\" and (c != "\\" or self._state == _STRING_ESCAPE)
        ) or self._length >= STRING_CHARACTERS_MAX:
            self._state = _TEXT
        return ""


def clean(text: str) -> str:
    """A whole text, made safe to show."""
    return Cleaner().feed(text)
