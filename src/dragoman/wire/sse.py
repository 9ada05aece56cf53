"""Server-sent events as bytes: how one event is framed, and how a cut-up byte stream becomes events again.

The reader follows the WHATWG rules to the letter; what it finds does not depend on how the bytes were cut.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..model.errors import Fault

__all__ = ["EVENT_BYTES_MAX", "KEEP_ALIVE", "Item", "Reader", "frame", "retry_after"]

EVENT_BYTES_MAX = 20 * 1024 * 1024
# A comment: proves to both ends and to proxies between them that the connection lives. No empty line follows it,
# nor the retry: readers met in the field (httpx-sse) make an event without data of it once an id was said.
KEEP_ALIVE = b":\n"

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def frame(seq: int, data: bytes) -> bytes:
    """One event on the wire. A `seq` of 0 has no place in a log and gets no id."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    if seq:
        return b"id: %d\ndata: %b\n\n" % (seq, data)
    return b"data: %b\n\n" % data


def retry_after(milliseconds: int) -> bytes:
    """Tells the reader how long to wait before it connects again: the first line of the event that follows."""
    return b"retry: %d\n" % milliseconds


class Item(NamedTuple):
    """One event as it arrived: the last id said so far, its type, its lines joined.

    `brought_id` tells an event with an id of its own from one that inherits the last.
    """

    id: str
    event: str
    data: bytes
    brought_id: bool = False


class Reader:
    """Bytes in, events out. An event that is not ended by an empty line never happened.

    An event (its lines together) or a comment above `event_bytes_max` sets `fault`; what came
    before it is still handed out, and nothing after it is read.
    """

    __slots__ = (
        "_brought_id",
        "_event",
        "_held",
        "_held_bytes",
        "_id",
        "_lines",
        "_max",
        "_size",
        "_skip_lf",
        "_start",
        "beats",
        "fault",
        "last_id",
        "retry_ms",
    )

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        # The id of the last event that was completed: an id whose event was cut off does not count.
        self.last_id = ""
        self.retry_ms: int | None = None
        self.fault: Fault | None = None
        # Comments seen: a peer that sends them can be noticed when it falls silent.
        self.beats = 0
        self._max = event_bytes_max
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._lines: list[bytes] = []
        self._id = ""
        self._brought_id = False
        self._event = ""
        self._size = 0
        self._skip_lf = False
        self._start: bytes | None = b""

    def feed(self, chunk: bytes) -> list[Item]:
        """The events that these bytes complete."""
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._skip_lf and chunk:
            # The CR that ended the last chunk also ended its line; its LF is not a second end.
            self._skip_lf = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if not chunk or self.fault is not None:
            return []
        if b"\r" in chunk:
            self._skip_lf = chunk[-1] == 13
            lines = _LINE_END.split(chunk)
        else:
            lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._held:
            self._held.append(lines[0])
            lines[0] = b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
        items = self._take(lines)
        if rest and self.fault is None:
            self._held.append(rest)
            self._held_bytes += len(rest)
            if self._size + self._held_bytes > self._max:
                self._too_large()
        return items

    def _without_bom(self, chunk: bytes) -> bytes:
        assert self._start is not None
        start = self._start + chunk
        if len(start) < 3 and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _take(self, lines: list[bytes]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            if not line:
                self.last_id = self._id
                if self._lines:
                    whole = self._lines[0] if len(self._lines) == 1 else b"\n".join(self._lines)
                    items.append(Item(self._id, self._event, whole, self._brought_id))
                    self._lines = []
                self._event = ""
                self._brought_id = False
                self._size = 0
                continue
            if self._size + len(line) > self._max:
                self._too_large()
                break
            if line[0] == 58:
                self.beats += 1
                continue
            self._size += len(line)
            self._field(line)
        return items

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._lines.append(value)
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
                self._brought_id = True
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)

    def _too_large(self) -> None:
        self.fault = Fault(f"the peer sent an event larger than {self._max} bytes", bytes_max=self._max)
        self._held.clear()
        self._held_bytes = 0
        self._lines = []
