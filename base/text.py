"""Bytes of unknown origin as text that can be stored, bounded and shown."""

from __future__ import annotations

import codecs
import re

REPLACEMENT = "�"
NUL_MARK = "␀"

# What a terminal does not show as a character: escape sequences, controls other than tab and newline, and the
# characters of no width. An escape sequence that goes on for longer than any real one is not taken for one.
INVISIBLE = re.compile(
    "\x1b\\[[0-?]{0,32}[ -/]{0,4}[@-~]|\x1b[ -/]{0,2}[0-Z\\\\-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]"
)
# The beginning of an escape sequence that more text may complete.
OPEN_ESCAPE = re.compile("\x1b(?:\\[[0-?]{0,32}[ -/]{0,4}|[ -/]{0,2})\\Z")

_COLOUR = re.compile("\x1b\\[[0-9;:]{0,32}m")
_ESCAPED_BYTES = re.compile("[\udc80-\udcff]+")
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {0x7F: "␡"}


def decode(data: bytes) -> str:
    """UTF-8 text; each run of invalid bytes becomes one U+FFFD."""
    return _ESCAPED_BYTES.sub(REPLACEMENT, data.decode("utf-8", "surrogateescape"))


def decode_prefix(data: bytes) -> str:
    """The text of all bytes but an incomplete character at the end.

    Invalid bytes come as lone surrogates (`surrogateescape`), so that encoding gives the same bytes back.
    """
    return codecs.utf_8_decode(data, "surrogateescape", False)[0]


def storable(text: str) -> str:
    """The text as a database can hold it: NUL becomes a visible mark, and what is no character U+FFFD."""
    text = text.replace("\0", NUL_MARK)
    return text.encode("utf-8", "replace").decode() if not text.isascii() and _has_surrogate(text) else text


def keep_last_bytes(text: str, limit: int) -> tuple[str, bool]:
    """The end of the text in at most `limit` bytes of UTF-8, never a part of a character; and whether some was cut."""
    data = text.encode()
    if len(data) <= limit:
        return text, False
    return data[len(data) - limit :].decode("utf-8", "ignore") if limit > 0 else "", True


def keep_first_bytes(text: str, limit: int) -> str:
    """The beginning of the text in at most `limit` bytes of UTF-8, never a part of a character."""
    return text.encode()[: max(0, limit)].decode("utf-8", "ignore")


def display_text(text: str, *, colours: bool = False) -> str:
    """The text as a person may safely see it in a terminal.

    Colours (`ESC [ … m`) stay if asked for; every other escape sequence, which could move the cursor, set a title or
    fill the clipboard, is removed. A carriage return before a newline goes, other controls become their pictures (␀).
    """
    kept = INVISIBLE.sub(lambda match: _shown(match[0], colours), text.replace("\r\n", "\n"))
    return storable(kept)


def _shown(sequence: str, colours: bool) -> str:
    if len(sequence) == 1:
        return sequence.translate(_PICTURES) if sequence < "\x80" else ""
    return sequence if colours and _COLOUR.fullmatch(sequence) else ""


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
