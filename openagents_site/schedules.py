"""What django-q2 wakes up for. Each task is safe to lose and safe to run twice: the rows say what is due."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django_q.models import Schedule

from base.locks import hold_for_transaction

DAY = 24 * 60


@dataclass(frozen=True)
class Scheduled:
    """A task by name; `minutes` between two firings. Nothing finer than 30 seconds is possible."""

    name: str
    function: str
    minutes: int


SCHEDULES: tuple[Scheduled, ...] = (
    Scheduled("heartbeat", "openagents_site.tasks.heartbeat", 1),
    Scheduled("reconcile", "openagents_site.tasks.reconcile_if_due", 1),
    Scheduled("drive due rows", "openagents_site.tasks.drive_due", 1),
    Scheduled("promote queued boxes", "boxes.tasks.promote_fanouts", 1),
    Scheduled("enforce budgets", "boxes.tasks.enforce_budgets", 1),
    Scheduled("recover jobs", "work.tasks.recover", 1),
    Scheduled("expire pairings", "work.tasks.expire_pairings", 1),
    Scheduled("expire assignments", "forge.tasks.expire_assignments", 1),
    Scheduled("forget old rows", "openagents_site.tasks.forget_old_rows", 60),
    Scheduled("prune", "openagents_site.tasks.prune", DAY),
    Scheduled("tidy repositories", "forge.tasks.tidy_repositories", DAY),
)


def install() -> dict[str, int]:
    """Make the schedule rows what `SCHEDULES` says, by name; rows that it does not know are deleted.

    Safe to run at every start and on many machines at once. Returns how many rows were made, changed and deleted.
    """
    with transaction.atomic():
        hold_for_transaction("setup_schedules")
        counts = {"made": 0, "changed": 0}
        for wanted in SCHEDULES:
            _install_one(wanted, counts)
        strangers = Schedule.objects.exclude(name__in=[wanted.name for wanted in SCHEDULES])
        return counts | {"deleted": strangers.delete()[0]}


def _install_one(wanted: Scheduled, counts: dict[str, int]) -> None:
    fields = {
        "func": wanted.function,
        "args": None,
        "kwargs": None,
        "hook": None,
        "schedule_type": Schedule.MINUTES,
        "minutes": wanted.minutes,
        "repeats": -1,
        "cluster": None,
        "intended_date_kwarg": None,
    }
    rows = list(Schedule.objects.filter(name=wanted.name).order_by("id"))
    if not rows:
        Schedule.objects.create(name=wanted.name, **fields)
        counts["made"] += 1
        return
    keep, *doubles = rows
    for double in doubles:  # the table knows no unique name
        double.delete()
    if any(getattr(keep, name) != value for name, value in fields.items()):
        Schedule.objects.filter(pk=keep.pk).update(**fields)
        counts["changed"] += 1
