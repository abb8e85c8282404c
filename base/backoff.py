"""How long to wait before asking again: growing delays of our own, and what a server asked for. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MAXIMUM_RETRY_AFTER_SECONDS = 3600.0
"""What a server may ask for at most. A wrong clock or a joke must not silence us for years; after an hour one
request finds out."""

_SECONDS = re.compile(r"\d+(\.\d+)?", re.ASCII)
_LONGEST_NUMBER = 12


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first` up to `cap`: with 5 s and 300 s these are 5, 10, 20, 40, 80, 160, 300, 300 ..."""

    first: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(seconds=300)

    def after(self, failures: int) -> timedelta:
        """The delay after the `failures`-th failure in a row; none before the first."""
        if failures <= 0:
            return timedelta(0)
        doublings = min(failures - 1, 40)
        if self.first.total_seconds() * 2.0**doublings >= self.cap.total_seconds():
            return self.cap
        return self.first * (1 << doublings)


def retry_after_seconds(
    value: str | None, now: datetime, cap_seconds: float = MAXIMUM_RETRY_AFTER_SECONDS
) -> float | None:
    """What a `Retry-After` header asks for, in seconds from `now`, between 0 and the cap.

    Takes a number of seconds or an HTTP date; a date is best judged by the server's own `Date` (see `http_date`).
    Anything else is None, as if the header were not there.
    """
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return cap_seconds if len(text) > _LONGEST_NUMBER else min(float(text), cap_seconds)
    moment = http_date(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), cap_seconds)


def http_date(value: str | None) -> datetime | None:
    """An HTTP date in UTC; None if it is not one."""
    if not value or not value[:1].isalpha():
        return None
    try:
        moment = parsedate_to_datetime(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
