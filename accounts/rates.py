"""Rate limits in fixed windows, counted in the database, so that every web process sees the same count."""

from __future__ import annotations

from django.db import connection

from base.errors import CodedError

WINDOW_SECONDS = 60
NOW = "clock_timestamp()"
"""SQL: when it is, which is also in which window, by the one clock of all processes."""


class RateLimited(CodedError):
    """Too many requests of this kind in one minute."""

    code = "rate_limited"

    def __init__(self, code: str, retry_after_seconds: int) -> None:
        super().__init__(code)
        self.retry_after_seconds = retry_after_seconds


def count(principal: str, operation: str, limit: int, *, code: str = "rate_limited") -> None:
    """Count one `operation` of `principal`. Raises RateLimited with `code` if the window's limit is passed."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            insert into rate_windows (principal, operation, window_start, count)
            values (%(principal)s, %(operation)s, to_timestamp(floor(extract(epoch from {NOW}) / %(window)s) * %(window)s), 1)
            on conflict (principal, operation, window_start) do update set count = rate_windows.count + 1
            returning count, ceil(%(window)s - extract(epoch from {NOW} - window_start))::int
            """,  # noqa: S608 - the moment is ours
            {"principal": principal[:100], "operation": operation, "window": WINDOW_SECONDS},
        )
        row = cursor.fetchone()
    assert row is not None
    if row[0] > limit:
        raise RateLimited(code, max(1, row[1]))


def forget_old() -> int:
    """Delete windows that have long passed; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute("delete from rate_windows where window_start < clock_timestamp() - interval '1 hour'")
        return int(cursor.rowcount)
