"""What of a text that is held back can be shown at once."""

from __future__ import annotations

from . import rules
from .escapes import without_escape

_SIGNS = (
    *(rule.prefix for rule in rules.TOKENS),
    *rules.ASSIGNED,
    *rules.ASSIGNED_BY_EQUALS,
    "bearer",
    "basic",
    "https",
)
_LOWER = tuple(sign.lower() for sign in _SIGNS)


def holds_nothing_secret_yet(held: str) -> bool:
    """Whether a held text is at most the sign by which a secret would be known (`t`, `gh`, `password`), of which no part is
    secret. Whoever shows it must be able to take it back: of the text that follows it may become a secret's beginning."""
    word = without_escape(held).lower()
    return any(sign.startswith(word) for sign in _LOWER)
