"""One attempt at one issue, on one box or computer."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pghistory
import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from base.guards import Frozen, Immutable, WriteOnce
from base.leases import Leased
from boxes.models import Box
from conversations.models import Conversation
from forge import limits
from forge.models.issue import Issue
from forge.models.repository import Repository
from forge.states import LIVE, TERMINAL, AssignmentState, Delivery, TargetKind
from runs.models import Run
from work.models import Job, Machine, checks

IS_LIVE = Q(state__in=[state.value for state in LIVE])
SETTLED = ["state", "run", "work_job", "terminal_branch", "terminal_commit", "failure_reason", "started_at",
           "finished_at", "credential_delivery_status", "credential_delivery_reason"]  # fmt: skip


class NoRevokedCredential(pgtrigger.Trigger):
    """An attempt that is not over has a credential that is not revoked."""

    when = pgtrigger.After
    operation = pgtrigger.Insert | pgtrigger.Update

    def get_func(self, model: type[models.Model]) -> str:
        return f"""if new.state in ({checks.listed(LIVE)}) and exists (select 1 from forge_assignment_credentials
            where assignment_id = new.id and revoked_at is not null)
            then raise exception 'live assignment with a revoked credential'; end if; return null;"""  # noqa: S608


@pghistory.track(
    pghistory.InsertEvent(),
    pghistory.UpdateEvent(condition=pgtrigger.AnyChange("state", "failure_reason", "terminal_commit")),
    fields=["state", "failure_reason", "terminal_commit", "started_at", "finished_at"],
    model_name="AssignmentHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "forge_assignments_history"},
)
class Assignment(Leased):
    """An attempt. While it lives it claims its issue and its box or computer; when it is over its credential is dead."""

    TERMINAL_STATES: ClassVar[tuple[str, ...]] = tuple(state.value for state in TERMINAL)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    target_kind = models.CharField(max_length=8, choices=TargetKind.choices, default=TargetKind.BOX)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="assignments")
    conversation_box = models.ForeignKey(
        Box, on_delete=models.PROTECT, related_name="assignments", null=True, blank=True
    )
    machine = models.ForeignKey(
        Machine, on_delete=models.PROTECT, related_name="assignments", null=True, blank=True
    )
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="assignments")
    issue = models.ForeignKey(Issue, on_delete=models.PROTECT, related_name="assignments")
    # Without a constraint in the database: checking it would lock the run's row against the one who is just ending it,
    # and that one waits for the attempt's. Runs are never deleted.
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="+", null=True, blank=True, db_constraint=False
    )
    work_job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    requesting_principal = models.JSONField(help_text="type, id, actor_type and actor_id")
    creation_key = models.CharField(max_length=256, null=True, blank=True, editable=False)

    branch = models.CharField(max_length=limits.BRANCH_BYTES)
    command = models.TextField(
        null=True, blank=True, help_text="what a box is to run in the cloned repository"
    )
    prompt = models.TextField(null=True, blank=True, help_text="what the agent on a computer is told")
    agent_id = models.CharField(max_length=64, null=True, blank=True)
    cwd = models.CharField(max_length=500, null=True, blank=True)

    state = models.CharField(max_length=9, choices=AssignmentState.choices, default=AssignmentState.ADMITTED)
    terminal_branch = models.CharField(max_length=limits.BRANCH_BYTES, null=True, blank=True)
    terminal_commit = models.CharField(max_length=64, null=True, blank=True)
    failure_reason = models.CharField(max_length=limits.REASON_CHARACTERS, null=True, blank=True)
    credential_delivery_status = models.CharField(
        max_length=14, choices=Delivery.choices, default=Delivery.NOT_APPLICABLE
    )
    credential_delivery_reason = models.CharField(max_length=limits.REASON_CHARACTERS, null=True, blank=True)

    admitted_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    next_step_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="when the worker starts it, lets it expire, or stops what it started; null: never again",
    )
    step_failures = models.PositiveIntegerField(default=0, help_text="failed steps in a row")

    class Meta:
        db_table = "forge_assignments"
        ordering = ["-admitted_at", "-id"]
        permissions = [("finish_assignment", "Can end assignment")]
        constraints = [
            models.UniqueConstraint(
                fields=["issue"], condition=IS_LIVE, name="forge_assignments_one_active_issue_index"
            ),
            models.UniqueConstraint(
                fields=["conversation_box"], condition=IS_LIVE, name="forge_assignments_one_active_box_index"
            ),
            models.UniqueConstraint(
                fields=["machine"], condition=IS_LIVE, name="forge_assignments_one_active_machine_index"
            ),
            models.UniqueConstraint(
                fields=["conversation", "creation_key"], name="forge_assignments_creation_key_index"
            ),
            checks.check(
                "forge_assignments_target_check",
                "case target_kind when 'box' then conversation_box_id is not null and machine_id is null"
                " when 'computer' then machine_id is not null and conversation_box_id is null else false end",
            ),
            checks.one_of("forge_assignments_state_check", "state", AssignmentState.values),
            checks.one_of("forge_assignments_delivery_check", "credential_delivery_status", Delivery.values),
            checks.check(
                "forge_assignments_finished_check",
                f"(state in ({checks.listed(TERMINAL)})) = (finished_at is not null)",
            ),
            checks.check("forge_assignments_branch_check", "octet_length(branch) between 1 and 255"),
            checks.check(
                "forge_assignments_commit_check",
                "terminal_commit is null or terminal_commit ~ '^[0-9a-f]{40}([0-9a-f]{24})?$'",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_step_at"],
                condition=Q(next_step_at__isnull=False),
                name="forge_assignments_due_index",
            ),
            models.Index(fields=["deadline_at"], condition=IS_LIVE, name="forge_assignments_live_index"),
            models.Index(fields=["issue", "admitted_at", "id"], name="forge_assignments_issue_index"),
            models.Index(fields=["conversation", "-admitted_at", "-id"], name="forge_assignments_list_index"),
            models.Index(fields=["run"], condition=Q(run__isnull=False), name="forge_assignments_run_index"),
            models.Index(fields=["-admitted_at"], name="forge_assignments_newest_index"),
            models.Index(
                fields=["state", "-admitted_at"],
                condition=Q(state__in=[state.value for state in TERMINAL]),
                name="forge_assignments_ended_index",
            ),
        ]
        triggers = [
            Immutable(
                name="assignment_1_identity",
                fields=["target_kind", "conversation", "conversation_box", "machine", "repository", "issue",
                        "requesting_principal", "creation_key", "branch", "command", "prompt", "agent_id", "cwd",
                        "admitted_at", "deadline_at"],
                message="assignment identity is immutable",
            ),
            Frozen(
                name="assignment_2_terminal",
                field="state",
                states=[state.value for state in TERMINAL],
                fields=SETTLED,
                message="terminal assignment is immutable",
            ),
            NoRevokedCredential(name="assignment_3_credential"),
            WriteOnce(
                name="assignment_4_once",
                fields=["finished_at"],
                message="an assignment ends once",
            ),
            pgtrigger.Protect(name="assignment_5_kept", operation=pgtrigger.Delete),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.branch} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        """Whether the attempt is over; the row never changes its account of it again."""
        return self.state in self.TERMINAL_STATES
