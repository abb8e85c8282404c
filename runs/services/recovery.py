"""Making due what nobody drives."""

from __future__ import annotations

from django.db import connection, transaction

from base import leases, notify
from runs.services.admission import DRIVER
from runs.states import ACTIVE

# The live workers are read once, whatever the number of rows.
_LIVE_WORKERS = f"""
    select held.objid::bigint from pg_locks held
    where held.locktype = 'advisory' and held.classid = {leases.LOCK_CLASS} and held.objsubid = 2 and held.granted
      and held.database = (select oid from pg_database where datname = current_database())
"""  # noqa: S608 - a constant of ours

_RELEASE_ORPHANS = f"""
    update box_runs set {leases.RELEASE}, next_step_at = clock_timestamp()
    where id in (
        select id from box_runs where lease_owner is not null and lease_owner not in ({_LIVE_WORKERS})
        for update skip locked)
"""  # noqa: S608

_WAKE_UNHELD = f"""
    update box_runs set {leases.RELEASE}, next_step_at = clock_timestamp()
    where id in (
        select id from box_runs
        where (state = any(%s) or kill_confirmed = false)
          and (lease_expires_at is null or lease_expires_at < clock_timestamp())
          and (next_step_at is null or next_step_at > clock_timestamp())
        for update skip locked)
"""  # noqa: S608


def recover() -> int:
    """Make every living run that nobody holds due now, and give free what dead workers held; returns how many runs.

    Safe to call at any time, also beside running workers: what somebody holds is left alone.
    """
    with transaction.atomic():
        return release_orphans() + make_unheld_due()


def release_orphans() -> int:
    """Give free what dead workers held; returns how many runs. Costs one small query where there is nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_ORPHANS)
        return _told(cursor.rowcount)


def make_unheld_due() -> int:
    """Have every living run that nobody holds looked at now, also one that only waits for its next look; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_WAKE_UNHELD, [[state.value for state in ACTIVE]])
        return _told(cursor.rowcount)


def _told(count: int) -> int:
    if count:
        notify.notify(notify.DUE, DRIVER)
    return count
