"""What a command printed, and what people typed, as a page may show it."""

from __future__ import annotations

import re

from base.text import display_text

# They turn the direction in which everything after them is written, so that a text reads as another than it is.
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)(?=[^\n\r])")


def shown(text: str) -> str:
    """The text with nothing in it that acts: controls and turns of direction are visible, escape sequences are gone."""
    return _TURNS.sub(lambda match: f"[U+{ord(match[0]):04X}]", display_text(text))


def printed(output: str) -> str:
    """The same of what a command printed, where a carriage return begins its line anew."""
    lines = _OVERWRITTEN.sub("", output).replace("\r", "")
    return shown(lines)
