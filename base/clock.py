"""The two clocks of the product.

What several processes compare (leases, due times, deadlines, slots) is set and compared by the database's clock, in SQL
with `clock_timestamp()`. A decision takes `now` as an argument; whoever calls it passes `database_now()`, or the
time that came with the claimed rows.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """The database's wall clock, in UTC; it moves also inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment
