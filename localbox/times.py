"""Instants are epoch seconds inside the provider and ISO 8601 with a `Z` on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST = 253_402_300_799.0  # the end of the year 9999: what a date-time field can still say


def iso(instant: float) -> str:
    text = datetime.fromtimestamp(instant, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def iso_or_none(instant: float | None) -> str | None:
    return None if instant is None else iso(instant)


def parse_instant(text: str) -> float:
    """Epoch seconds of an ISO 8601 date-time (UTC where it names no zone) or of a plain number.

    Raises ValueError for anything else.
    """
    instant = _number(text)
    if instant is None:
        instant = _date_time(text)
    if not 0 <= instant <= _LATEST:
        raise ValueError(f"{text!r} is not a time between 1970 and 9999")
    return instant


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _date_time(text: str) -> float:
    # a "+" in a query string arrives as a blank where the client did not escape it
    moment = datetime.fromisoformat(text.strip().replace(" ", "+") if "T" in text else text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
