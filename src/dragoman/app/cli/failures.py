"""How a command fails: the error codes of the A2A command line, ours beside them, and their exit codes."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["EXITS", "Failure", "failure_of", "report"]

# The codes of the A2A command-line standard (appendix D) and their exit codes; those with our name are ours.
EXITS = {
    "A2ACLI_ERR_USAGE": 2,
    "A2ACLI_ERR_CARD_NOT_FOUND": 3,
    "A2ACLI_ERR_CARD_INVALID": 1,
    "A2ACLI_ERR_UNREACHABLE": 3,
    "A2ACLI_ERR_CREDENTIALS_MISSING": 4,
    "A2ACLI_ERR_AUTH_FAILED": 4,
    "A2ACLI_ERR_TIMEOUT": 5,
    "A2ACLI_ERR_INTERNAL": 1,
    "DRAGOMAN_ERR_ADDRESS": 1,
    "DRAGOMAN_ERR_AGENT_FILE": 1,
    "DRAGOMAN_ERR_FILE": 1,
    "DRAGOMAN_ERR_NO_INTERFACE": 1,
    "DRAGOMAN_ERR_PEER": 1,
    "DRAGOMAN_ERR_STORE": 1,
    "DRAGOMAN_ERR_STORE_HELD": 1,
    "DRAGOMAN_ERR_UNTRUSTED": 1,
}
# The protocol's own errors are reported under the names that its specification gives them.
_SPECIFIED = {
    "TaskNotFound",
    "TaskNotCancelable",
    "PushNotificationNotSupported",
    "UnsupportedOperation",
    "ContentTypeNotSupported",
    "InvalidAgentResponse",
    "ExtendedAgentCardNotConfigured",
    "ExtensionSupportRequired",
    "VersionNotSupported",
    "InvalidRequest",
    "MethodNotFound",
    "InvalidParams",
    "Internal",
}


class Failure(Exception):
    """A command could not do what was asked. `hint` says what to do next."""

    def __init__(
        self, code: str, message: str, hint: str = "", *, a2a_code: int | None = None, more: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.a2a_code = a2a_code
        # What only a person reads: a traceback of an author's file, say.
        self.more = more

    @property
    def exit(self) -> int:
        return EXITS.get(self.code, 1)

    def envelope(self) -> dict[str, Any]:
        """The error object of the standard's appendix B."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint or None,
                "a2aCode": self.a2a_code,
            }
        }


def report(failure: Failure, *, as_json: bool = False) -> None:
    """Say what went wrong: for programs on stdout, for people on stderr."""
    if as_json:
        from .speech import say_json

        say_json(failure.envelope())
        return
    from .clean import clean

    if failure.more:
        sys.stderr.write(failure.more.rstrip() + "\n")
    sys.stderr.write(f"{failure.code}: {clean(failure.message)}\n")
    if failure.hint:
        sys.stderr.write(f"Hint: {clean(failure.hint)}\n")


def failure_of(wrong: BaseException) -> Failure | None:
    """What an exception of the floors below means here; `None` for those that are our own mistakes."""
    from ...model.errors import AgentError, Fault
    from ...store.lock import StoreHeld
    from ..config import ConfigError

    match wrong:
        case Failure():
            return wrong
        case ConfigError():
            return Failure(
                "A2ACLI_ERR_USAGE", str(wrong), "`dragoman config show` says where each setting comes from."
            )
        case StoreHeld(holder=holder):
            hint = f"dragoman send {holder.address} hello" if holder is not None and holder.address else ""
            return Failure("DRAGOMAN_ERR_STORE_HELD", str(wrong), hint)
        case AgentError():
            name = f"{wrong.name}Error" if wrong.name in _SPECIFIED else wrong.name
            hint = (
                "`dragoman task list` shows the tasks that are there." if wrong.name == "TaskNotFound" else ""
            )
            return Failure(name, wrong.message, hint, a2a_code=wrong.row.code)
        case Fault():
            return Failure(
                "DRAGOMAN_ERR_PEER",
                str(wrong),
                "The agent broke the protocol; `--debug` shows what was seen.",
            )
        case _:
            return _of_client(wrong)


def _of_client(wrong: BaseException) -> Failure | None:
    from ...client import errors as client

    hint = ""
    match wrong:
        case client.NoCard():
            code = "A2ACLI_ERR_CARD_NOT_FOUND"
        case client.Unreachable():
            code = "A2ACLI_ERR_UNREACHABLE"
        case client.Cut(seen=seen):
            code = "A2ACLI_ERR_UNREACHABLE"
            hint = f"dragoman task get {seen['task_id']}" if seen.get("task_id") else "dragoman task list"
        case client.TimedOut():
            code = "A2ACLI_ERR_TIMEOUT"
        case client.Refused(seen={"status": 401 | 403 | 407}):
            code = "A2ACLI_ERR_AUTH_FAILED"
            hint = "Give the credential with --bearer TOKEN or --header NAME:VALUE."
        case client.Untrusted(seen=seen):
            code = "DRAGOMAN_ERR_UNTRUSTED"
            hint = f"If you trust it: --trust {seen.get('origin', 'ORIGIN')}"
        case client.NoInterface():
            code = "DRAGOMAN_ERR_NO_INTERFACE"
        case client.ClientError():
            code = "A2ACLI_ERR_INTERNAL"
        case _:
            return None
    return Failure(code, wrong.message, hint or wrong.advice)
