"""The node's log: one line per record, whatever is in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from dragoman.app.logs import log_to

ODD = "x\nERROR fake\r\x1b[31m\x9b1m\u2028\u202e\ttab"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    kept, level = list(logger.handlers), logger.level
    uvicorn = logging.getLogger("uvicorn").level
    yield logger
    logger.handlers[:] = kept
    logger.setLevel(level)
    logging.getLogger("uvicorn").setLevel(uvicorn)
    logging.captureWarnings(False)


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_others_wrote_stays_on_the_line_of_its_record(root: logging.Logger, form: str):
    """Log injection (S39): an id with a newline in it is one line."""
    out = io.StringIO()
    log_to(out, form=form)
    logging.getLogger("dragoman.test").info("task %s", ODD, extra={"task_id": ODD})
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].isprintable()


def test_a_json_line_gives_back_what_was_logged(root: logging.Logger):
    out = io.StringIO()
    log_to(out, form="json")
    try:
        raise ValueError(ODD)
    except ValueError:
        logging.getLogger("dragoman.test").exception("it broke: %s", ODD, extra={"attempt": 2})
    line = json.loads(out.getvalue())
    assert line["message"] == f"it broke: {ODD}"
    assert (line["level"], line["logger"], line["attempt"]) == ("error", "dragoman.test", 2)
    assert line["trace"][0].startswith("Traceback")
    assert line["time"].endswith("Z")


def test_a_trace_in_text_stays_on_its_line(root: logging.Logger):
    out = io.StringIO()
    log_to(out)
    try:
        raise ValueError("one\ntwo")
    except ValueError:
        logging.getLogger("dragoman.test").exception("it broke")
    [line] = out.getvalue().splitlines()
    assert "error dragoman.test: it broke | Traceback" in line
    assert "ValueError: one | two" in line


def test_what_is_below_the_level_is_not_logged(root: logging.Logger):
    out = io.StringIO()
    log_to(out, level="warning")
    logging.getLogger("dragoman.test").info("quiet")
    logging.getLogger("uvicorn.error").info("quiet")
    assert out.getvalue() == ""
