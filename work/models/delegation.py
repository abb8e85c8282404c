"""What is known of a delegation on its machine, beside its job."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.guards import Immutable, WriteOnce
from work.channel import limits
from work.models import checks
from work.models.guards import NeverDecreases
from work.models.job import Job
from work.models.machine import Machine


class Delegation(models.Model):
    """A job of kind `delegation` from its first offer to the machine on. Only news of the newest attempt are taken."""

    job = models.OneToOneField(Job, on_delete=models.PROTECT, related_name="on_machine", primary_key=True)
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="delegations")
    attempt = models.PositiveIntegerField(default=1, help_text="how often it was offered")
    offered_at = models.DateTimeField(
        db_default=Now(), help_text="first offer; the time that it may take counts from here"
    )
    accepted_at = models.DateTimeField(null=True, blank=True, help_text="when the machine took this attempt")
    absent_until = models.DateTimeField(
        null=True, blank=True, help_text="until when a machine that is gone is waited for"
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="when it ended and the machine knows, or will hear it"
    )
    session_id = models.CharField(max_length=limits.SESSION_ID_CHARACTERS, blank=True, default="")
    model = models.CharField(max_length=limits.NAME_CHARACTERS, blank=True, default="")
    reasoning = models.CharField(max_length=limits.NAME_CHARACTERS, blank=True, default="")
    mode = models.CharField(max_length=limits.NAME_CHARACTERS, blank=True, default="")
    commit = models.CharField(
        max_length=limits.COMMIT_CHARACTERS,
        blank=True,
        default="",
        help_text="what the machine says it ended with",
    )
    tool_calls = models.PositiveIntegerField(default=0)
    refused_permissions = models.PositiveIntegerField(default=0)
    permissions = models.JSONField(default=list, blank=True, help_text="the last ones the agent asked for")

    progress_state = models.BinaryField(
        null=True,
        editable=False,
        help_text="where the redaction of what the agent says stands between two pieces of it, sealed",
    )

    class Meta:
        db_table = "work_delegations"
        ordering = ["-offered_at"]
        constraints = [
            checks.check("work_delegations_counting_check", "attempt >= 1"),
            checks.check("work_delegations_permissions_check", checks.at_most("permissions", limits.PERMISSIONS_BYTES)),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["machine"], condition=Q(closed_at__isnull=True), name="work_delegations_open_index"),
            models.Index(fields=["-offered_at"], name="work_delegations_newest_index"),
        ]  # fmt: skip
        triggers = [
            Immutable(
                name="delegation_1_identity",
                fields=["job", "machine", "offered_at"],
                message="work delegation identity is immutable",
            ),
            NeverDecreases(
                name="delegation_2_attempt",
                field="attempt",
                message="work delegation attempt never decreases",
            ),
            WriteOnce(
                name="delegation_3_closed",
                fields=["closed_at"],
                message="a closed work delegation stays closed",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.job_id}"
