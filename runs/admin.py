"""Staff pages of the ledger of runs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from base.admin import (
    Action,
    Outcome,
    ReadOnlyAdmin,
    already,
    done,
    link_column,
    relate,
    seconds_between,
    short,
    span,
    state_column,
)
from boxes.models import Box
from conversations.admin import FIND_BY_OWNER, OWNER, owner_link
from conversations.models import Conversation
from runs.models import Run, RunLogChunk
from runs.services import cancel

RUN_COLOURS = {
    "admitted": "info",
    "dispatched": "info",
    "running": "info",
    "completed": "success",
    "failed": "danger",
    "lost": "danger",
    "timed_out": "warning",
}


def cancel_run(run: Run, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    if run.is_terminal:
        return already(f"had ended: {run.state}")
    if run.cancellation_requested_at is not None:
        return already("is being ended")
    asked = cancel(run)
    return already(f"had ended: {asked.state}") if asked.is_terminal else done("is being ended")


CANCEL = Action(
    name="cancel",
    title="Cancel",
    warning="The command and everything that it started on the box are killed. The run ends as cancelled once that is "
    "confirmed; its box stays.",
    permission="cancel_run",
    perform=cancel_run,
    icon="cancel",
    applies=lambda run: not run.is_terminal,
    dangerous=True,
)


MOST_UNKILLED = 1_000


class UnkilledFilter(admin.SimpleListFilter):
    """Runs whose processes are not known to be gone: their boxes take no other run."""

    title, parameter_name = "kill", "kill"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("unconfirmed", "not confirmed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Found first, by the index of the few: of a column that is nearly always null the planner expects a million."""
        if self.value() != "unconfirmed":
            return queryset
        found = Run.objects.filter(kill_confirmed=False).order_by("-admitted_at").values_list("pk", flat=True)
        return queryset.filter(pk__in=list(found[:MOST_UNKILLED]))


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = (
        "shown_command",
        "shown_state",
        "exit",
        "box_link",
        "owner",
        "admitted_at",
        "took",
        "failure_reason",
    )
    list_filter = ("state", UnkilledFilter)
    list_select_related = ("conversation_box", OWNER)
    sortable_by = ("admitted_at",)
    search_fields = ("id", "conversation_box", "conversation_box__box_id", "conversation", FIND_BY_OWNER)
    search_help_text = "Id of the run, its box or conversation, or user name"
    date_hierarchy = "admitted_at"
    staff_actions = (CANCEL,)
    shown_state = state_column("state", RUN_COLOURS)
    box_link = link_column("conversation_box", "box")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "command",
                    ("id", "state"),
                    ("box_link", "owner"),
                    ("failure_reason", "exit"),
                    ("requesting_principal", "idempotency_key"),
                )
            },
        ),
        (
            "Output",
            {
                "fields": (
                    "output",
                    ("log_size", "last_output_offset"),
                    ("output_base_offset", "received_offset", "dropped_bytes"),
                )
            },
        ),
        (
            "Times",
            {
                "fields": (
                    ("admitted_at", "deadline_at"),
                    ("dispatch_attempted_at", "dispatched_at"),
                    ("started_at", "finished_at", "took"),
                    ("cancellation_requested_at", "cancellation_effective_at"),
                )
            },
        ),
        (
            "On its box",
            {
                "fields": (
                    ("run_directory", "pid"),
                    ("probe_attempted_at", "probe_attempts"),
                    ("kill_confirmed", "kill_attempts", "timed_out"),
                    ("next_step_at", "calls_resume_at"),
                    ("step_failures", "dead_sightings", "quiet_polls"),
                    ("lease_owner", "lease_expires_at", "generation"),
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """A list needs no output, which may be long."""
        rows: QuerySet[Run] = super().get_queryset(request)
        return rows.defer("output", "output_state")

    @display(description="command")
    def shown_command(self, run: Run) -> str:
        return short(run.command)

    @display(description="exit")
    def exit(self, run: Run) -> str | None:
        return run.exit_signal or (None if run.exit_status is None else str(run.exit_status))

    @display(description="owner")
    def owner(self, run: Run) -> str | None:
        return owner_link(run.conversation)

    @display(description="took")
    def took(self, run: Run) -> str | None:
        return span(seconds_between(run.started_at or run.admitted_at, run.finished_at))


@admin.register(RunLogChunk)
class RunLogChunkAdmin(ReadOnlyAdmin):
    list_display = ("id", "run_link", "raw_start", "raw_end", "text_bytes", "created_at")
    list_select_related = ("run",)
    ordering = ("-id",)
    search_fields = ("run",)
    search_help_text = "Id of the run"
    fields = ("id", "run_link", "raw_start", "raw_end", "text_bytes", "created_at")
    run_link = link_column("run")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunLogChunk]:
        rows: QuerySet[RunLogChunk] = super().get_queryset(request)
        return rows.defer("data", "pieces", "run__output", "run__output_state")


def _runs(**which: Any) -> QuerySet[Run]:
    return Run.objects.filter(**which).defer("output", "output_state").order_by("-admitted_at")


relate(
    Box, "Runs", lambda box: _runs(conversation_box=box), lambda box: {"conversation_box__id__exact": box.pk}
)
relate(
    Conversation,
    "Runs",
    lambda conversation: _runs(conversation=conversation),
    lambda conversation: {"conversation__id__exact": conversation.pk},
)
relate(Run, "Box", lambda run: Box.objects.filter(pk=run.conversation_box_id))
relate(Run, "Conversation", lambda run: Conversation.objects.filter(pk=run.conversation_id))
