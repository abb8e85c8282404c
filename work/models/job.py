"""The ledger row of one job."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pghistory
import pgtrigger
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.guards import WriteOnce
from base.leases import Leased
from conversations.models import Conversation, Message, Visitor
from work import limits
from work.models import checks
from work.models.guards import JobScope, JobTransition, NeverDecreases
from work.models.machine import Machine
from work.states import ACTIVE, MOVES, TERMINAL, JobKind, JobStatus, Surface

IDENTITY = ["conversation", "owner_visitor", "surface", "goal", "context_hint", "requesting_tool_step_ref", "kind",
            "machine", "authority_snapshot", "budget_snapshot", "token_budget", "cost_budget_microusd", "keep_boxes",
            "created_at"]  # fmt: skip
FROZEN = ["status", "report", "error_code", "usage", "completed_at", "delegation", "model_id", "instruction_digest",
          "tool_catalog_digest", "memory_snapshot_ref", "tool_call_count", "continuation_count", "started_at",
          "generation", "lease_owner", "lease_expires_at", "next_step_at", "cancel_requested_at", "cancel_code",
          "attempts", "failures", "failure_code", "start_failures", "recovered_generation"]  # fmt: skip
TRACKED = ["status", "error_code", "generation", "cancel_requested_at", "started_at", "completed_at"]
WATCHED = [field for field in TRACKED if field != "generation"]


@pghistory.track(
    pghistory.InsertEvent(level=pgtrigger.Statement),
    pghistory.UpdateEvent(level=pgtrigger.Statement, condition=pgtrigger.AnyChange(*WATCHED)),
    fields=TRACKED,
    model_name="JobHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "work_jobs_history"},
)
class Job(Leased):
    """Work that was accepted and will end with a report, whatever dies in between."""

    TERMINAL_STATUSES: ClassVar[tuple[str, ...]] = tuple(status.value for status in TERMINAL)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="jobs")
    owner_visitor = models.ForeignKey(Visitor, on_delete=models.PROTECT, related_name="jobs")
    machine = models.ForeignKey(Machine, on_delete=models.PROTECT, related_name="jobs", null=True, blank=True)
    surface = models.CharField(max_length=5, choices=Surface.choices)
    goal = models.TextField()
    context_hint = models.TextField(null=True, blank=True)
    requesting_tool_step_ref = models.CharField(max_length=limits.STEP_REF_BYTES, null=True, blank=True)
    kind = models.CharField(max_length=10, choices=JobKind.choices, default=JobKind.DEEP_WORK)
    delegation = models.JSONField(
        null=True, blank=True, encoder=DjangoJSONEncoder, help_text="what is delegated, and its session"
    )
    authority_snapshot = models.JSONField(
        null=True, blank=True, encoder=DjangoJSONEncoder, help_text="what the machine allowed then"
    )
    budget_snapshot = models.JSONField(null=True, blank=True)
    token_budget = models.PositiveBigIntegerField(null=True, blank=True)
    cost_budget_microusd = models.PositiveBigIntegerField(null=True, blank=True)
    keep_boxes = models.BooleanField(default=False, help_text="whether the boxes it made outlive it")

    status = models.CharField(max_length=16, choices=JobStatus.choices, default=JobStatus.QUEUED)
    report = models.TextField(null=True, blank=True, help_text="while it runs: the text so far")
    error_code = models.CharField(max_length=limits.ERROR_CODE_BYTES, null=True, blank=True)
    report_message = models.ForeignKey(
        Message, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )

    model_id = models.CharField(max_length=200, null=True, blank=True)
    instruction_digest = models.CharField(max_length=64, null=True, blank=True)
    tool_catalog_digest = models.CharField(max_length=64, null=True, blank=True)
    memory_snapshot_ref = models.CharField(max_length=256, null=True, blank=True)
    tool_call_count = models.PositiveIntegerField(default=0)
    continuation_count = models.PositiveIntegerField(default=0)
    usage = models.JSONField(default=dict, blank=True)

    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(
        null=True, blank=True, help_text="first start; kept when it is taken over"
    )
    completed_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_code = models.CharField(max_length=limits.ERROR_CODE_BYTES, null=True, blank=True)
    next_step_at = models.DateTimeField(
        null=True,
        blank=True,
        db_default=Now(),
        help_text="when a worker takes it up next; null: never again",
    )
    attempts = models.PositiveIntegerField(default=0, help_text="claims since a step was last committed")
    failures = models.PositiveIntegerField(default=0, help_text="failures in a row with the same code")
    failure_code = models.CharField(max_length=limits.ERROR_CODE_BYTES, null=True, blank=True)
    start_failures = models.PositiveIntegerField(
        default=0, help_text="failed starts in a row after a restart"
    )
    recovered_generation = models.BigIntegerField(
        null=True, blank=True, help_text="the generation whose interruption was last written down"
    )

    class Meta:
        db_table = "work_jobs"
        ordering = ["-created_at", "-id"]
        permissions = [("cancel_job", "Can cancel job")]
        constraints = [
            checks.check(
                "work_jobs_terminal_report_check",
                f"case when status in ({checks.listed(TERMINAL)})"
                " then completed_at is not null and btrim(report, E' \\t\\r\\n') <> '' else completed_at is null end",
            ),
            checks.check("work_jobs_delegation_identity", checks.DELEGATION_SHAPE),
            checks.one_of("work_jobs_status_check", "status", JobStatus.values),
            checks.one_of("work_jobs_kind_check", "kind", JobKind.values),
            checks.one_of("work_jobs_surface_check", "surface", Surface.values),
            checks.check("work_jobs_goal_check", checks.bytes_between("goal", 1, limits.GOAL_BYTES)),
            checks.check(
                "work_jobs_context_hint_check", checks.at_most("context_hint", limits.CONTEXT_HINT_BYTES)
            ),
            checks.check(
                "work_jobs_step_ref_check", checks.at_most("requesting_tool_step_ref", limits.STEP_REF_BYTES)
            ),
            checks.check("work_jobs_report_check", checks.at_most("report", limits.REPORT_BYTES)),
            checks.check("work_jobs_error_code_check", checks.at_most("error_code", limits.ERROR_CODE_BYTES)),
            checks.check("work_jobs_delegation_check", checks.at_most("delegation", limits.DELEGATION_BYTES)),
            checks.check("work_jobs_authority_check", checks.at_most("authority_snapshot", limits.AUTHORITY_BYTES)),
            checks.check("work_jobs_budget_check", checks.at_most("budget_snapshot", limits.BUDGET_BYTES)),
            checks.check(
                "work_jobs_usage_check",
                f"jsonb_typeof(usage) = 'object' and ({checks.at_most('usage', limits.USAGE_BYTES)})",
            ),
            checks.check(
                "work_jobs_digests_check",
                f"({checks.is_digest('instruction_digest')}) and ({checks.is_digest('tool_catalog_digest')})",
            ),
            checks.check("work_jobs_generation_check", "generation >= 0"),
        ]  # fmt: skip
        indexes = [
            models.Index(
                fields=["next_step_at"], condition=Q(next_step_at__isnull=False), name="work_jobs_due_index"
            ),
            models.Index(
                fields=["lease_owner"], condition=Q(lease_owner__isnull=False), name="work_jobs_leased_index"
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(status__in=[status.value for status in ACTIVE]),
                name="work_jobs_active_index",
            ),
            models.Index(
                fields=["machine"],
                condition=Q(status__in=[status.value for status in ACTIVE], machine__isnull=False),
                name="work_jobs_machine_active_index",
            ),
            models.Index(fields=["conversation", "-created_at", "-id"], name="work_jobs_list_index"),
            models.Index(fields=["-created_at"], name="work_jobs_newest_index"),
            models.Index(fields=["kind", "-created_at"], name="work_jobs_kind_index"),
            models.Index(
                fields=["status", "-created_at"],
                condition=Q(status__in=[status.value for status in TERMINAL]),
                name="work_jobs_ended_index",
            ),
        ]
        triggers = [
            JobScope(name="job_1_scope"),
            JobTransition(
                name="job_2_transition", identity=IDENTITY, frozen=FROZEN, moves=MOVES, terminal=TERMINAL
            ),
            NeverDecreases(
                name="job_3_generation", field="generation", message="work job generation never decreases"
            ),
            WriteOnce(
                name="job_4_once",
                fields=["started_at", "cancel_requested_at"],
                message="what happens once to a work job keeps its first time",
            ),
            pgtrigger.Protect(name="job_5_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.goal[:40]} ({self.status})"

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended; the row never changes its account of it again."""
        return self.status in self.TERMINAL_STATUSES

    @property
    def is_delegation(self) -> bool:
        return self.kind == JobKind.DELEGATION
