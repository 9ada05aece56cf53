"""What our codecs of 0.3 write means to the protocol's own SDK what it meant here, and the other way round.

The SDK has models of 0.3 and functions between those and 1.0, so nothing of ours is between the two ends.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.operations import OPERATIONS, Send
from dragoman.model.peer import Answer
from dragoman.model.task import Artifact, Message, Part, State, Status, Task, replace
from dragoman.wire import proto_json_1_0
from dragoman.wire.kind_json import KIND
from dragoman.wire.lenient import utc
from dragoman.wire.proto_json_0_3 import TWICE
from tests.wire.values import PATIENT, new_id, sends, tasks

try:
    from a2a.compat.v0_3 import a2a_v0_3_pb2 as elder_pb
    from a2a.compat.v0_3 import conversions, types
    from a2a.compat.v0_3.proto_utils import FromProto, ToProto
    from a2a.types import a2a_pb2 as pb
    from google.protobuf import json_format
except ImportError as missing:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip(f"NOT COMPARED WITH THE SDK: {missing}; install a2a-sdk==1.3.0", allow_module_level=True)

GET, SEND = OPERATIONS["get"], OPERATIONS["send"]
FEW = settings(PATIENT, max_examples=60)
MARKS = {"data_part_compat", "urn:dragoman:part"}


def portable(value: Any) -> Any:
    """The value without what has no place in 0.3, or none that the SDK knows: what is left is for all to carry."""
    match value:
        case Part():
            is_file = value.raw is not None or value.url is not None
            value = value if is_file else replace(value, media_type="", filename="")
        case Message():
            value = replace(value, parts=_each(value.parts), reference_task_ids=())
        case Artifact():
            return replace(value, parts=_each(value.parts), metadata=_filled(value.metadata))
        case Status():
            said = value.message
            words = None if said is None else portable(said)
            return replace(value, message=words, timestamp=utc(value.timestamp) or "")
        case Task():
            value = replace(
                value,
                status=portable(value.status),
                artifacts=_each(value.artifacts),
                history=_each(value.history),
            )
        case Send():
            wanted = value.configuration
            # What protobuf's zero means is not for this test: see the table of losses.
            wanted = replace(
                wanted, history_length=wanted.history_length or None, task_push_notification_config=None
            )
            value = replace(value, message=portable(value.message), configuration=wanted, tenant="")
        case _:
            raise TypeError(f"{type(value).__name__} is not said in 0.3")
    return replace(value, metadata=_filled(value.metadata))


def _each(values: Any) -> Any:
    return tuple(portable(value) for value in values)


def _filled(metadata: Any) -> Any:
    """Metadata that says something, but for our marks and theirs."""
    return {name: said for name, said in (metadata or {}).items() if name not in MARKS} or None


TASKS = tasks().map(portable)
SENDS = sends().map(portable)


def core_task(value: Task) -> Any:
    return json_format.Parse(proto_json_1_0.spell_reply(GET, Answer(Task, value)), pb.Task())


def of_core_task(theirs: Any) -> Any:
    return portable(proto_json_1_0.decode_task(json_format.MessageToJson(theirs).encode()))


def of_core_send(theirs: Any) -> Any:
    return portable(proto_json_1_0.read_request(SEND, json_format.MessageToJson(theirs).encode(), new_id))


def dumped(theirs: Any) -> bytes:
    said: str = theirs.model_dump_json(by_alias=True, exclude_none=True)
    return said.encode()


@FEW
@given(value=TASKS)
def test_a_task_of_ours_is_the_same_task_to_the_models_of_0_3(value: Task) -> None:
    theirs = types.Task.model_validate_json(KIND.spell_reply(GET, Answer(Task, value)))
    assert of_core_task(conversions.to_core_task(theirs)) == value


@FEW
@given(value=TASKS)
def test_a_task_of_ours_is_the_same_task_to_the_protobuf_of_0_3(value: Task) -> None:
    theirs = json_format.Parse(TWICE.spell_reply(GET, Answer(Task, value)), elder_pb.Task())
    assert of_core_task(conversions.to_core_task(FromProto.task(theirs))) == value


@FEW
@given(value=TASKS)
def test_a_task_of_the_models_of_0_3_is_the_same_task_to_us(value: Task) -> None:
    theirs = conversions.to_compat_task(core_task(value))
    assert KIND.read_reply(GET, dumped(theirs)).value == value


@FEW
@given(value=TASKS)
def test_a_task_of_the_protobuf_of_0_3_is_the_same_task_to_us(value: Task) -> None:
    theirs = ToProto.task(conversions.to_compat_task(core_task(value)))
    assert TWICE.read_reply(GET, json_format.MessageToJson(theirs).encode()).value == value


@FEW
@given(value=SENDS)
def test_a_request_of_ours_is_the_same_request_to_the_models_of_0_3(value: Send) -> None:
    params = types.MessageSendParams.model_validate_json(KIND.spell_request(SEND, value))
    theirs = types.SendMessageRequest(id="1", params=params)
    assert of_core_send(conversions.to_core_send_message_request(theirs)) == value


@FEW
@given(value=SENDS)
def test_a_request_of_ours_is_the_same_request_to_the_protobuf_of_0_3(value: Send) -> None:
    theirs = json_format.Parse(TWICE.spell_request(SEND, value), elder_pb.SendMessageRequest())
    params = FromProto.message_send_params(theirs)
    request = types.SendMessageRequest(id="1", params=params)
    assert of_core_send(conversions.to_core_send_message_request(request)) == value


@FEW
@given(value=SENDS)
def test_a_request_of_the_models_of_0_3_is_the_same_request_to_us(value: Send) -> None:
    core = json_format.Parse(proto_json_1_0.spell_request(SEND, value), pb.SendMessageRequest())
    theirs = conversions.to_compat_send_message_request(core, "1")
    assert portable(KIND.read_request(SEND, dumped(theirs.params), new_id)) == value


@PATIENT
@given(raw=st.binary(max_size=6))
def test_bytes_are_in_base64_twice_as_the_sdk_writes_and_reads_them(raw: bytes) -> None:
    said = Answer(Task, Task("t", Status(State.WORKING), artifacts=(Artifact("a", (Part(raw=raw),)),)))
    parsed = json_format.Parse(TWICE.spell_reply(GET, said), elder_pb.Task())
    theirs = FromProto.part(parsed.artifacts[0].parts[0])
    assert theirs.root.file.bytes == base64.b64encode(raw).decode()


def test_a_webhook_of_ours_is_the_same_webhook_to_the_models_of_0_3() -> None:
    """Shows: S1-073"""
    hook = {
        "url": "https://w.example/",
        "token": "x",
        "authentication": {"scheme": "Bearer", "credentials": "y"},
    }
    value = json_format.ParseDict(
        {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
            "configuration": {"taskPushNotificationConfig": hook},
        },
        pb.SendMessageRequest(),
    )
    asked = proto_json_1_0.read_request(SEND, json_format.MessageToJson(value).encode(), new_id)
    by_model = types.MessageSendParams.model_validate_json(KIND.spell_request(SEND, asked))
    by_proto = FromProto.message_send_params(
        json_format.Parse(TWICE.spell_request(SEND, asked), elder_pb.SendMessageRequest())
    )
    for params in (by_model, by_proto):
        core = conversions.to_core_send_message_request(types.SendMessageRequest(id="1", params=params))
        assert (
            json.loads(json_format.MessageToJson(core))["configuration"]["taskPushNotificationConfig"] == hook
        )


# The vectors are what they know, to the last member.

VECTORS = Path(__file__).parent.parent / "vectors" / "codec"
PROTOS = {
    "send": elder_pb.SendMessageRequest,
    "task": elder_pb.Task,
    "reply": elder_pb.SendMessageResponse,
    "stream_item": elder_pb.StreamResponse,
}
MODELS: dict[str, Any] = {
    "send": types.MessageSendParams,
    "get": types.TaskQueryParams,
    "cancel": types.TaskIdParams,
    "subscribe": types.TaskIdParams,
    "task": types.Task,
    "error": types.JSONRPCError,
    "reply": types.SendMessageSuccessResponse,
    "stream_item": types.SendStreamingMessageSuccessResponse,
}


def vectors(folder: str, kinds: Iterable[str]) -> list[Any]:
    return [
        pytest.param(kind, case["wire"], id=f"{kind}: {case['name']}")
        for kind in kinds
        for case in json.loads((VECTORS / folder / f"{kind}.json").read_text())["cases"]
        if "wire" in case
    ]


@pytest.mark.parametrize(
    ("kind", "wire"), vectors("v0_3_proto", PROTOS) + vectors("v0_3_once", ("send", "task"))
)
def test_the_protobuf_of_0_3_knows_every_member_of_our_vectors(kind: str, wire: Any) -> None:
    json_format.ParseDict(wire, PROTOS[kind]())


@pytest.mark.parametrize(("kind", "wire"), vectors("v0_3_kind", MODELS))
def test_the_models_of_0_3_take_our_vectors_and_say_them_again(kind: str, wire: Any) -> None:
    is_answer = kind in ("reply", "stream_item")
    asked = {"jsonrpc": "2.0", "id": "1", "result": wire} if is_answer else wire
    said = json.loads(dumped(MODELS[kind].model_validate(asked)))
    assert (said["result"] if is_answer else said) == wire
