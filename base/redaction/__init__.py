"""Keeping secrets out of what is stored, shown and logged."""

from __future__ import annotations

from .beginnings import holds_nothing_secret_yet
from .mapping import redact, redact_mapping
from .rules import MARK, URL_MARK
from .stream import Piece, Policy, Redactor, RedactorState, signs_of_secrets

__all__ = [
    "MARK",
    "URL_MARK",
    "Piece",
    "Policy",
    "Redactor",
    "RedactorState",
    "holds_nothing_secret_yet",
    "redact",
    "redact_mapping",
    "signs_of_secrets",
]
