"""Leases: who may act on a row, until when, and how a worker that slept through its lease is kept from writing.

A leased row has three columns. `lease_owner` is the number of the worker that holds it, or null for a holder without a
sign of life (a web request, a shell, a test); `lease_expires_at` is when the lease ends in any case, by the database's
clock; `generation` grows with every claim, and every write of the holder names its generation.

A worker's sign of life is a session advisory lock on its own connection: when the process dies PostgreSQL drops the lock,
and its leases are free at once instead of when they expire.
"""

from __future__ import annotations

from typing import TypeVar

import psycopg
from django.db import connection, models

LOCK_CLASS = (
    77  # first half of the two-part advisory lock key of every worker; the second half is the worker's number
)


class Leased(models.Model):
    """The three columns of a leased row."""

    lease_owner = models.IntegerField(null=True, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    generation = models.BigIntegerField(default=0, editable=False)

    class Meta:
        abstract = True


L = TypeVar("L", bound=Leased)


def free(alias: str) -> str:
    """SQL: the row called `alias` is held by nobody, or by a worker that is gone, or its lease has ended."""
    return f"""({alias}.lease_expires_at is null or {alias}.lease_expires_at < clock_timestamp()
        or ({alias}.lease_owner is not null and not exists (
            select 1 from pg_locks held
            where held.locktype = 'advisory' and held.classid = {LOCK_CLASS} and held.objsubid = 2
              and held.objid = {alias}.lease_owner::oid and held.granted
              and held.database = (select oid from pg_database where datname = current_database()))))"""  # noqa: S608 - the alias is ours


def take(alias: str) -> str:
    """SQL for SET: take the lease. Parameters: owner (or None), seconds."""
    return (
        "lease_owner = %s, lease_expires_at = clock_timestamp() + make_interval(secs => %s), "
        f"generation = {alias}.generation + 1"
    )


RELEASE = "lease_owner = null, lease_expires_at = null"


def new_worker(link: psycopg.Connection) -> int:
    """A number that no live worker has, held as a sign of life for as long as `link` is open."""
    while True:
        row = link.execute("select nextval('worker_numbers')").fetchone()
        assert row is not None
        held = link.execute("select pg_try_advisory_lock(%s, %s)", [LOCK_CLASS, row[0]]).fetchone()
        if held and held[0]:
            return int(row[0])


def live_workers() -> list[int]:
    """The numbers of the workers of this database that are alive now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select objid::int from pg_locks where locktype = 'advisory' and classid = %s and objsubid = 2 and granted"
            " and database = (select oid from pg_database where datname = current_database()) order by 1",
            [LOCK_CLASS],
        )
        return [row[0] for row in cursor.fetchall()]
