"""The ledger row of one tool call of a job."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from work import limits
from work.models import checks
from work.models.guards import StepTransition
from work.models.job import Job
from work.states import STEP_MOVES, TERMINAL_STEPS, StepStatus

IDENTITY = ["work_job", "sequence", "provider_call_id", "provider_item_id", "provider_response_id", "tool_name",
            "tool_version", "module_id", "module_artifact_digest", "catalog_digest", "arguments", "argument_digest",
            "report_offset", "requested_at"]  # fmt: skip
FROZEN = ["status", "outcome_digest", "result", "error", "usage", "executor_id", "executor_disclosure", "sealed_arguments",
          "target_receipt_refs", "attribution_refs", "started_at", "completed_at"]  # fmt: skip
UNUSUAL = [status.value for status in StepStatus if status != StepStatus.SUCCEEDED]
SHAPE = """case status
    when 'requested' then started_at is null and completed_at is null and outcome_digest is null
        and result is null and error is null
    when 'running' then started_at is not null and completed_at is null and outcome_digest is null
        and result is null and error is null
    when 'succeeded' then completed_at is not null and outcome_digest is not null and result is not null
        and error is null and coalesce(executor_id, '') <> ''
    else completed_at is not null and outcome_digest is not null and error is not null
        and result is null and coalesce(executor_id, '') <> '' end"""


class JobStep(models.Model):
    """One tool call: written down before it is carried out, and never a second time."""

    TERMINAL_STATUSES: ClassVar[tuple[str, ...]] = tuple(status.value for status in TERMINAL_STEPS)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    work_job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="steps")
    sequence = models.PositiveSmallIntegerField()
    provider_call_id = models.CharField(max_length=256)
    provider_item_id = models.CharField(max_length=256, null=True, blank=True)
    provider_response_id = models.CharField(max_length=256, null=True, blank=True)
    tool_name = models.CharField(max_length=128)
    tool_version = models.CharField(max_length=64, null=True, blank=True)
    module_id = models.CharField(max_length=128, null=True, blank=True)
    module_artifact_digest = models.CharField(max_length=64, null=True, blank=True)
    catalog_digest = models.CharField(max_length=64, null=True, blank=True)
    arguments = models.TextField(
        blank=True, default="", help_text="as the model wrote them, secrets struck out"
    )
    sealed_arguments = models.BinaryField(
        null=True,
        editable=False,
        help_text="as the model wrote them, where that is another text; until the call has ended",
    )
    argument_digest = models.CharField(max_length=64)
    report_offset = models.PositiveIntegerField(
        default=0, help_text="bytes of the job's text that came before this call"
    )
    status = models.CharField(max_length=11, choices=StepStatus.choices, default=StepStatus.REQUESTED)
    outcome_digest = models.CharField(max_length=64, null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    executor_id = models.CharField(max_length=128, null=True, blank=True)
    executor_disclosure = models.JSONField(null=True, blank=True)
    target_receipt_refs = models.JSONField(default=list, blank=True)
    attribution_refs = models.JSONField(default=list, blank=True)
    requested_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "work_job_steps"
        ordering = ["work_job_id", "sequence"]
        indexes = [
            models.Index(fields=["-requested_at"], name="work_job_steps_newest_index"),
            models.Index(
                fields=["status", "-requested_at"],
                condition=Q(status__in=UNUSUAL),
                name="work_job_steps_unusual_index",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["work_job", "sequence"], name="work_job_steps_sequence_index"),
            models.UniqueConstraint(fields=["work_job", "provider_call_id"], name="work_job_steps_call_index"),
            checks.check("work_job_steps_order_check", f"sequence between 1 and {limits.STEPS_PER_JOB}"),
            checks.one_of("work_job_steps_status_check", "status", StepStatus.values),
            checks.check("work_job_steps_shape_check", SHAPE),
            checks.check(
                "work_job_steps_digests_check",
                f"argument_digest ~ '^[0-9a-f]{{64}}$' and ({checks.is_digest('outcome_digest')})"
                f" and ({checks.is_digest('module_artifact_digest')}) and ({checks.is_digest('catalog_digest')})",
            ),
            checks.check("work_job_steps_names_check", "provider_call_id <> '' and tool_name <> ''"),
            checks.check("work_job_steps_arguments_check", checks.at_most("arguments", limits.ARGUMENT_BYTES)),
            checks.check("work_job_steps_result_check", checks.at_most("result", limits.RESULT_BYTES)),
            checks.check(
                "work_job_steps_lists_check",
                "jsonb_typeof(target_receipt_refs) = 'array' and jsonb_typeof(attribution_refs) = 'array'",
            ),
        ]  # fmt: skip
        triggers = [
            StepTransition(
                name="step_1_transition",
                identity=IDENTITY,
                frozen=FROZEN,
                moves=STEP_MOVES,
                terminal=TERMINAL_STEPS,
            ),
            pgtrigger.Protect(name="step_2_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.sequence}. {self.tool_name} ({self.status})"

    @property
    def is_terminal(self) -> bool:
        return self.status in self.TERMINAL_STATUSES
