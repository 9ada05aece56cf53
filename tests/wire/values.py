"""Any value of the model, for the round trips of every codec. What a codec loses, its own test says."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from dragoman.model.card import Capabilities, Card, Extension, Interface, Provider, Signature, Skill
from dragoman.model.events import (
    ArtifactChanged,
    ArtifactUpdate,
    Event,
    Replied,
    StatusChanged,
    StatusUpdate,
    TaskCreated,
)
from dragoman.model.operations import Cancel, Configuration, Get, List, Request, Send, Subscribe
from dragoman.model.task import Artifact, Message, Part, Role, State, Status, Task

__all__ = [
    "PATIENT",
    "artifacts",
    "cards",
    "events",
    "json_objects",
    "json_values",
    "messages",
    "parts",
    "requests",
    "sends",
    "statuses",
    "tasks",
]

# A machine under load is slow, and no example says how fast it must be.
PATIENT = settings(deadline=None)
INT32_MAX = 2**31 - 1
# The guard lets no zero byte in, and half a surrogate pair is no UTF-8.
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
TEXTS = st.text(LETTERS, max_size=6)
IDS = st.sampled_from(["a", "b1", "01890000-0000-7000-b000-000000000000", "ü"])
MEDIA_TYPES = st.sampled_from(["", "text/plain", "application/json"])
FILENAMES = st.sampled_from(["", "a.txt", "ü.png"])
MOMENTS = st.sampled_from(["", "2026-01-31T12:00:00.000Z", "2026-12-31T23:59:59.999999Z"])
# Some keys are those with which codecs mark what they moved.
KEYS = TEXTS | st.sampled_from(
    ["value", "data", "mediaType", "filename", "data_part_compat", "urn:dragoman:part", "kind", "message_id"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)


def json_values() -> st.SearchStrategy[Any]:
    """Free JSON, as in metadata and in data parts."""
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
        max_leaves=4,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Metadata that is there, and may be empty."""
    return st.dictionaries(KEYS, json_values(), max_size=2)


def _metadata() -> st.SearchStrategy[dict[str, Any] | None]:
    return st.none() | json_objects()


def _uris() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(["urn:a", "https://b.example/c"]), max_size=2).map(tuple)


def parts() -> st.SearchStrategy[Part]:
    """A part holds exactly one of text, raw, url and data."""
    content = (
        st.fixed_dictionaries({"text": TEXTS})
        | st.fixed_dictionaries(
            {"raw": st.binary(max_size=6) | st.sampled_from([b"abcd", b"YWI=", b"WVdJPQ=="])}
        )
        | st.fixed_dictionaries({"url": st.sampled_from(["", "https://a.example/b"])})
        | st.fixed_dictionaries({"data": json_values()})
    )
    return st.builds(
        lambda content, metadata, filename, media_type: Part(
            metadata=metadata, filename=filename, media_type=media_type, **content
        ),
        content,
        _metadata(),
        FILENAMES,
        MEDIA_TYPES,
    )


def _runs_of_parts() -> st.SearchStrategy[tuple[Part, ...]]:
    return st.lists(parts(), min_size=1, max_size=3).map(tuple)


def messages() -> st.SearchStrategy[Message]:
    """A message with at least one part, as every codec asks of a request."""
    return st.builds(
        Message,
        message_id=IDS,
        role=st.sampled_from(Role),
        parts=_runs_of_parts(),
        context_id=st.just("") | IDS,
        task_id=st.just("") | IDS,
        metadata=_metadata(),
        extensions=_uris(),
        reference_task_ids=st.lists(IDS, max_size=2).map(tuple),
    )


def artifacts() -> st.SearchStrategy[Artifact]:
    return st.builds(
        Artifact,
        artifact_id=IDS,
        parts=_runs_of_parts(),
        name=TEXTS,
        description=TEXTS,
        metadata=_metadata(),
        extensions=_uris(),
    )


def statuses() -> st.SearchStrategy[Status]:
    return st.builds(Status, state=st.sampled_from(State), message=st.none() | messages(), timestamp=MOMENTS)


def tasks() -> st.SearchStrategy[Task]:
    return st.builds(
        Task,
        id=IDS,
        status=statuses(),
        context_id=st.just("") | IDS,
        artifacts=st.lists(artifacts(), max_size=2).map(tuple),
        history=st.lists(messages(), max_size=2).map(tuple),
        metadata=_metadata(),
    )


def events() -> st.SearchStrategy[Event]:
    """An event that callers see: what an item of a stream can say."""
    status_updates = st.builds(
        StatusUpdate, task_id=IDS, context_id=IDS, status=statuses(), metadata=_metadata()
    )
    artifact_updates = st.builds(
        ArtifactUpdate,
        task_id=IDS,
        context_id=IDS,
        artifact=artifacts(),
        append=st.booleans(),
        last_chunk=st.booleans(),
        metadata=_metadata(),
    )
    return (
        st.builds(TaskCreated, tasks())
        | st.builds(Replied, messages())
        | st.builds(StatusChanged, status_updates)
        | st.builds(ArtifactChanged, artifact_updates)
    )


