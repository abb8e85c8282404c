"""A step of the clock.

The product takes the time from its database: leases, due times, deadlines and slots are written and compared there. The machine's
clock cannot be stepped under a test, and everything else on it would notice. What can be done is the same seen from the rows: every time that is stored moves
against the clock by the step, in one transaction. A lease that had a minute left has ended; what was due in an hour is due; a row that was
written a moment ago is hours old, or lies in the future. The clocks of the processes and of the provider stay as they
are, so that they differ from the database's afterwards, as they would.

Windows of rate limits are times of the wall clock itself, and receipts of pushes are sealed with theirs: both stay.
"""

from __future__ import annotations

import psycopg
from psycopg import errors, sql

UNTOUCHED = frozenset({"rate_windows", "forge_pushes", "django_migrations"})
LOCK_MILLISECONDS = (
    400  # less than the database's own look for deadlocks, so that this is the one who gives way
)

Columns = dict[str, list[str]]

_TIMES = """
    select table_name, column_name from information_schema.columns
    where table_schema = 'public' and data_type = 'timestamp with time zone'
    order by table_name, column_name
"""


def times_of(link: psycopg.Connection[tuple[str, ...]]) -> Columns:
    """Every column that holds a time, by table."""
    found: Columns = {}
    for table, column in link.execute(_TIMES).fetchall():
        if table not in UNTOUCHED:
            found.setdefault(table, []).append(column)
    return found


def step_clock(link: psycopg.Connection[tuple[str, ...]], seconds: float) -> bool:
    """Step the database's clock by so many seconds, backwards if negative, as its rows see it.

    `link` is an autocommit connection of a superuser: triggers that keep times as they are do not see the step. False if the tables are too
    busy; nothing has changed then.
    """
    try:
        with link.transaction():
            link.execute("set local session_replication_role = replica")
            link.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(f"{LOCK_MILLISECONDS}ms")))
            columns = times_of(link)
            names = sql.SQL(", ").join(sql.Identifier(table) for table in columns)
            link.execute(sql.SQL("lock table {} in share row exclusive mode").format(names))
            for table, times in columns.items():
                link.execute(_shift(table, times), [seconds] * len(times))
    except (errors.LockNotAvailable, errors.DeadlockDetected):
        return False
    return True


def _shift(table: str, times: list[str]) -> sql.Composed:
    moved = [sql.SQL("{0} = {0} - make_interval(secs => %s)").format(sql.Identifier(name)) for name in times]
    return sql.SQL("update {} set {}").format(sql.Identifier(table), sql.SQL(", ").join(moved))
