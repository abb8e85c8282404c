"""What is looked at in the database, and at the provider."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import DatabaseError, connection
from django.utils.module_loading import import_string
from django_q.models import Schedule

from base.amounts import counted
from base.clock import database_now
from boxes.client import client
from boxes.conf import box_api
from boxes.errors import ProviderCode, ProviderError
from boxes.models import ScheduleSlot
from openagents_site import health
from openagents_site.backups.database import server_version
from openagents_site.doctor import Finding, bad, good, warning
from openagents_site.schedules import SCHEDULES
from openagents_site.worker import LATE_INTERVALS

OLDEST_SERVER = 14
LARGEST_SKEW_SECONDS = 5.0
STUCK = (
    (("box in provisioning", "boxes in provisioning"), "conversation_boxes", "next_provision_at"),
    (("box to settle", "boxes to settle"), "conversation_boxes", "next_settlement_at"),
    (("run",), "box_runs", "next_step_at"),
    (("job",), "work_jobs", "next_step_at"),
    (("assignment",), "forge_assignments", "next_step_at"),
)
STUCK_MINUTES = 5


def database() -> list[Finding]:
    """Reached, new enough, migrated. The other checks of this module are left out where it is not reached."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        why = str(error).strip().splitlines()[0]
        return [bad("database", why, "start bin/up, or see to the server that DATABASE_URL names")]
    version = server_version()
    found = (
        good("database", f"PostgreSQL {version} answers")
        if version >= OLDEST_SERVER
        else bad("database", f"PostgreSQL {version} is too old", f"use {OLDEST_SERVER} or newer")
    )
    return [found, _migrations(), _clock()]


def _migrations() -> Finding:
    if health.migrated():
        return good("migrations", "all applied")
    return bad("migrations", "some are not applied", "run manage.py migrate")


def _clock() -> Finding:
    """Leases and deadlines go by the database's clock alone; a wrong clock here misleads logs and people."""
    skew = abs((database_now() - datetime.now(UTC)).total_seconds())
    if skew > LARGEST_SKEW_SECONDS:
        return warning(
            "clock", f"this machine and the database differ by {skew:.0f} s", "run a time service on both"
        )
    return good("clock", f"differs from the database's by {skew:.1f} s")


def schedules() -> list[Finding]:
    """Each wanted schedule is there once, with a function that can be loaded; none is unknown."""
    rows = list(Schedule.objects.values_list("name", "func"))
    wanted = {schedule.name for schedule in SCHEDULES}
    problems = [f"{name} is missing" for name in sorted(wanted - {name for name, _ in rows})]
    problems += [f"{name} is unknown" for name, _ in rows if name not in wanted]
    problems += [
        f"{name} calls {function}, which cannot be loaded" for name, function in rows if not _loads(function)
    ]
    if len(rows) > len({name for name, _ in rows}):
        problems.append("some are there twice")
    if problems:
        return [bad("schedules", "; ".join(problems), "run manage.py setup_schedules")]
    return [good("schedules", f"{len(rows)} as wanted")]


def slots() -> list[Finding]:
    """No periodic pass is late or keeps failing."""
    now = database_now()
    found = []
    for slot in ScheduleSlot.objects.order_by("name"):
        late = (now - slot.next_at).total_seconds()
        if slot.failures:
            seen = f"failed {slot.failures} times in a row: {slot.outcome}"
            found.append(bad(f"pass {slot.name}", seen, "see the worker's log"))
        elif late > LATE_INTERVALS * slot.interval_ms / 1000:
            found.append(bad(f"pass {slot.name}", f"{late:.0f} s late", "start manage.py run_worker"))
        else:
            found.append(good(f"pass {slot.name}", "in time"))
    return found or [bad("passes", "there is no slot", "run manage.py setup_schedules")]


def stuck_rows() -> list[Finding]:
    """Nothing is due for minutes without being taken up, and no lease is held far beyond its end."""
    found = []
    for what, table, due in STUCK:
        count = _count(
            f"select count(*) from {table} where {due} < clock_timestamp() - make_interval(mins => {STUCK_MINUTES})"  # noqa: S608
            " and (lease_expires_at is null or lease_expires_at < clock_timestamp())"
        )
        if count:
            seen = f"{counted(count, *what)} {'is' if count == 1 else 'are'} due for more than {STUCK_MINUTES} minutes"
            found.append(bad("due rows", seen, "start more workers, and see their log"))
        held = _count(
            f"select count(*) from {table} where {due} is not null and lease_expires_at < clock_timestamp() - interval '1 hour'"  # noqa: S608
        )
        if held:
            found.append(
                warning(
                    "leases",
                    f"{counted(held, *what)} {'has' if held == 1 else 'have'} a lease that ended an hour ago",
                    "start manage.py run_worker",
                )
            )
    return found or [good("due rows", "none waits for long, and no lease is stale")]


def provider() -> list[Finding]:
    """Reached with our key and in our dialect; nothing is created or changed."""
    conf = box_api()
    if not conf.api_key:
        return [warning("provider", "no key is set: boxes cannot be created", "set BOX_API_KEY")]
    try:
        client().list_page(limit=1, timeout_seconds=health.PROVIDER_TIMEOUT_SECONDS, tries=1)
    except ProviderError as error:
        if error.code == ProviderCode.UNAUTHORIZED:
            return [bad("provider", f"{conf.base_url} refuses the key", "see to BOX_API_KEY")]
        remedy = "see to BOX_API_BASE_URL and BOX_API_DIALECT, or start the provider"
        return [bad("provider", f"{conf.base_url} does not answer as expected ({error.code})", remedy)]
    return [good("provider", f"{conf.base_url} answers, dialect {conf.dialect}")]


def _loads(function: str) -> bool:
    try:
        return callable(import_string(function))
    except ImportError:
        return False


def _count(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    return int(row[0]) if row else 0