def sends() -> st.SearchStrategy[Send]:
    """A request to send, with a tenant sometimes."""
    authentication = st.fixed_dictionaries({"scheme": st.just("Bearer")}, optional={"credentials": TEXTS})
    webhook = st.fixed_dictionaries(
        {"url": st.just("https://w.example/")},
        optional={"id": IDS, "token": TEXTS, "authentication": authentication},
    )
    configuration = st.builds(
        Configuration,
        accepted_output_modes=st.lists(MEDIA_TYPES.filter(bool), max_size=2).map(tuple),
        history_length=st.none() | st.integers(0, INT32_MAX),
        return_immediately=st.booleans(),
        task_push_notification_config=st.none() | webhook,
    )
    return st.builds(
        Send,
        message=messages(),
        configuration=configuration,
        metadata=_metadata(),
        tenant=st.just("") | st.just("t"),
    )


def requests() -> st.SearchStrategy[tuple[str, Request]]:
    """A request of any operation, with the operation's name."""
    tenants = st.just("") | st.just("t")
    lengths = st.none() | st.integers(0, INT32_MAX)
    lists = st.builds(
        List,
        context_id=st.just("") | IDS,
        status=st.none() | st.sampled_from([state for state in State if state is not State.UNKNOWN]),
        status_timestamp_after=st.sampled_from(["", "2026-01-31T12:00:00.000Z"]),
        page_size=st.none() | st.integers(1, 100),
        page_token=TEXTS,
        history_length=lengths,
        include_artifacts=st.booleans(),
        tenant=tenants,
    )
    return st.one_of(
        st.tuples(st.sampled_from(["send", "stream"]), sends()),
        st.tuples(st.just("get"), st.builds(Get, IDS, lengths, tenants)),
        st.tuples(st.just("list"), lists),
        st.tuples(st.just("cancel"), st.builds(Cancel, IDS, _metadata(), tenants)),
        st.tuples(st.just("subscribe"), st.builds(Subscribe, IDS, tenants)),
    )


FLOW = {"tokenUrl": "https://auth.example/token", "scopes": {"read": "Read."}}
SCHEMES = {
    "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key", "description": "A key."}},
    "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
    "oauth": {"oauth2SecurityScheme": {"flows": {"clientCredentials": FLOW}}},
    "code": {
        "oauth2SecurityScheme": {
            "flows": {
                "authorizationCode": {
                    **FLOW,
                    "authorizationUrl": "https://auth.example/",
                    "pkceRequired": True,
                }
            },
            "oauth2MetadataUrl": "https://auth.example/meta",
        }
    },
    "open_id": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://auth.example/id"}},
    "tls": {"mtlsSecurityScheme": {}},
}


def cards() -> st.SearchStrategy[Card]:
    """A card as 1.0 allows it; security schemes and who requires which are free JSON to the model."""
    names = st.lists(st.sampled_from(sorted(SCHEMES)), max_size=3, unique=True)
    scopes = st.lists(st.sampled_from(["read", "write"]), max_size=2, unique=True)
    requirement = st.dictionaries(
        st.sampled_from(sorted(SCHEMES)), st.fixed_dictionaries({"list": scopes}), max_size=2
    )
    requirements = st.lists(st.fixed_dictionaries({"schemes": requirement}), max_size=2).map(tuple)
    modes = st.lists(st.sampled_from(["text/plain", "image/png"]), max_size=2).map(tuple)
    said = st.none() | st.booleans()
    interfaces = st.builds(
        Interface,
        st.sampled_from(["https://a.example/", "https://a.example/rpc", "rpc"]),
        st.sampled_from(["JSONRPC", "HTTP+JSON", "GRPC"]),
        st.sampled_from(["1.0", "0.3"]),
        st.sampled_from(["", "t"]),
    )
    extensions = st.builds(Extension, IDS, TEXTS, st.booleans(), _metadata())
    skills = st.builds(Skill, IDS, TEXTS.filter(bool), TEXTS, modes, modes, modes, modes, requirements)
    signatures = st.builds(Signature, IDS, IDS, _metadata())
    return st.builds(
        Card,
        name=IDS,
        description=TEXTS,
        supported_interfaces=st.lists(interfaces, min_size=1, max_size=3, unique=True).map(tuple),
        version=st.sampled_from(["1", "2.1.0"]),
        capabilities=st.builds(Capabilities, said, said, st.lists(extensions, max_size=2).map(tuple), said),
        default_input_modes=modes,
        default_output_modes=modes,
        skills=st.lists(skills, max_size=2).map(tuple),
        provider=st.none() | st.builds(Provider, IDS, IDS),
        documentation_url=st.none() | st.just("https://docs.example/"),
        security_schemes=names.map(lambda found: {name: SCHEMES[name] for name in found}),
        security_requirements=requirements,
        signatures=st.lists(signatures, max_size=1).map(tuple),
        icon_url=st.none() | st.just("https://a.example/icon.png"),
    )


def new_id() -> str:
    """An id for what has none: always the same one, so that results can be compared."""
    return "made-up"


def as_told(value: Any) -> Any:
    """The value as the model's own JSON brings it back: where a value differs from this, a codec lost it."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
