"""`/healthz` and `/readyz`: is this process alive, and can the installation do its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from django_q.models import Schedule

from base import leases
from boxes.client import client
from boxes.errors import ProviderCode
from boxes.models import ScheduleSlot
from openagents_site.launcher.readiness import REFUSES_KEY
from openagents_site.schedules import SCHEDULES

PROVIDER_TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True)
class Finding:
    """One check: whether it is good, what to do if it is not, and whether web cannot work without it."""

    name: str
    good: bool
    remedy: str = ""
    is_needed: bool = True
    error: str = ""
    """The kind of error that the check met; for the log alone."""


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process answers. Touches nothing else."""
    return JsonResponse({"status": "alive"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, migrations, schedules and provider are good, else 503 with what is not.

    Whether a worker lives is told and changes nothing: without one everything is slower, and a balancer that took web away
    for it would make that worse. What is not good is told in the request's own line of the log.
    """
    findings = examine()
    good = all(finding.good or not finding.is_needed for finding in findings)
    if not good:
        structlog.contextvars.bind_contextvars(
            not_ready=[_logged(each) for each in findings if not each.good]
        )
    body = {
        "status": "ready" if good else "not ready",
        "checks": {finding.name: "ok" if finding.good else finding.remedy for finding in findings},
    }
    return JsonResponse(body, status=200 if good else 503)


def _logged(finding: Finding) -> str:
    return f"{finding.name}: {finding.remedy}" + (f" ({finding.error})" if finding.error else "")


def examine() -> list[Finding]:
    """Every finding; what needs the database is left out while that is away."""
    database = _checked("database", _database_answers, "the database does not answer")
    provider = _checked("provider", _provider_answers, "the box provider does not answer")
    if not database.good:
        return [database, provider]
    return [
        database,
        _checked("migrations", migrated, "run manage.py migrate"),
        _checked("schedules", _scheduled, "run manage.py setup_schedules"),
        replace(_checked("worker", _worker_lives, "start manage.py run_worker"), is_needed=False),
        provider,
    ]


def _checked(name: str, check: Callable[[], bool], remedy: str) -> Finding:
    try:
        return Finding(name, check(), remedy)
    except Exception as error:
        is_key = getattr(error, "code", None) == ProviderCode.UNAUTHORIZED
        return Finding(name, good=False, remedy=REFUSES_KEY if is_key else remedy, error=type(error).__name__)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        return True
    except DatabaseError:
        return False


def migrated() -> bool:
    return _migrations_of_the_code() <= MigrationRecorder(connection).applied_migrations().keys()


@cache
def _migrations_of_the_code() -> frozenset[tuple[str, str]]:
    """Read once: the code of a running process does not change, and its files are many."""
    return frozenset(MigrationLoader(None).graph.nodes)


def _scheduled() -> bool:
    names = set(Schedule.objects.values_list("name", flat=True))
    return (
        names >= {schedule.name for schedule in SCHEDULES}
        and ScheduleSlot.objects.filter(name="reconcile").exists()
    )


def _worker_lives() -> bool:
    return bool(leases.live_workers())


def _provider_answers() -> bool:
    if not settings.BOX_API.get("api_key"):
        return True  # creating boxes is refused by name; the rest of the installation works
    client().list_page(limit=1, timeout_seconds=PROVIDER_TIMEOUT_SECONDS, tries=1)
    return True
