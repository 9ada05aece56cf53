"""REST as A2A uses it: from an address and a body to an operation and its request, from an answer to a body.

1.0 has its paths at the root of the agent, 0.3 below `/v1`; peers mix them, so both are read everywhere,
and the version said, the path and the look of the body decide together which dialect is meant.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct

from ..model.errors import AgentError, error
from ..model.events import Logged, TaskCreated
from ..model.operations.a2a import OPERATIONS, Operation, Request
from ..model.peer import Answer
from ..model.task import Task
from . import guard
from .codec import Ends, FreshId, Voice
from .parts import is_twice
from .refusals import details_of
from .versions import DIALECTS, FORMS, NEWEST, Dialect, said

__all__ = ["A2A_JSON", "FORMS_MAX", "Asked", "Place", "Rules", "place_of"]

JSON, A2A_JSON = b"application/json", b"application/a2a+json"
_BINDING = "HTTP+JSON"
_NEWEST = DIALECTS[_BINDING, NEWEST]
# How many tasks it is remembered of that they were opened in a form that only bodies show.
FORMS_MAX = 10_000
# The paths below an agent, with `{id}` and `{config}` where ids stand, and what each method there is.
_PATHS: dict[str, dict[str, Operation | str]] = {
    "/tasks/{id}/pushNotificationConfigs": dict.fromkeys(("POST", "GET"), "PushNotificationNotSupported"),
    "/tasks/{id}/pushNotificationConfigs/{config}": dict.fromkeys(
        ("GET", "DELETE"), "PushNotificationNotSupported"
    ),
    "/extendedAgentCard": {"GET": "UnsupportedOperation"},
    "/card": {"GET": "ExtendedAgentCardNotConfigured"},
}
for _operation in OPERATIONS.values():
    _method, _, _path = _operation.rest_1_0.partition(" ")
    _PATHS.setdefault(_path, {})[_method] = _operation
_PATHS["/tasks/{id}:subscribe"]["GET"] = OPERATIONS["subscribe"]
_VERBS = ("cancel", "subscribe")


class Rules(Struct, frozen=True):
    """What an operator may set. `is_1_0_0`: the statuses and the media type of 1.0.0, which 1.0.1 changed.
    `form_0_3`: `proto` or `once`, how 0.3 is spelled for who does not show otherwise.
    """

    is_1_0_0: bool = False
    form_0_3: str = "proto"


class Place(Struct, frozen=True):
    """What an address means: what each method there is, and what stands in the path."""

    methods: dict[str, Operation | str]
    id: str = ""
    tenant: str = ""
    is_below_v1: bool = False


def place_of(path: str) -> Place | None:
    """The place at a path below an agent (as it was sent, percent signs and all); None if there is none."""
    # What separates is told from what is escaped before anything is unescaped.
    segments = path.split("/")[1:]
    is_below_v1 = segments[:1] == ["v1"]
    if is_below_v1:
        del segments[0]
    for tenant in ("", *segments[:1]):
        pattern, id = _pattern(segments[1:] if tenant else segments)
        if pattern in _PATHS:
            return Place(_PATHS[pattern], unquote(id), unquote(tenant), is_below_v1)
    return None


def _pattern(segments: Sequence[str]) -> tuple[str, str]:
    match segments:
        case ["tasks", name] if name:
            id, _, verb = name.rpartition(":")
            return (f"/tasks/{{id}}:{verb}", id) if id and verb in _VERBS else ("/tasks/{id}", name)
        case ["tasks", id, "pushNotificationConfigs"]:
            return "/tasks/{id}/pushNotificationConfigs", id
        case ["tasks", id, "pushNotificationConfigs", _]:
            return "/tasks/{id}/pushNotificationConfigs/{config}", id
        case _:
            return "/" + "/".join(segments), ""


class Asked:
    """One request: read from an address and a body, it knows how its answer is spelled."""

    __slots__ = ("_forms", "_rules", "dialect", "media_type", "operation", "place", "request")
    names_tasks = False
    needs_body = False
    refuses_in_stream = False

    def __init__(
        self, place: Place, rules: Rules, forms: MutableMapping[str, str], accept: bytes = b""
    ) -> None:
        self.place = place
        self._rules = rules
        self._forms = forms
        self.dialect = FORMS[rules.form_0_3] if place.is_below_v1 else _NEWEST
        self.media_type = JSON if rules.is_1_0_0 else _wanted(accept)
        self.operation: Operation
        self.request: Request

    def read(
        self,
        method: str,
        body: bytes,
        new_id: FreshId,
        header: bytes = b"",
        query: bytes = b"",
        body_bytes_max: int = guard.BODY_BYTES_MAX,
    ) -> None:
        """Read what is asked."""
        facts = guard.check(body, body_bytes_max) if body else None
        self.dialect = self._meant(said(header, query), body)
        if self.dialect is not _NEWEST:
            self.media_type = JSON
        found = self.place.methods[method]
        if isinstance(found, str):
            raise error(found)
        if not self.dialect.name_of(found):
            raise error("MethodNotFound", f"version {self.dialect.version} cannot {found.name} over REST")
        self.operation = found
        codec = self.dialect.codec
        if found.name in _WITH_BODY:
            self.request = codec.read_request(
                found, body or b"{}", new_id, lenient=facts is not None and facts.lenient
            )
            self._check_tenant(getattr(self.request, "tenant", ""))
            if self.place.tenant:
                self.request = msgspec.structs.replace(self.request, tenant=self.place.tenant)
        else:
            members = self._members(found, query) if method == "GET" else self._merged(body)
            # Values of a query are texts: the lenient way reads numbers in them. Without a body all
            # versions say the same, so the newest codec reads it.
            self.request = _NEWEST.codec.read_request(
                found, msgspec.json.encode(members), new_id, lenient=True
            )

    def _meant(self, version: str, body: bytes) -> Dialect:
        if version and (_BINDING, version) not in DIALECTS:
            raise error("VersionNotSupported", f"version {version} is not spoken over REST")
        if version == NEWEST:
            return _NEWEST
        # Elder peers say no version, and whoever says one has not said which form of it.
        form = _look(body) or self._forms.get(self.place.id, "")
        if form == "proto" or (not form and version):
            form = self._rules.form_0_3
        return FORMS.get(form, self.dialect)

    def _members(self, operation: Operation, query: bytes) -> dict[str, Any]:
        members: dict[str, Any] = {}
        known = {field.encode_name: field for field in msgspec.structs.fields(operation.request)}
        known |= {field.name: field for field in msgspec.structs.fields(operation.request)}
        for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            field = known.get(name)
            if field is None or field.name == "id" or text == "":
                continue
            if text == "0" and field.name == "history_length" and self.dialect is not _NEWEST:
                continue  # before 1.0 that is how protobuf says nothing
            members[field.encode_name] = _BOOLEANS.get(text, text) if field.type is bool else text
        return self._placed(members)

    def _merged(self, body: bytes) -> dict[str, Any]:
        """The body of a request whose task stands in its path."""
        members: Any = _decode(body) if body.strip() else {}
        if not isinstance(members, dict):
            raise error("InvalidParams", "the body is a JSON object, or there is none")
        for name in ("id", "name"):
            named = members.pop(name, None)
            if named not in (None, "", self.place.id, f"tasks/{self.place.id}"):
                raise error(
                    "InvalidParams", f"the path names task {self.place.id}, the body another", at=name
                )
        return self._placed(members)

    def _placed(self, members: dict[str, Any]) -> dict[str, Any]:
        self._check_tenant(members.get("tenant"))
        if self.place.id:
            members["id"] = self.place.id
        if self.place.tenant:
            members["tenant"] = self.place.tenant
        return members

    def _check_tenant(self, named: object) -> None:
        if named and self.place.tenant and named != self.place.tenant:
            words = f"the path names tenant {self.place.tenant}, the request {named}"
            raise error("InvalidParams", words, at="tenant")

    @property
    def task_id(self) -> str:
        """The task that is asked about."""
        return self.place.id

    def replied(self, answer: Answer) -> bytes:
        """The body of an answer."""
        if isinstance(answer.value, Task):
            self._remember(answer.value.id)
        return self.dialect.codec.spell_reply(self.operation, answer)

    def voice(self, first: Sequence[Logged] | None, ends: Ends) -> Voice:
        """How to tell a stream."""
        if first and isinstance(begin := first[0].event, TaskCreated):
            self._remember(begin.task.id)
        return Voice(b"", b"", self.dialect.codec.teller(ends))

    def _remember(self, task_id: str) -> None:
        """Who opened a task in a form that bodies alone show is answered in it when there is no body."""
        form = self.dialect.version.partition("/")[2]
        if form and form != self._rules.form_0_3:
            self._forms[task_id] = form
            if len(self._forms) > FORMS_MAX:
                del self._forms[next(iter(self._forms))]

    def failed(self, wrong: AgentError) -> tuple[int, bytes]:
        """The status and the body of an error. 0.3 left its form free: its members stand beside 1.0's."""
        row = wrong.row
        status, name = row.http, row.grpc
        if self._rules.is_1_0_0:
            status, name = row.http_1_0 or status, row.grpc_1_0 or name
        spelled: dict[str, Any] = {
            "error": {"code": status, "status": name, "message": wrong.message, "details": details_of(wrong)}
        }
        if self.dialect is not _NEWEST:
            spelled = {**self.dialect.codec.spell_error(wrong), **spelled}
        return status, msgspec.json.encode(spelled)


