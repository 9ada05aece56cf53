"""THE table of versions: which codec each version has on each binding, and what else differs between them.

A row is a dialect. Nobody else asks which version it is: what depends on it is a column here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl

from ..model.errors import AgentError, error
from ..model.operations.a2a import OPERATIONS, Operation
from . import proto_json_1_0, type_json
from .codec import Codec, Raw
from .kind_json import BOTH, KIND, TERSE, TYPE
from .proto_json_0_3 import ONCE, TWICE

__all__ = [
    "DIALECTS",
    "FORMS",
    "LABELS",
    "NEWEST",
    "OFFERED",
    "SPOKEN",
    "UNSAID",
    "Dialect",
    "Wanted",
    "label_of",
    "meant_by",
    "said",
    "shown",
    "two_numbers",
    "unspoken",
    "vocabulary",
]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version on one binding.

    `names` is the column of the table of operations that has its vocabulary. `header` is what its clients
    say in `A2A-Version`, `extensions` the header in which they name the extensions they understand.
    `names_tasks`: callers choose the ids of tasks. `ends_at_question`: a stream that a send opened ends when
    the agent asks back. `begins_with_task`: a stream must show the task before what happens to it. `skips`:
    a stream may go from submitted straight to the end. `calls_by_uuid`: the id of a JSON-RPC call is one.
    `repeats_artifacts`: the last event brings the artifacts, those that were streamed too. `says_tenants`:
    requests name the tenant they are for. `refuses_in_stream`: who asks for a stream reads a refusal only there.
    """

    version: str
    binding: str
    codec: Codec
    names: str
    header: str = ""
    extensions: str = ""
    names_tasks: bool = False
    ends_at_question: bool = True
    begins_with_task: bool = True
    skips: bool = True
    calls_by_uuid: bool = False
    repeats_artifacts: bool = False
    says_tenants: bool = False
    refuses_in_stream: bool = False
    # How it is called in logs and counts.
    label: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.binding} {self.version}")

    def name_of(self, operation: Operation) -> str:
        """What the operation is called here; empty when it does not exist."""
        name: str = getattr(operation, self.names)
        return name

    def name_here(self, operation: Operation) -> str:
        """What the operation is called here, or the error that says it does not exist."""
        if name := self.name_of(operation):
            return name
        words = f"version {self.version} of the protocol has no way to {operation.name} over {self.binding}"
        raise error("UnsupportedOperation", words)


class Wanted(NamedTuple):
    """What somebody insists on: a version, a binding, both or neither."""

    version: str = ""
    binding: str = ""

    def allows(self, dialect: Dialect) -> bool:
        return self.version in ("", dialect.version) and self.binding in ("", dialect.binding)


_BEFORE_1_0 = "X-A2A-Extensions"
# Newest first: who does not say a version, and could mean several, means the first.
_ROWS = (
    Dialect(
        "1.0",
        "JSONRPC",
        proto_json_1_0,
        "jsonrpc_1_0",
        header="1.0",
        extensions="A2A-Extensions",
        says_tenants=True,
    ),
    Dialect(
        "1.0",
        "HTTP+JSON",
        proto_json_1_0,
        "rest_1_0",
        header="1.0",
        extensions="A2A-Extensions",
        says_tenants=True,
    ),
    Dialect(
        "0.3",
        "JSONRPC",
        KIND,
        "jsonrpc_0_3",
        header="0.3",
        extensions=_BEFORE_1_0,
        refuses_in_stream=True,
    ),
    Dialect("0.3", "HTTP+JSON", TWICE, "rest_0_3", header="0.3", extensions=_BEFORE_1_0),
    Dialect("0.2", "JSONRPC", KIND, "jsonrpc_0_3", extensions=_BEFORE_1_0, refuses_in_stream=True),
    Dialect("0.2", "HTTP+JSON", TWICE, "rest_0_3", extensions=_BEFORE_1_0),
    Dialect(
        "0.1",
        "JSONRPC",
        type_json,
        "jsonrpc_0_1",
        extensions=_BEFORE_1_0,
        names_tasks=True,
        ends_at_question=False,
        begins_with_task=False,
        skips=False,
        repeats_artifacts=True,
    ),
)
# Forms in which 0.3 is met over REST beside its own: its text never said which JSON it meant. Who insists on one
# names it after the version.
_FORMS = (
    Dialect("0.3/kind", "HTTP+JSON", KIND, "rest_0_3", header="0.3", extensions=_BEFORE_1_0),
    Dialect("0.3/once", "HTTP+JSON", ONCE, "rest_0_3", header="0.3", extensions=_BEFORE_1_0),
)

