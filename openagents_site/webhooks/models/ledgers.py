"""The ledgers seen as sources of events: proxies that add triggers to tables of other apps, and nothing else.

The triggers stand here, since an app below must not know that webhooks exist. They are migrated and checked like any other.
"""

from __future__ import annotations

import pgtrigger

from boxes.models import Box, ReconciliationEvent
from forge.models import Assignment
from openagents_site.webhooks import sources
from openagents_site.webhooks.sources import Source
from runs.models import Run
from work.models import Incident, Job


def triggers_of(source: Source) -> list[pgtrigger.Trigger]:
    """After each row that is inserted, and each whose watched columns changed."""
    return [
        pgtrigger.Trigger(
            name=f"{source.noun}_webhooks_insert",
            when=pgtrigger.After,
            operation=pgtrigger.Insert,
            func=sources.function(source, source.inserted),
        ),
        pgtrigger.Trigger(
            name=f"{source.noun}_webhooks_update",
            when=pgtrigger.After,
            operation=pgtrigger.UpdateOf(*source.watched),
            condition=pgtrigger.AnyChange(*source.watched),
            func=sources.function(source, source.updated),
        ),
    ]


class Seen:
    """What the `Meta` of each has in common."""

    proxy = True
    default_permissions = ()


class BoxLedger(Box):
    """Boxes, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.BOX)


class RunLedger(Run):
    """Runs, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.RUN)


class AssignmentLedger(Assignment):
    """Assignments, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.ASSIGNMENT)


class JobLedger(Job):
    """Jobs, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.JOB)


class LeakLedger(ReconciliationEvent):
    """Leaks, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.LEAK)


class IncidentLedger(Incident):
    """Incidents, as events."""

    class Meta(Seen):
        triggers = triggers_of(sources.INCIDENT)
