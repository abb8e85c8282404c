"""What a text that was escaped has in place of a character: a word may start behind it.

Agents print what their tools printed as JSON, servers log the addresses they were asked for, terminals' colours are
copied without the character that made them colours: the last letter of an escape belongs to no word.
"""

from __future__ import annotations

import re

from .patterns import Literal, OneOf, Some

_HEX = "0-9A-Fa-f"
ESCAPE = OneOf(
    (
        (Literal(("\\",)), Some("abefnrtv", 1, 1)),
        (Literal(("\\",)), Some("0-7", 1, 3)),
        (Literal(("\\x", "%")), Some(_HEX, 2, 2)),
        (Literal(("\\u",)), Some(_HEX, 4, 4)),
        (Literal(("[",)), Some("0-9;", 0, 12), Literal(("m", "K"))),
    )
)
AT_ITS_START = re.compile(ESCAPE.leading())
_BEGUN = re.compile(ESCAPE.begun(""))


def without_escape(text: str) -> str:
    """What follows the escape, or the beginning of one, that the text starts with."""
    match = _BEGUN.match(text)
    return text[match.end() :] if match else text
