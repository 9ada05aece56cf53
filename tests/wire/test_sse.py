"""Event streams: the vectors, cut everywhere, and any bytes at all against the rules spelled out slowly."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.wire.sse import KEEP_ALIVE, Item, Reader, frame, retry_after

VECTORS = sorted((Path(__file__).parent.parent / "vectors" / "sse").glob("*.txt"))
Found = list[tuple[str, str, str]]


def _vector(path: Path) -> tuple[bytes, Found]:
    """The stream, escaped, without its line ends; then what it holds, an array per line."""
    text, _, wanted = path.read_text("utf-8").partition("---\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    stream = "".join(lines).encode().decode("unicode_escape").encode("latin-1")
    return stream, [tuple(json.loads(line)) for line in wanted.splitlines()]


def _read(chunks: list[bytes], **limits: int) -> tuple[list[Item], Reader]:
    reader = Reader(**limits)
    return [item for piece in chunks for item in reader.feed(piece)], reader


def _plain(items: list[Item]) -> Found:
    return [(item.id, item.event, item.data.decode("utf-8", "replace")) for item in items]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_stream_says_the_same_wherever_it_is_cut(path: Path) -> None:
    """Shows: F23"""
    stream, wanted = _vector(path)
    assert _plain(_read([stream])[0]) == wanted
    for first in range(len(stream) + 1):
        for second in range(first, min(first + 4, len(stream)) + 1):
            chunks = [stream[:first], stream[first:second], stream[second:]]
            assert _plain(_read(chunks)[0]) == wanted, (first, second)
    assert _plain(_read([stream[at : at + 1] for at in range(len(stream))])[0]) == wanted


def _by_the_rules(stream: bytes) -> list[Item]:
    """The WHATWG algorithm, one line at a time, without any care for speed."""
    lines = re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]
    items, data, kind, place, brought = [], [], "", "", False
    for line in lines:
        if not line:
            if data:
                items.append(Item(place, kind, b"\n".join(data), brought))
            data, kind, brought = [], "", False
        elif not line.startswith(b":"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value.decode("utf-8", "replace")
            elif name == b"id" and b"\0" not in value:
                place, brought = value.decode("utf-8", "replace"), True
    return items


_scraps = st.sampled_from(
    [
        b"data",
        b"id",
        b"event",
        b"retry",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xef",
        b"1",
        b"\0",
        b"{}",
    ]
)
_streams = st.lists(st.one_of(_scraps, st.binary(max_size=4)), max_size=60).map(b"".join)


@settings(max_examples=1000, deadline=None)
@given(stream=_streams, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_bytes_cut_anyhow_read_as_the_rules_say(stream: bytes, cuts: list[int]) -> None:
    """Shows: F23"""
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert _read(chunks)[0] == _by_the_rules(stream)


@settings(max_examples=300, deadline=None)
@given(stream=_streams, cuts=st.lists(st.integers(0, 200), max_size=8), most=st.integers(1, 12))
def test_the_size_cap_falls_at_the_same_place_however_the_bytes_are_cut(
    stream: bytes, cuts: list[int], most: int
) -> None:
    """Shows: F23"""
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]
    whole, one = _read([stream], event_bytes_max=most)
    parts, other = _read(chunks, event_bytes_max=most)
    assert whole == parts
    assert (one.fault is None) == (other.fault is None)


def test_an_endless_line_is_refused_at_the_cap_without_being_kept() -> None:
    """Shows: F23"""
    reader = Reader(event_bytes_max=20 * 1024 * 1024)
    piece = b"x" * (64 * 1024)
    assert reader.feed(b"data: ok\n\ndata: ")[0].data == b"ok"
    fed = 0
    while reader.fault is None:
        reader.feed(piece)
        fed += len(piece)
    assert fed <= 20 * 1024 * 1024
    assert "20971520 bytes" in str(reader.fault)
    assert reader.feed(b"\n\ndata: late\n\n") == []


@given(st.lists(st.tuples(st.integers(0, 2**40), st.text(max_size=20)), max_size=8))
def test_what_is_framed_is_read_back(events: list[tuple[int, str]]) -> None:
    items, _ = _read([b"".join(frame(seq, text.encode()) for seq, text in events)])
    wanted = [re.sub(r"\r\n|\r", "\n", text) for _, text in events]
    assert [item.data.decode() for item in items] == wanted
    assert [item.id for item in items if item.brought_id] == [str(seq) for seq, _ in events if seq]


def test_an_id_whose_event_was_cut_off_does_not_count() -> None:
    """Shows: S4-040"""
    _, reader = _read([b"id: 4\ndata: x\n\nid: 5\ndata: y"])
    assert reader.last_id == "4"


def test_keep_alives_are_counted_and_the_wanted_wait_is_kept() -> None:
    """Shows: F23"""
    items, reader = _read([b":\n\n: ping\n\n" + retry_after(2000)])
    assert (items, reader.beats, reader.retry_ms) == ([], 2, 2000)


def test_what_stands_between_events_is_never_one_to_a_reader_that_makes_events_without_data() -> None:
    """httpx-sse does, once an id was said, and clients of a2a-sdk before 0.3.26 and some of later ones then fail."""
    for between in (KEEP_ALIVE, retry_after(2000)):
        assert between.endswith(b"\n")
        assert b"\n\n" not in between
        items, _ = _read([frame(1, b"a"), between, frame(2, b"b")])
        assert [(item.id, item.data) for item in items] == [("1", b"a"), ("2", b"b")]
