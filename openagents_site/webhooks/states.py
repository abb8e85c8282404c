"""What webhooks are told about, and the states of a delivery, as data."""

from __future__ import annotations

from django.db import models

from boxes.states import Resolution
from forge.states import AssignmentState
from runs.states import RunState
from work.states import IncidentStatus, JobStatus

TEST = "webhook.test"
BOX_EVENTS = ("box.created", "box.ready", "box.stop_requested", "box.stopped", "box.settled")
RUN_EVENTS = tuple(f"run.{state.value}" for state in RunState)
ASSIGNMENT_EVENTS = tuple(f"assignment.{state.value}" for state in AssignmentState)
JOB_EVENTS = tuple(f"job.{status.value}" for status in JobStatus)
LEAK_EVENTS = ("leak.found", "leak.reopened", *(f"leak.{resolution.value}" for resolution in Resolution))
INCIDENT_EVENTS = tuple(f"incident.{status.value}" for status in IncidentStatus)
EVENT_TYPES = (
    *BOX_EVENTS,
    *RUN_EVENTS,
    *ASSIGNMENT_EVENTS,
    *JOB_EVENTS,
    *LEAK_EVENTS,
    *INCIDENT_EVENTS,
)
"""Every type that there is, beside `webhook.test`, which is sent on demand."""

NOUNS = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))
CHOICES = (*EVENT_TYPES, *(f"{noun}.*" for noun in NOUNS))
"""What a webhook may list: a type, or all of one noun."""


class DeliveryState(models.TextChoices):
    PENDING = "pending", "to be sent, or to be tried again"
    DELIVERED = "delivered", "taken"
    EXHAUSTED = "exhausted", "given up after the last try"
    CANCELLED = "cancelled", "its webhook was switched off first"


class DisabledReason(models.TextChoices):
    OWNER = "owner", "switched off by its owner"
    STAFF = "staff", "switched off by staff"
    GONE = "gone", "its receiver answered 410"
    FAILING = "failing", "its receiver has taken nothing for days"
