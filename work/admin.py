"""Staff pages of jobs, steps and what goes to and fro with machines. Digests, bodies of frames and probes are never shown."""

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
    ReadOnlyInline,
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
from conversations.models import Conversation, Message
from work.incidents_staff import IncidentAdmin
from work.machines.staff import MachineAdmin, MachinePairingAdmin
from work.models import (
    Delegation,
    Job,
    JobBox,
    JobStep,
    Machine,
    MachineChannel,
    MachineFrame,
    MachineRequest,
)
from work.services import cancel_job

JOB_COLOURS = {
    "queued": "info",
    "running": "info",
    "completed": "success",
    "failed": "danger",
    "interrupted": "danger",
    "budget_exhausted": "warning",
}
STEP_COLOURS = {
    "requested": "info",
    "running": "info",
    "succeeded": "success",
    "failed": "danger",
    "interrupted": "danger",
    "refused": "warning",
    "unavailable": "warning",
}


def cancel(job: Job, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    if job.is_terminal:
        return already(f"had ended: {job.status}")
    if job.cancel_requested_at is not None:
        return already("is stopping")
    return done("has ended") if cancel_job(job.pk).is_terminal else done("is stopping")


CANCEL = Action(
    name="cancel",
    title="Cancel",
    warning="The job ends with what it has found so far as its report. What it runs on boxes or on a computer is ended, "
    "too.",
    permission="cancel_job",
    perform=cancel,
    icon="cancel",
    applies=lambda job: not job.is_terminal,
    dangerous=True,
)


class JobStepInline(ReadOnlyInline):
    model = JobStep
    fields = ("sequence", "tool_name", "arguments", "status", "error", "requested_at", "completed_at")


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = (
        "short_goal",
        "kind",
        "shown_status",
        "error_code",
        "owner",
        "tool_call_count",
        "created_at",
        "took",
    )
    list_filter = ("status", "kind")
    list_select_related = (OWNER,)
    sortable_by = ("created_at",)
    search_fields = ("id", "conversation", "machine", FIND_BY_OWNER)
    search_help_text = "Id of the job, its conversation or machine, or user name"
    date_hierarchy = "created_at"
    staff_actions = (CANCEL,)
    inlines = (JobStepInline,)
    shown_status = state_column("status", JOB_COLOURS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """A list needs no report, which may be long."""
        rows: QuerySet[Job] = super().get_queryset(request)
        return rows.defer("report", "delegation", "authority_snapshot")

    @display(description="goal")
    def short_goal(self, job: Job) -> str:
        return short(job.goal, 80)

    @display(description="owner")
    def owner(self, job: Job) -> str | None:
        return owner_link(job.conversation)

    @display(description="took")
    def took(self, job: Job) -> str | None:
        return span(seconds_between(job.started_at or job.created_at, job.completed_at))


@admin.register(JobStep)
class JobStepAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "job", "shown_status", "requested_at", "took")
    list_filter = ("status",)
    list_select_related = ("work_job",)
    ordering = ("-requested_at",)
    search_fields = ("id", "work_job")
    search_help_text = "Id of the step or of its job"
    date_hierarchy = "requested_at"
    shown_status = state_column("status", STEP_COLOURS)
    job = link_column("work_job", "job")

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobStep]:
        rows: QuerySet[JobStep] = super().get_queryset(request)
        return rows.defer("result", "arguments", "work_job__report")

    @display(description="took")
    def took(self, step: JobStep) -> str | None:
        return span(seconds_between(step.started_at or step.requested_at, step.completed_at))


@admin.register(JobBox)
class JobBoxAdmin(ReadOnlyAdmin):
    list_display = ("id", "job_link", "box_link", "created_at")
    list_select_related = ("job", "box")
    ordering = ("-id",)
    search_fields = ("job", "box")
    search_help_text = "Id of the job or of the box"
    fields = ("id", "job_link", "box_link", "created_at")
    job_link = link_column("job")
    box_link = link_column("box")


@admin.register(Delegation)
class DelegationAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "job_link",
        "machine_link",
        "model",
        "offered_at",
        "accepted_at",
        "closed_at",
        "tool_calls",
    )
    list_select_related = ("job", "machine")
    ordering = ("-offered_at",)
    search_fields = ("job", "machine")
    search_help_text = "Id of the job or of the machine"
    date_hierarchy = "offered_at"
    job_link = link_column("job")
    machine_link = link_column("machine")


@admin.register(MachineChannel)
class MachineChannelAdmin(ReadOnlyAdmin):
    list_display = ("machine_link", "epoch", "received_seq", "sent_seq", "connected_at", "closed_at")
    list_select_related = ("machine",)
    search_fields = ("machine",)
    search_help_text = "Id of the machine"
    machine_link = link_column("machine")


@admin.register(MachineFrame)
class MachineFrameAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "machine_link", "seq", "created_at")
    list_select_related = ("machine",)
    ordering = ("-id",)
    search_fields = ("machine",)
    search_help_text = "Id of the machine"
    fields = ("id", "kind", "machine", "seq", "created_at")
    machine_link = link_column("machine")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MachineFrame]:
        """A frame may hold a credential that is on its way."""
        rows: QuerySet[MachineFrame] = super().get_queryset(request)
        return rows.defer("body")


@admin.register(MachineRequest)
class MachineRequestAdmin(ReadOnlyAdmin):
    list_display = ("kind", "machine_link", "created_at", "answered_at")
    list_select_related = ("machine",)
    search_fields = ("id", "machine")
    search_help_text = "Id of the request or of the machine"
    fields = ("id", "kind", "machine", "created_at", "answered_at")
    machine_link = link_column("machine")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MachineRequest]:
        rows: QuerySet[MachineRequest] = super().get_queryset(request)
        return rows.defer("answer")


def _jobs(**which: Any) -> QuerySet[Job]:
    return Job.objects.filter(**which).defer("report").order_by("-created_at")


relate(
    Conversation,
    "Jobs",
    lambda conversation: _jobs(conversation=conversation),
    lambda conversation: {"conversation__id__exact": conversation.pk},
)
relate(Box, "Made by the job", lambda box: _jobs(pk__in=JobBox.objects.filter(box=box).values("job")))
relate(Job, "Conversation", lambda job: Conversation.objects.filter(pk=job.conversation_id))
relate(
    Job,
    "Boxes it made",
    lambda job: Box.objects.filter(pk__in=JobBox.objects.filter(job=job).values("box")).order_by(
        "-created_at"
    ),
)
relate(Job, "Machine", lambda job: Machine.objects.filter(pk=job.machine_id))
relate(Job, "On its machine", lambda job: Delegation.objects.filter(job=job))
relate(Message, "Job", lambda message: _jobs(pk=message.work_job_id))
relate(Message, "Conversation", lambda message: Conversation.objects.filter(pk=message.conversation_id))
relate(
    Machine,
    "Jobs",
    lambda machine: _jobs(machine=machine),
    lambda machine: {"machine__id__exact": machine.pk},
)

__all__ = ["IncidentAdmin", "JobAdmin", "JobStepAdmin", "MachineAdmin", "MachinePairingAdmin"]
