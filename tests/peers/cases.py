"""What must work between us and every other party, whoever calls: each behaviour once, for every version and binding.

The agents at both ends do what the first word of a message says: `echo`, `mirror`, `size`, `file`, `chunks`,
`ask`, `message`, `fail`, `reject`, `crash`, `slow`. A behaviour that a version has no words for is not asked of
it: the tables of operations and of losses say which those are.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dragoman import State
from dragoman.model.errors import ERRORS
from dragoman.model.operations.a2a import OPERATIONS
from dragoman.wire.losses import lost_in
from dragoman.wire.versions import Dialect
from tests.peers.talking import Refused, Talk
from tests.peers.values import Json, Message, Task, fold

__all__ = ["CASES", "RECONNECT", "THEY", "WE", "Case", "reconnect"]

THEY, WE = "they call us", "we call them"
OPEN = ("SUBMITTED", "WORKING")
ALL_BYTES = base64.b64encode(bytes(range(256))).decode()
EVERY_KIND: tuple[Json, ...] = (
    {"text": "plain"},
    {"raw": ALL_BYTES, "mediaType": "application/octet-stream"},
    {"url": "https://example.com/a.png", "mediaType": "image/png"},
    {"data": {"nested": [1, 2.5, True, None, {"a": ""}]}},
)


@dataclass(frozen=True)
class Case:
    """`loses` are losses of a version that leave nothing of it. `said_by` are the directions in which a version
    before 1.0 has words for it, `since` the first version that has any.
    """

    name: str
    operation: str
    behaviour: str
    do: Callable[[Any], Awaitable[None]]
    directions: tuple[str, ...] = (THEY, WE)
    said_by: tuple[str, ...] = (THEY, WE)
    loses: tuple[str, ...] = ()
    since: str = "0.1"

    def is_expressible(self, dialect: Dialect, direction: str) -> bool:
        operation = OPERATIONS.get(self.operation)
        return (
            direction in (self.directions if dialect.version == "1.0" else self.said_by)
            and direction in self.directions
            and dialect.version >= self.since
            and (operation is None or bool(dialect.name_of(operation)))
            and not set(self.loses) & set(lost_in(dialect.binding, dialect.version))
        )


CASES: list[Case] = []


def case(operation: str, behaviour: str, **more: Any) -> Callable[[Any], Any]:
    def add(do: Any) -> Any:
        CASES.append(Case(do.__name__, operation, behaviour, do, **more))
        return do

    return add


async def task(talk: Talk, text: str, *parts: Json, **more: Any) -> Task:
    """What answers a message, which is a task."""
    answer = await talk.send(text, *parts, **more)
    assert isinstance(answer, Task), f"{answer} is no task"
    return answer


async def opened(talk: Talk, text: str) -> str:
    """A task that goes on while nobody listens."""
    seen = fold(await talk.stream(text, leave_after=2))
    assert seen.states[-1] in OPEN
    return seen.task_id


def truth(chunks: int) -> str:
    return "".join(f"{number} " for number in range(chunks))


@case("card", "the card is found and read")
async def card(talk: Talk) -> None:
    found = await talk.card()
    assert (found.name, found.streams, found.skills) == ("tasks" if talk.asks_us else "peer", True, 1)
    dialect = talk.dialect
    assert dialect.binding in [binding for binding, _ in found.ways]
    # Before 0.3 nobody's card says its version for certain.
    if dialect.version in ("1.0", "0.3"):
        assert (dialect.binding, dialect.version) in found.ways


@case("send", "a send waits for the task and brings its artifacts")
async def send_waits(talk: Talk) -> None:
    answer = await task(talk, "echo Grüße, 世界 🌍")
    assert (answer.state, answer.text) == ("COMPLETED", "Grüße, 世界 🌍")
    assert talk.faults == []


@case("send", "a send that does not wait brings an open task", loses=("return immediately",))
async def send_at_once(talk: Talk) -> None:
    answer = await task(talk, "slow", wait=False)
    assert answer.state in OPEN
    await talk.cancel(answer.id)


@case("stream", "a stream brings the task, its states and every chunk")
async def stream(talk: Talk) -> None:
    seen = fold(await talk.stream("chunks 20"))
    assert seen.kinds[0] == "task"
    assert seen.states == ["SUBMITTED", "WORKING", "COMPLETED"]
    assert seen.kinds.count("artifact") == 20
    assert seen.text == truth(20)
    assert talk.faults == []


@case("get", "a task is read as it ended")
async def get(talk: Talk) -> None:
    answer = await task(talk, "echo again")
    read = await talk.get(answer.id)
    assert (read.state, read.text, read.context_id) == ("COMPLETED", "again", answer.context_id)


ASKED = ["ask", "Which?", "blue"]


async def answered(talk: Talk) -> str:
    asked = await task(talk, "ask")
    await task(talk, "blue", task_id=asked.id)
    return asked.id


@case("get", "a task is read with its history")
async def history(talk: Talk) -> None:
    read = await talk.get(await answered(talk))
    assert [message.text for message in read.history] == ASKED


@case("get", "the history has the length that was asked for")
async def history_length(talk: Talk) -> None:
    task_id = await answered(talk)
    for length in (1, 2, 100):
        read = await talk.get(task_id, history_length=length)
        assert [message.text for message in read.history] == ASKED[-length:]


@case("get", "no history comes when none is asked for", loses=("no history",))
async def no_history(talk: Talk) -> None:
    answer = await task(talk, "echo quiet", history_length=0)
    assert answer.history == ()
    assert (await talk.get(answer.id, history_length=0)).history == ()


@case("list", "tasks are listed by context, page by page, newest first")
async def list_pages(talk: Talk) -> None:
    first = await task(talk, "echo 0")
    context = first.context_id
    made = [first.id, *[(await task(talk, f"echo {n}", context_id=context)).id for n in range(1, 5)]]
    pages = [await talk.list(context_id=context, page_size=2)]
    while pages[-1].next:
        pages.append(await talk.list(context_id=context, page_size=2, page_token=pages[-1].next))
    assert [len(page.tasks) for page in pages] == [2, 2, 1]
    assert {page.total for page in pages} == {5}
    assert [one.id for page in pages for one in page.tasks] == made[::-1]


@case("list", "listed tasks have artifacts when they are asked for")
async def list_artifacts(talk: Talk) -> None:
    context = (await task(talk, "echo listed")).context_id
    assert [one.artifacts for one in (await talk.list(context_id=context)).tasks] == [{}]
    full = await talk.list(context_id=context, include_artifacts=True)
    assert [one.text for one in full.tasks] == ["listed"]


@case("list", "tasks are listed by state")
async def list_states(talk: Talk) -> None:
    context = (await task(talk, "echo done")).context_id
    failed = await task(talk, "fail", context_id=context)
    found = await talk.list(context_id=context, state=State.FAILED)
    assert [one.id for one in found.tasks] == [failed.id]


@case("cancel", "a task is canceled")
async def cancel(talk: Talk) -> None:
    task_id = await opened(talk, "slow")
    assert (await talk.cancel(task_id)).state == "CANCELED"
    assert (await talk.get(task_id)).state == "CANCELED"


@case("cancel", "a canceled task is canceled again to no effect")
async def cancel_again(talk: Talk) -> None:
    task_id = await opened(talk, "slow")
    await talk.cancel(task_id)
    try:
        again = (await talk.cancel(task_id)).state
    except Refused as refused:
        again = refused.name
    # The protocol lets an agent refuse it; ours does not.
    assert again == "CANCELED" or (not talk.asks_us and again == "TaskNotCancelable")
    assert (await talk.get(task_id)).state == "CANCELED"


@case("subscribe", "two subscribers both get the task and the true artifact")
async def subscribe(talk: Talk) -> None:
    task_id = await opened(talk, "chunks 100")
    for seen in map(fold, await asyncio.gather(*[talk.subscribe(task_id) for _ in range(2)])):
        assert (seen.kinds[0], seen.states[-1]) == ("task", "COMPLETED")
        assert seen.text == truth(100)


@case("subscribe", "a stream that is left is taken up again")
async def taken_up(talk: Talk) -> None:
    left = fold(await talk.stream("chunks 100", leave_after=5))
    seen = fold(await talk.subscribe(left.task_id))
    assert (seen.kinds[0], seen.states[-1], seen.text) == ("task", "COMPLETED", truth(100))


@case("send", "a question is asked, answered, and the task goes on")
async def ask(talk: Talk) -> None:
    asked = await task(talk, "ask")
    assert (asked.state, asked.question) == ("INPUT_REQUIRED", "Which?")
    answer = await task(talk, "blue", task_id=asked.id)
    assert (answer.id, answer.context_id) == (asked.id, asked.context_id)
    assert (answer.state, answer.text) == ("COMPLETED", "you said: blue")


@case("stream", "a stream ends at a question, and the answer opens the next")
async def ask_in_a_stream(talk: Talk) -> None:
    asked = fold(await talk.stream("ask"))
    assert asked.states[-1] == "INPUT_REQUIRED"
    answer = fold(await talk.stream("green", task_id=asked.task_id))
    assert (answer.states[-1], answer.text) == ("COMPLETED", "you said: green")


@case("send", "an agent answers with a message alone", loses=("messages as answers",))
async def message(talk: Talk) -> None:
    answer = await talk.send("message", agent="words")
    assert isinstance(answer, Message)
    assert answer.text == "just a message"


@case("stream", "a message alone is a whole stream", loses=("messages as answers",))
async def message_in_a_stream(talk: Talk) -> None:
    [item] = await talk.stream("message", agent="words")
    assert item.message is not None
    assert item.message.text == "just a message"


async def mirrored(talk: Talk, *parts: Json) -> None:
    """Parts go there and come back in an artifact."""
    answer = await task(talk, "mirror", *parts)
    assert answer.state == "COMPLETED"
    assert answer.parts == parts


@case("send", "parts of every kind go there and back unchanged")
async def parts(talk: Talk) -> None:
    await mirrored(talk, *EVERY_KIND)


@case("stream", "parts of every kind go there and back in a stream")
async def parts_in_a_stream(talk: Talk) -> None:
    seen = fold(await talk.stream("mirror", *EVERY_KIND))
    assert tuple(part for parts in seen.artifacts.values() for part in parts) == EVERY_KIND


@case("send", "bytes arrive at the agent as they were sent")
async def bytes_there(talk: Talk) -> None:
    answer = await task(talk, "size", {"raw": ALL_BYTES, "mediaType": "application/octet-stream"})
    assert answer.text == "256"


@case("send", "bytes arrive at the caller as they were sent")
async def bytes_back(talk: Talk) -> None:
    assert [part["raw"] for part in (await task(talk, "file")).parts] == [ALL_BYTES]


@case("send", "a file keeps its name")
async def file_names(talk: Talk) -> None:
    await mirrored(talk, {"raw": ALL_BYTES, "filename": "all.bin"}, {"url": "https://a.b/c", "filename": "c"})


@case("send", "a part keeps its metadata")
async def part_metadata(talk: Talk) -> None:
    await mirrored(talk, {"text": "noted", "metadata": {"k": {"n": 1}}})


@case("send", "JSON that is no object goes there and back unchanged")
async def any_json(talk: Talk) -> None:
    await mirrored(talk, {"data": [1, "two"]}, {"data": "bare"}, {"data": 0}, {"data": False})


@case("send", "a text and JSON keep their media type and file name", said_by=(WE,))
async def named_parts(talk: Talk) -> None:
    beside = {"mediaType": "application/x-list", "filename": "list"}
    await mirrored(talk, {"text": "a", **beside}, {"data": {"a": 1}, **beside})


@case("send", "an empty text goes there and back unchanged")
async def empty_text(talk: Talk) -> None:
    await mirrored(talk, {"text": ""})


@case("send", "an empty file goes there and back unchanged")
async def empty_file(talk: Talk) -> None:
    await mirrored(talk, {"raw": "", "mediaType": "application/octet-stream"})


@case("send", "bytes that look like base64 go there and back unchanged", loses=("bytes like base64",))
async def like_base64(talk: Talk) -> None:
    await mirrored(talk, {"raw": base64.b64encode(b"dGNr").decode(), "mediaType": "text/plain"})


@case("send", "a part may be null")
async def null_part(talk: Talk) -> None:
    await mirrored(talk, {"data": None})


@case("send", "a megabyte goes there and back")
async def large(talk: Talk) -> None:
    words = "x" * 1_000_000
    assert (await task(talk, f"echo {words}")).text == words


@case("send", "fifty sends at once each get their own answer")
async def many_at_once(talk: Talk) -> None:
    answers = await asyncio.gather(*[task(talk, f"echo {number}") for number in range(50)])
    assert [answer.text for answer in answers] == [str(number) for number in range(50)]


@case("send", "a failure is told, and in its own words")
async def failure(talk: Talk) -> None:
    answer = await task(talk, "fail")
    assert answer.state == "FAILED"
    # Others may add words of their own before them.
    assert answer.question == "it broke" or (not talk.asks_us and answer.question.endswith(": it broke"))


@case("send", "a rejection is told, and in its own words", loses=("rejected",))
async def rejection(talk: Talk) -> None:
    answer = await task(talk, "reject")
    assert (answer.state, answer.question) == ("REJECTED", "not for me")


@case("stream", "a crash is a failure, and its inside is not told")
async def crash(talk: Talk) -> None:
    items = await talk.stream("crash")
    assert fold(items).states[-1] == "FAILED"
    # What others tell of their inside is theirs.
    assert not talk.asks_us or "secret" not in repr(items)


@case("send", "a caller's context is kept")
async def context(talk: Talk) -> None:
    room = f"room-{uuid.uuid4()}"
    assert (await task(talk, "echo one", context_id=room)).context_id == room


@case("send", "a context that is not the task's is refused")
async def wrong_context(talk: Talk) -> None:
    asked = await task(talk, "ask")
    await refused(task(talk, "blue", task_id=asked.id, context_id="another-room"), "InvalidParams")
    answer = await task(talk, "blue", task_id=asked.id, context_id=asked.context_id)
    assert answer.state == "COMPLETED"


# Errors. Each has its own name in every client, or at least the code or the status that the protocol gives it.


async def refused(doing: Awaitable[Any], *names: str) -> None:
    try:
        saw = await doing
    except Refused as wrong:
        rows = [ERRORS[name] for name in names]
        assert wrong.name in {
            it for row in rows for it in (row.name, f"code {row.code}", f"HTTP {row.http}")
        }, wrong
    else:
        raise AssertionError(f"no {names[0]} but {saw}")


def over_is_over(talk: Talk) -> tuple[str, ...]:
    """How it is refused that a task is over. Before 1.0 no text says how."""
    is_said = talk.asks_us or talk.dialect.version == "1.0"
    return (
        ("UnsupportedOperation",) if is_said else ("UnsupportedOperation", "InvalidParams", "InvalidRequest")
    )


async def raising(wrong: Refused) -> None:
    raise wrong


def nobody() -> str:
    return str(uuid.uuid4())


async def over(talk: Talk) -> str:
    return (await task(talk, "echo done")).id


@case("get", "a task that is not there cannot be read")
async def get_nobody(talk: Talk) -> None:
    await refused(talk.get(nobody()), "TaskNotFound")


@case("cancel", "a task that is not there cannot be canceled")
async def cancel_nobody(talk: Talk) -> None:
    await refused(talk.cancel(nobody()), "TaskNotFound")


@case("cancel", "a task that is over cannot be canceled")
async def cancel_over(talk: Talk) -> None:
    await refused(talk.cancel(await over(talk)), "TaskNotCancelable")


@case("send", "a task that is not there takes no message", since="0.2")
async def send_to_nobody(talk: Talk) -> None:
    await refused(talk.send("echo", task_id=nobody()), "TaskNotFound")


@case("send", "a task that is over takes no message")
async def send_to_over(talk: Talk) -> None:
    await refused(talk.send("echo", task_id=await over(talk)), *over_is_over(talk))


@case("subscribe", "a task that is not there cannot be subscribed to")
async def subscribe_nobody(talk: Talk) -> None:
    await refused(talk.subscribe(nobody()), "TaskNotFound")


@case("subscribe", "a task that is over cannot be subscribed to")
async def subscribe_over(talk: Talk) -> None:
    task_id = await over(talk)
    try:
        seen = fold(await talk.subscribe(task_id))
    except Refused as wrong:
        await refused(raising(wrong), *over_is_over(talk))
    else:
        # Before 1.0 it may also be shown as it ended.
        assert len(over_is_over(talk)) > 1, f"no refusal but {seen}"
        assert seen.states == ["COMPLETED"]


@case("send", "a media type that the agent does not take is refused", directions=(THEY,), said_by=(THEY,))
async def media_type(talk: Talk) -> None:
    film = {"raw": "AAAA", "mediaType": "video/mp4"}
    await refused(talk.send("mirror", film), "ContentTypeNotSupported")


@case("list", "a page has at most a hundred tasks")
async def page_size(talk: Talk) -> None:
    await refused(talk.list(page_size=101), "InvalidParams")


@case("list", "a page token that was never given is refused", directions=(THEY,))
async def page_token(talk: Talk) -> None:
    await refused(talk.list(page_token="nonsense"), "InvalidParams")


@case("send", "a message without parts is refused", directions=(THEY,))
async def no_parts(talk: Any) -> None:
    await refused(talk.send_nothing(), "InvalidParams")


@case("every", "a webhook is refused where there are none", directions=(THEY,))
async def webhook(talk: Any) -> None:
    await refused(talk.hook(await over(talk)), "PushNotificationNotSupported")


@case("send", "versions that are not spoken are refused", directions=(THEY,), since="1.0")
async def versions(talk: Any) -> None:
    assert (await task(talk, "echo x", version="1.0")).state == "COMPLETED"
    for version in ("1.7", "99.0"):
        await refused(task(talk, "echo x", version=version), "VersionNotSupported")


# Reconnecting: not one of the cases above, because it is done over and over.

RECONNECT = Case(
    "reconnect",
    "subscribe",
    "a reconnect without a cursor begins with the task and ends with the true artifact",
    lambda talk: reconnect(talk, 50),
)
CHUNKS, AT_ONCE = 150, 10


async def reconnect(talk: Talk, count: int) -> None:
    """Streams of chunks are left and taken up again, twice each, with no cursor."""
    seen = []
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        seen += await asyncio.gather(*[_left_and_taken_up(talk, number) for number in numbers])
    assert [one for one in seen if one[1:] != ("COMPLETED", True)] == []
    # A stream may end before its reader is back; nearly all must have been caught in the middle.
    caught = sum(firsts == ["task", "task"] for firsts, _, _ in seen)
    assert caught >= 0.8 * len(seen), seen


async def _left_and_taken_up(talk: Talk, number: int) -> tuple[list[str], str, bool]:
    """With what it began again each time, the last state, and whether the artifact was true in the end."""
    seen = fold(await talk.stream(f"chunks {CHUNKS}", leave_after=2 + number % 50))
    firsts = []
    for leave_after in (3 + number % 5, 0):
        try:
            again = fold(await talk.subscribe(seen.task_id, leave_after=leave_after))
        except Refused as wrong:
            # It ended meanwhile: then reading it tells all.
            read = await talk.get(seen.task_id)
            return [*firsts, wrong.name], read.state, read.text == truth(CHUNKS)
        firsts.append(again.kinds[0])
        seen = again
    return firsts, seen.states[-1], seen.text == truth(CHUNKS)
