"""How the process ends: every way a command can fail becomes one report and one exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Any

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError

from .failures import Failure, failure_of, report
from .speech import Unheard

__all__ = ["end"]


def end(command: Callable[[], Any], words: Sequence[str]) -> None:
    """Run the command and leave."""
    as_json = _wants_json(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Whatever the locale can spell: nobody loses an answer to a letter.
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("_DRAGOMAN_COMPLETE"):
        _ready_to_complete()
    try:
        code = command()
    except Unheard:
        code = _unheard()
    except NoArgsIsHelpError as asked:
        sys.stderr.write(asked.format_message() + "\n")
        code = 2
    except ClickException as wrong:
        failure = Failure("A2ACLI_ERR_USAGE", wrong.format_message(), _help_for(wrong))
        code = _reported(failure, as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as wrong:
        code = _failed(wrong, as_json, "--debug" in words)
    _leave(code if isinstance(code, int) else 0)


def _failed(wrong: Exception, as_json: bool, debug: bool) -> int:
    failure = failure_of(wrong)
    if failure is None:
        hint = "" if debug else "This is our mistake; --debug shows where it is."
        failure = Failure("A2ACLI_ERR_INTERNAL", f"{type(wrong).__name__}: {wrong}", hint)
    if debug:
        import traceback

        traceback.print_exception(wrong)
    return _reported(failure, as_json)


def _reported(failure: Failure, as_json: bool) -> int:
    try:
        report(failure, as_json=as_json)
    except (Unheard, BrokenPipeError):
        _unheard()
    return failure.exit


def _wants_json(words: Sequence[str]) -> bool:
    """Whether the answer was to be JSON, also when the words are wrong otherwise."""
    return any(
        word in ("-ojson", "-o=json", "--output=json") or (word in ("-o", "--output") and after == "json")
        for word, after in zip(words, [*words[1:], ""], strict=False)
    )


def _help_for(wrong: ClickException) -> str:
    path = wrong.ctx.command_path if isinstance(wrong, UsageError) and wrong.ctx is not None else "dragoman"
    return f"{path} --help"


def _unheard() -> int:
    """Whoever read the answer has had enough: that is not a failure, and nothing more can be said."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return 0


def _leave(code: int) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _unheard()
    raise SystemExit(code)


def _ready_to_complete() -> None:
    from typer._completion_classes import completion_init

    completion_init()
