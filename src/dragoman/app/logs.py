"""How the node logs: one line per record, as text or JSON, with whatever others wrote in it escaped."""

from __future__ import annotations

import logging
import sys
import time
from typing import TextIO

__all__ = ["log_to"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Control characters, the separators that some readers take for line ends, and what reorders a line.
_ODD = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_JSON_ESCAPES = {n: f"\\u{n:04x}" for n in _ODD}
_TEXT_ESCAPES = {n: f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}" for n in _ODD}
_TEXT_ESCAPES |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
# What the standard library puts on every record; the rest are fields of the line.
_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextLines(logging.Formatter):
    """`2026-11-18T10:00:00.123Z info dragoman.node: what happened`"""

    def format(self, record: logging.LogRecord) -> str:
        words = record.getMessage()
        more = "".join(f" {name}={value}" for name, value in _fields(record).items())
        trace = "".join(f" | {line}" for line in _trace(record))
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {words}{more}{trace}"
        return line.translate(_TEXT_ESCAPES)


class JsonLines(logging.Formatter):
    """One JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        import msgspec

        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: _plain(value) for name, value in _fields(record).items()},
        }
        if trace := _trace(record):
            line["trace"] = trace
        # What is below the space JSON has escaped itself.
        return msgspec.json.encode(line).decode().translate(_JSON_ESCAPES)


def log_to(stream: TextIO | None = None, *, level: str = "info", form: str = "text") -> None:
    """Send all logging of the process to a stream (stderr), in one form."""
    out = logging.StreamHandler(stream or sys.stderr)
    out.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [out]
    root.setLevel(LEVELS[level])
    # Its start and stop are told by the node.
    logging.getLogger("uvicorn").setLevel(max(LEVELS[level], logging.WARNING))
    logging.captureWarnings(True)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _KNOWN}


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _trace(record: logging.LogRecord) -> list[str]:
    if record.exc_info and record.exc_info[0] is not None:
        import traceback

        return "".join(traceback.format_exception(*record.exc_info)).splitlines()
    return []


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
