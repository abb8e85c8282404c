"""`manage.py doctor`: looks at everything an installation needs, and says in one line each what is good and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    GOOD = "good"
    WARNING = "warning"  # works, and should be looked at
    BAD = "bad"  # does not work, or will not for long


@dataclass(frozen=True)
class Finding:
    """What one check saw, and what to do about it where it is not good."""

    check: str
    level: Level
    seen: str
    remedy: str = ""


Check = Callable[[], list[Finding]]


def good(check: str, seen: str) -> Finding:
    return Finding(check, Level.GOOD, seen)


def warning(check: str, seen: str, remedy: str) -> Finding:
    return Finding(check, Level.WARNING, seen, remedy)


def bad(check: str, seen: str, remedy: str) -> Finding:
    return Finding(check, Level.BAD, seen, remedy)
