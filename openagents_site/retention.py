"""Everything that is forgotten: the rules of the apps, and those of what comes with the frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from django.apps import apps
from django.db import DatabaseError, InterfaceError, OperationalError
from pghistory.models import Event

from base.retention import Rule, before, retention
from boxes import retention as boxes
from openagents_site.webhooks import retention as webhooks
from runs import retention as runs

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Forgotten:
    """What became of one rule: how many rows, or None if it failed."""

    what: str
    days: int
    rows: int | None


def rules() -> list[Rule]:
    """Every rule, in the order they are carried out."""
    return [runs.LOGS, *boxes.RULES, *webhooks.RULES, TASKS, SESSIONS, *history_rules()]


TASKS = Rule(
    "results of scheduled tasks", "django_q_task", "id", before("stopped"), lambda: retention().task_days
)
SESSIONS = Rule("ended sessions", "django_session", "session_key", before("expire_date"), lambda: 1)


def history_rules() -> list[Rule]:
    """One for each table of history; they are append-only for everybody else."""
    return [
        Rule(
            f"history of {model.pgh_tracked_model._meta.verbose_name_plural}",
            model._meta.db_table,
            "pgh_id",
            before("pgh_created_at"),
            lambda: retention().history_days,
            grows_by_key=True,
            guard=f"{model._meta.label}:append_only",
        )
        for model in apps.get_models()
        if issubclass(model, Event) and hasattr(model, "pgh_tracked_model")
    ]


def prune(*, dry_run: bool = False, chosen: Sequence[Rule] | None = None) -> list[Forgotten]:
    """Carry out every rule, or only count with `dry_run`. One that fails is logged, and costs no other.

    Errors of the connection are raised.
    """
    return [_carry_out(rule, dry_run) for rule in (rules() if chosen is None else chosen)]


def _carry_out(rule: Rule, dry_run: bool) -> Forgotten:
    try:
        return Forgotten(rule.what, rule.days(), rule.count() if dry_run else rule.forget())
    except (OperationalError, InterfaceError):
        raise
    except DatabaseError:
        log.exception("retention_failed", what=rule.what)
        return Forgotten(rule.what, rule.days(), None)
