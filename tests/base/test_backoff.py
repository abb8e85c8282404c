"""Delays: exact sequences, and properties that hold for any input."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.backoff import MAXIMUM_RETRY_AFTER_SECONDS, Backoff, http_date, retry_after_seconds

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))


def test_it_doubles_from_five_seconds_to_five_minutes() -> None:
    delays = [Backoff().after(failures).total_seconds() for failures in range(1, 9)]

    assert delays == [5, 10, 20, 40, 80, 160, 300, 300]


@unhurried
@given(st.integers(-5, 10**9), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_delay_is_never_longer_than_its_cap_nor_negative(failures: int, first: int, cap: int) -> None:
    backoff = Backoff(timedelta(milliseconds=first), timedelta(milliseconds=cap))

    assert timedelta(0) <= backoff.after(failures) <= backoff.cap


@unhurried
@given(st.integers(0, 10**6), st.integers(1, 10**7), st.integers(1, 10**7))
def test_one_failure_more_never_shortens_the_delay(failures: int, first: int, cap: int) -> None:
    backoff = Backoff(timedelta(milliseconds=first), timedelta(milliseconds=cap))

    assert backoff.after(failures) <= backoff.after(failures + 1)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 3 ", 3),
        ("1.5", 1.5),
        ("0", 0),
        ("99999999999999999999999999", MAXIMUM_RETRY_AFTER_SECONDS),
        ("Mon, 30 Nov 2026 12:02:00 GMT", 120),
        ("Monday, 30-Nov-26 12:02:00 GMT", 120),
        ("Mon Nov 30 12:02:00 2026", 120),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAXIMUM_RETRY_AFTER_SECONDS),
    ],
)
def test_it_reads_seconds_and_all_three_forms_of_an_http_date(value: str, seconds: float) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    "value", [None, "", "-5", "1e3", "soon", "²", "١٢", "nan", "inf", "Mon, 99 Nov 2026 99:99:99 GMT"]
)
def test_anything_else_is_as_if_it_were_not_there(value: str | None) -> None:
    assert retry_after_seconds(value, NOW) is None


@unhurried
@given(st.text() | st.from_regex(r"[A-Za-z]{3}, \d+ \w+ \d+ \d+:\d+:\d+ GMT"))
def test_any_text_gives_a_bounded_delay_or_none(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)

    assert seconds is None or (math.isfinite(seconds) and 0 <= seconds <= MAXIMUM_RETRY_AFTER_SECONDS)


@unhurried
@given(MOMENTS, MOMENTS)
def test_a_date_gives_the_time_until_it(moment: datetime, now: datetime) -> None:
    moment = moment.replace(microsecond=0)
    expected = min(max((moment - now).total_seconds(), 0), MAXIMUM_RETRY_AFTER_SECONDS)

    assert retry_after_seconds(format_datetime(moment, usegmt=True), now) == expected


@unhurried
@given(MOMENTS)
def test_an_http_date_is_read_as_it_was_written(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)

    assert http_date(format_datetime(moment, usegmt=True)) == moment
