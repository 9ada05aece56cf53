"""What is taken out of agents' text before a terminal shows it (reliability-security-ux.md, S38)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.app.cli.clean import STRING_CHARACTERS_MAX, Cleaner, clean
from tests.app.agents import HOSTILE, SHOWN

ODD = st.text(
    st.sampled_from("a\n\t\r é0;m[]P\\\x07\x18\x1b\x7f\x90\x9b\x9c\x9d\x9f\u202e\u2066"), max_size=30
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE, SHOWN),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b[2J\x1b[3;4Hb", "ab"),
        ("\x1b]0;title\x07a\x1b]2;title\x1b\\b", "ab"),
        ("\x1b]52;c;ZXZpbA==\x07a", "a"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x9b31ma\x9d0;t\x9cb\x90d\x9cc", "abc"),
        ("\x1bPdcs\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
        ("\x1b(0a\x1bcb\x1b7c\x1b#8d", "abcd"),
        ("\x1b[12\x183a\x1b]t\x1ab", "3ab"),
        ("\x1b]t\x1b[31mred", "red"),
        ("\x1b[3\x7f1mred\x1b[éa", "redéa"),
        ("safe\u202egnp.exe\u202c \u2066x\u2069", "safegnp.exe x"),
        ("10%\r20%\r\nend", "10%\n20%\nend"),
        ("tab\tline\nbell\x07back\x08del\x7fnul\x00", "tab\tline\nbellbackdelnul"),
        ("naïve ☃ 漢字 👩‍👧 עברית", "naïve ☃ 漢字 👩‍👧 עברית"),
    ],
)
def test_only_text_is_left(text: str, shown: str):
    assert clean(text) == shown


@given(ODD)
def test_nothing_that_a_terminal_obeys_is_left(text: str):
    assert not {c for c in clean(text) if c not in "\n\t" and (c < " " or "\x7f" <= c <= "\x9f")}
    assert not set(clean(text)) & set("\u202e\u2066")


@given(ODD, st.integers(0, 30), st.integers(0, 30))
def test_where_a_text_is_cut_makes_no_difference(text: str, one: int, two: int):
    cleaner, (first, second) = Cleaner(), sorted((one, two))
    assert "".join(map(cleaner.feed, (text[:first], text[first:second], text[second:]))) == clean(text)


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs")) | st.sampled_from("\n\t")))
def test_plain_text_stays_as_it_is(text: str):
    assert clean(text) == text


def test_a_string_that_never_ends_hides_only_so_much():
    assert clean("\x1b]" + "x" * STRING_CHARACTERS_MAX + "shown") == "shown"
