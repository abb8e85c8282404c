"""Bytes of unknown origin as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.text import decode, decode_prefix, display_text, keep_first_bytes, keep_last_bytes, storable


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("日本🙂é".encode(), "日本🙂é"),
        (b"a\xff\xfe\x80b\xc3", "a\ufffdb\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),
        ("\ufffd".encode() + b"\xff", "\ufffd\ufffd"),
    ],
)
def test_it_turns_each_run_of_invalid_bytes_into_one_mark(data: bytes, text: str) -> None:
    assert decode(data) == text


@pytest.mark.parametrize("kept", range(4))
def test_it_leaves_an_incomplete_character_for_later(kept: int) -> None:
    data = "é🙂".encode()

    assert decode_prefix(data[: 2 + kept]) == "é"
    assert decode_prefix(data) == "é🙂"


def test_an_invalid_byte_is_no_incomplete_character() -> None:
    assert decode_prefix(b"a\xff") == "a\udcff"


@given(st.text(), st.integers(0, 20))
def test_it_keeps_whole_characters_at_the_end(text: str, limit: int) -> None:
    kept, is_cut = keep_last_bytes(text, limit)

    assert text.endswith(kept)
    assert limit - 3 <= len(kept.encode()) <= limit or kept == text
    assert is_cut == (kept != text)


@given(st.text(), st.integers(-1, 20))
def test_it_keeps_whole_characters_at_the_beginning(text: str, limit: int) -> None:
    kept = keep_first_bytes(text, limit)

    assert text.startswith(kept)
    assert len(kept.encode()) <= max(0, limit)


def test_it_makes_text_storable() -> None:
    assert storable("a\0b") == "a␀b"
    assert storable("a\ud800b").encode()
    assert storable("日本") == "日本"


@pytest.mark.parametrize(
    ("text", "plain", "coloured"),
    [
        ("\x1b[31mred\x1b[0m", "red", "\x1b[31mred\x1b[0m"),
        ("\x1b[38;5;196mred\x1b[m", "red", "\x1b[38;5;196mred\x1b[m"),
        ("\x1b[2Jgone\x1b[H", "gone", "gone"),
        ("a\0b", "a␀b", "a␀b"),
        ("a\x07\x08\x7f", "a␇␈␡", "a␇␈␡"),
        ("tab\tline\n", "tab\tline\n", "tab\tline\n"),
        ("line\r\nbar\r", "line\nbar␍", "line\nbar␍"),
        ("\x1b]0;title\x07x", "0;title␇x", "0;title␇x"),
        ("\x9b31mx", "31mx", "31mx"),
        ("zero\u200bwidth", "zerowidth", "zerowidth"),
        ("\x1b", "␛", "␛"),
    ],
)
def test_it_shows_text_that_cannot_move_a_terminal(text: str, plain: str, coloured: str) -> None:
    assert display_text(text) == plain
    assert display_text(text, colours=True) == coloured


@given(st.text())
def test_no_control_reaches_a_terminal(text: str) -> None:
    shown = display_text(text)

    assert not {character for character in shown if character < " " or "\x7f" <= character <= "\x9f"} - {
        "\t",
        "\n",
    }
    assert shown.encode() or not shown