_WITH_BODY = ("send", "stream")
_BOOLEANS = {"true": True, "false": False}


def _wanted(accept: bytes) -> bytes:
    """The media type of an answer: the protocol's own, unless plain JSON is asked for by name."""
    kinds = accept.lower()
    return JSON if b"application/json" in kinds and A2A_JSON not in kinds else A2A_JSON


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise error("ParseError", f"The body is not JSON: {wrong}") from None


class _File(Struct, rename="camel"):
    file_with_bytes: str = ""


class _Part(Struct):
    kind: object = None
    file: _File | None = None


class _Message(Struct):
    kind: object = None
    role: object = None
    content: list[_Part] = []
    parts: list[_Part] = []


class _Body(Struct):
    message: _Message | None = None


def _look(body: bytes) -> str:
    """Which of the forms that 0.3 has in the wild a body is spelled in, as far as it shows; else nothing."""
    if not body:
        return ""
    try:
        message = msgspec.json.decode(body, type=_Body).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if message is None:
        return ""
    if message.kind or message.role in ("user", "agent") or any(part.kind for part in message.parts):
        return "kind"
    files = [part.file.file_with_bytes for part in message.content if part.file is not None]
    if any(encoded and not is_twice(encoded) for encoded in files):
        return "once"
    return "proto" if message.content else ""
