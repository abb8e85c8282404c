"""What went wrong, for staff and for owners."""

from __future__ import annotations

import uuid

import pghistory
import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.guards import Immutable
from conversations.models import Conversation, Visitor
from work import limits
from work.models import checks
from work.models.job import Job
from work.states import IncidentStatus, IncidentSurface, Severity


@pghistory.track(
    pghistory.UpdateEvent(level=pgtrigger.Statement, condition=pgtrigger.AnyChange("status", "receipt_ref")),
    fields=["status", "receipt_ref"],
    model_name="IncidentHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "incidents_history"},
)
class Incident(models.Model):
    """One thing that went wrong, classified by its code; without secrets."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    owner_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="incidents", null=True, blank=True
    )
    owner_visitor = models.ForeignKey(
        Visitor, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    surface = models.CharField(max_length=10, choices=IncidentSurface.choices)
    origin = models.CharField(max_length=64)
    correlation_ref = models.CharField(max_length=128, null=True, blank=True)
    code = models.CharField(max_length=128)
    severity = models.CharField(max_length=9, choices=Severity.choices)
    summary = models.CharField(max_length=limits.INCIDENT_TEXT_CHARACTERS, blank=True, default="")
    context = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=8, choices=IncidentStatus.choices, default=IncidentStatus.OPEN)
    fixer_job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    receipt_ref = models.CharField(max_length=256, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "incidents"
        ordering = ["-created_at", "-id"]
        permissions = [("close_incident", "Can close incident")]
        constraints = [
            checks.one_of("incidents_surface_check", "surface", IncidentSurface.values),
            checks.one_of("incidents_severity_check", "severity", Severity.values),
            checks.one_of("incidents_status_check", "status", IncidentStatus.values),
            checks.check("incidents_code_check", "code <> ''"),
            # Room for how PostgreSQL writes a map, which is wider than what is counted.
            checks.check(
                "incidents_context_check", checks.at_most("context", 2 * limits.INCIDENT_CONTEXT_BYTES)
            ),
        ]
        indexes = [
            models.Index(
                fields=["owner_user", "-created_at", "-id"],
                condition=Q(owner_user__isnull=False),
                name="incidents_owner_index",
            ),
            models.Index(fields=["code", "owner_user", "-created_at"], name="incidents_recurrence_index"),
            models.Index(fields=["-created_at", "-id"], name="incidents_newest_index"),
            models.Index(fields=["status", "-created_at"], name="incidents_status_index"),
            models.Index(fields=["severity", "-created_at"], name="incidents_severity_index"),
            models.Index(
                fields=["correlation_ref"],
                condition=Q(correlation_ref__isnull=False),
                name="incidents_correlation_index",
            ),
        ]
        triggers = [
            Immutable(
                name="incident_1_identity",
                fields=["conversation", "owner_user", "owner_visitor", "surface", "origin", "correlation_ref", "code",
                        "severity", "summary", "context", "created_at"],
                message="incident identity is immutable",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.code} ({self.severity})"