DIALECTS: dict[tuple[str, str], Dialect] = {(row.binding, row.version): row for row in (*_ROWS, *_FORMS)}
# What one may insist on.
LABELS = tuple(dict.fromkeys(label for _, label in DIALECTS))
# By how a body looks, or what a setting says: the form of 0.3 over REST.
FORMS: dict[str, Dialect] = {
    "proto": DIALECTS["HTTP+JSON", "0.3"],
    **{row.version.partition("/")[2]: row for row in _FORMS},
}
# How a peer is spoken to whose card says no version, until its own parts show what it reads.
_UNSURE = Dialect("0.2", "JSONRPC", BOTH, "jsonrpc_0_3", extensions=_BEFORE_1_0, calls_by_uuid=True)
_SURE = {
    b"kind": Dialect("0.2", "JSONRPC", TERSE, "jsonrpc_0_3", extensions=_BEFORE_1_0, calls_by_uuid=True),
    b"type": Dialect("0.2", "JSONRPC", TYPE, "jsonrpc_0_3", extensions=_BEFORE_1_0, calls_by_uuid=True),
}
# What a card means that names a binding but no version: to be tried in this order.
UNSAID: dict[str, tuple[Dialect, ...]] = {
    "JSONRPC": (_UNSURE, DIALECTS["JSONRPC", "0.1"]),
    "HTTP+JSON": (DIALECTS["HTTP+JSON", "0.3"],),
}
NEWEST = _ROWS[0].version
# What cards list. Elder versions find their way by what those cards say beside it.
OFFERED = tuple((row.binding, row.version) for row in _ROWS if row.version in (NEWEST, "0.3"))
SPOKEN = tuple(dict.fromkeys(row.version for row in _ROWS))


def label_of(text: str) -> str | None:
    """What somebody means who writes a version, perhaps with a form of it: `1.0`, `0.3.0`, `0.3/kind`."""
    version, slash, form = text.strip().partition("/")
    label = f"{two_numbers(version) or version}{slash}{form}"
    return label if label in LABELS else None


def meant_by(binding: str, version: str) -> tuple[Dialect, ...]:
    """The dialects in which an interface may be called that a card lists; none if it is not spoken here."""
    if not version:
        return UNSAID.get(binding, ())
    found = DIALECTS.get((binding, two_numbers(version) or version))
    return () if found is None else (found,)


def shown(dialect: Dialect, said: Raw) -> Dialect:
    """What a peer that did not say its version reads: what it writes itself."""
    if dialect is not _UNSURE:
        return dialect
    marks = set(_MARK(said))
    return _SURE[marks.pop()] if len(marks) == 1 else dialect


_MARK = re.compile(rb'"(kind|type)"\s*:\s*"(?:text|file|data)"').findall


def two_numbers(text: str) -> str | None:
    """`Major.Minor` of a version as peers write it (`1.0`, `1.0.1`), or nothing if it is none."""
    numbers = text.strip().split(".")
    if len(numbers) not in (2, 3) or not all(n.isascii() and n.isdigit() and len(n) < 6 for n in numbers):
        return None
    return f"{int(numbers[0])}.{int(numbers[1])}"


def said(header: bytes, query: bytes) -> str:
    """The version that a request says it is in, empty if it says none. Said twice, it must be said alike."""
    if not header and not query:
        return ""
    texts = header.decode("latin-1").split(",")
    # Names of service parameters are not case-sensitive (§3.2.6), in the address no more than in headers.
    texts += [text for name, text in parse_qsl(query.decode("latin-1")) if name.lower() == "a2a-version"]
    texts = [text.strip() for text in texts if text.strip()]
    if not texts:
        return ""
    if len({two_numbers(text) or text for text in texts}) > 1:
        raise error("InvalidRequest", f"the request says version {' and '.join(texts)}", at="A2A-Version")
    version = two_numbers(texts[0])
    if version not in SPOKEN:
        raise unspoken(texts[0])
    return version


def unspoken(version: str) -> AgentError:
    """The refusal of a version that is not spoken here."""
    return error(
        "VersionNotSupported",
        f"version {version} is not spoken here; {', '.join(SPOKEN)} are",
        requested=version,
        supported=",".join(SPOKEN),
    )


def vocabulary(binding: str) -> dict[str, tuple[tuple[Operation, Dialect], ...]]:
    """By the name of an operation on a binding: what it may mean, newest first."""
    found: dict[str, tuple[tuple[Operation, Dialect], ...]] = {}
    for dialect in _ROWS:
        if dialect.binding == binding:
            for operation in OPERATIONS.values():
                if name := dialect.name_of(operation):
                    found[name] = (*found.get(name, ()), (operation, dialect))
    return found
