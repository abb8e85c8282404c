"""The ledger row of one detached command."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pghistory
import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from base.guards import Frozen, Immutable, Moves, WriteOnce
from base.leases import Leased
from base.sql import OctetLength
from boxes.models import Box
from conversations.models import Conversation
from runs.states import ACTIVE, MOVES, TERMINAL, RunState

LONGEST_COMMAND_BYTES = 8000
LONGEST_KEY_BYTES = 256
SETTLED = ["state", "exit_status", "exit_signal", "timed_out", "failure_reason", "output", "output_base_offset",
           "last_output_offset", "received_offset", "dropped_bytes", "pid", "dispatch_attempted_at", "probe_attempted_at",
           "dispatched_at", "started_at", "finished_at", "cancellation_requested_at", "cancellation_effective_at"]  # fmt: skip
TRACKED = ["state", "exit_status", "exit_signal", "failure_reason", "kill_confirmed", "cancellation_requested_at",
           "finished_at", "generation"]  # fmt: skip
WATCHED = [field for field in TRACKED if field != "generation"]


@pghistory.track(
    pghistory.InsertEvent(level=pgtrigger.Statement),
    pghistory.UpdateEvent(level=pgtrigger.Statement, condition=pgtrigger.AnyChange(*WATCHED)),
    fields=TRACKED,
    model_name="RunHistory",
    obj_field=pghistory.ObjForeignKey(related_name="history"),
    meta={"db_table": "box_runs_history"},
)
class Run(Leased):
    """One command on one box, from its admission to one honest end."""

    TERMINAL_STATES: ClassVar[tuple[str, ...]] = tuple(state.value for state in TERMINAL)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="runs")
    conversation_box = models.ForeignKey(Box, on_delete=models.PROTECT, related_name="runs")
    requesting_principal = models.JSONField(help_text="type (user, agent or assignment) and id")
    command = models.TextField()
    idempotency_key = models.CharField(max_length=LONGEST_KEY_BYTES)
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.ADMITTED)
    failure_reason = models.CharField(max_length=128, null=True, blank=True)

    exit_status = models.IntegerField(null=True, blank=True)
    exit_signal = models.CharField(
        max_length=16, null=True, blank=True, help_text="name of the signal it died by"
    )
    timed_out = models.BooleanField(default=False)
    kill_confirmed = models.BooleanField(
        null=True,
        blank=True,
        help_text="whether its processes are known to be gone; null where no kill was sent",
    )

    run_directory = models.CharField(max_length=500)
    pid = models.IntegerField(
        null=True, blank=True, help_text="leader of its process group, as the box sees it"
    )

    output = models.TextField(blank=True, default="", help_text="redacted tail, at most 24,576 bytes")
    output_base_offset = models.BigIntegerField(default=0, help_text="raw log offset where the tail begins")
    last_output_offset = models.BigIntegerField(
        default=0, help_text="raw log offset up to which it can be read"
    )
    received_offset = models.BigIntegerField(
        default=0,
        help_text="raw log bytes received; what could still become a secret is held back from readers",
    )
    output_state = models.JSONField(null=True, blank=True, editable=False)
    log_size = models.BigIntegerField(default=0, help_text="raw log bytes on the box when last seen")
    dropped_bytes = models.BigIntegerField(default=0, help_text="raw log bytes that are not in the kept log")

    admitted_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    dispatch_attempted_at = models.DateTimeField(null=True, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    probe_attempted_at = models.DateTimeField(null=True, blank=True)
    probe_attempts = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    cancellation_requested_at = models.DateTimeField(null=True, blank=True)
    cancellation_effective_at = models.DateTimeField(null=True, blank=True)

    next_step_at = models.DateTimeField(
        null=True,
        blank=True,
        db_default=Now(),
        help_text="when the worker looks at it next; null: never again",
    )
    calls_resume_at = models.DateTimeField(
        null=True, blank=True, help_text="the provider asked not to be called for it before"
    )
    step_failures = models.PositiveIntegerField(default=0, help_text="steps in a row without a usable answer")
    dead_sightings = models.PositiveIntegerField(
        default=0, help_text="polls in a row: no process, no exit status"
    )
    kill_attempts = models.PositiveIntegerField(default=0)
    quiet_polls = models.PositiveIntegerField(default=0, help_text="polls in a row without news")

    class Meta:
        db_table = "box_runs"
        ordering = ["-admitted_at", "-id"]
        permissions = [("cancel_run", "Can cancel run")]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation_box"],
                condition=Q(state__in=[state.value for state in ACTIVE]),
                name="box_runs_one_active_per_box_index",
                violation_error_message="has already been taken",
                violation_error_code="unique",
            ),
            models.UniqueConstraint(
                fields=["conversation", "idempotency_key"], name="box_runs_conversation_key_index"
            ),
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="box_runs_state_check"),
            models.CheckConstraint(
                condition=Q(output_base_offset__gte=0)
                & GreaterThanOrEqual(F("last_output_offset"), F("output_base_offset"))
                & Q(dropped_bytes__gte=0),
                name="box_runs_offsets_check",
            ),
            models.CheckConstraint(
                condition=GreaterThanOrEqual(OctetLength("command"), 1)
                & LessThanOrEqual(OctetLength("command"), LONGEST_COMMAND_BYTES),
                name="box_runs_command_check",
            ),
            models.CheckConstraint(
                condition=GreaterThanOrEqual(OctetLength("idempotency_key"), 1)
                & LessThanOrEqual(OctetLength("idempotency_key"), LONGEST_KEY_BYTES),
                name="box_runs_idempotency_key_check",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_step_at"], condition=Q(next_step_at__isnull=False), name="box_runs_due_index"
            ),
            models.Index(
                fields=["lease_owner"], condition=Q(lease_owner__isnull=False), name="box_runs_leased_index"
            ),
            models.Index(fields=["conversation_box", "-admitted_at"], name="box_runs_box_index"),
            models.Index(fields=["conversation", "-admitted_at", "-id"], name="box_runs_list_index"),
            models.Index(
                fields=["conversation_box"],
                condition=Q(kill_confirmed=False),
                name="box_runs_unkilled_index",
            ),
            models.Index(fields=["-admitted_at"], name="box_runs_newest_index"),
            models.Index(  # in the order of lists: of a column that is nearly always null the planner expects too much
                fields=["-admitted_at"],
                condition=Q(kill_confirmed=False),
                name="box_runs_unkilled_list_index",
            ),
            models.Index(
                fields=["state", "-admitted_at"],
                condition=Q(state__in=[state.value for state in TERMINAL]),
                name="box_runs_ended_index",
            ),
        ]
        triggers = [
            Immutable(
                name="run_1_identity",
                fields=[
                    "conversation",
                    "conversation_box",
                    "requesting_principal",
                    "command",
                    "idempotency_key",
                    "run_directory",
                    "admitted_at",
                ],
                message="run identity is immutable",
            ),
            Frozen(
                name="run_2_terminal",
                field="state",
                states=[state.value for state in TERMINAL],
                fields=SETTLED,
                message="terminal run is immutable",
            ),
            Moves(name="run_3_moves", field="state", moves=MOVES, message="invalid {old} run transition"),
            WriteOnce(
                name="run_4_once",
                fields=["cancellation_requested_at", "dispatched_at", "started_at"],
                message="run identity is immutable",
            ),
            pgtrigger.Trigger(
                name="run_5_kill",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(
                    old__kill_confirmed=True, new__kill_confirmed__df=pgtrigger.F("old__kill_confirmed")
                ),
                func="raise exception 'a confirmed kill stays confirmed';",
            ),
            pgtrigger.Protect(name="run_6_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.command[:40]} ({self.state})"

    @property
    def next_raw_offset(self) -> int:
        """Where the next piece of its log begins, in raw bytes."""
        return max(self.received_offset, self.last_output_offset)

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended; the row never changes its account of it again."""
        return self.state in self.TERMINAL_STATES
