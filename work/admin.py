"""Staff pages of jobs, steps, machines, pairings and incidents. Digests of tokens and raw probes are never shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import TabularInline

from base.admin import ReadOnlyAdmin
from work.machines.staff import MachineAdmin, MachinePairingAdmin
from work.models import Incident, Job, JobStep
from work.services import cancel_job


class JobStepInline(TabularInline):
    model = JobStep
    fields = ("sequence", "tool_name", "arguments", "status", "error", "requested_at", "completed_at")
    readonly_fields = fields
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "kind",
        "short_goal",
        "status",
        "error_code",
        "tool_call_count",
        "created_at",
        "completed_at",
    )
    inlines = (JobStepInline,)
    actions = ("cancel",)

    @admin.display(description="goal")
    def short_goal(self, job: Job) -> str:
        return job.goal if len(job.goal) <= 80 else f"{job.goal[:79]}…"

    @admin.action(description="Ask for the end of the selected jobs", permissions=["view"])
    def cancel(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        asked = [cancel_job(job_id) for job_id in jobs.values_list("pk", flat=True)]
        ended = sum(job.is_terminal for job in asked)
        self.message_user(request, f"{ended} have ended, {len(asked) - ended} are stopping.")

    list_filter = ("status", "kind", "surface")
    list_select_related = ("conversation",)
    search_fields = ("id", "conversation__id", "owner_visitor__user__username")
    date_hierarchy = "created_at"


@admin.register(JobStep)
class JobStepAdmin(ReadOnlyAdmin):
    list_display = ("work_job_id", "sequence", "tool_name", "status", "requested_at", "completed_at")
    list_filter = ("status", "tool_name")
    search_fields = ("work_job__id", "provider_call_id")


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "severity", "code", "surface", "origin", "summary", "owner_user", "status")
    list_filter = ("severity", "status", "surface", "origin")
    list_select_related = ("owner_user",)
    search_fields = ("id", "code", "correlation_ref", "owner_user__username")
    date_hierarchy = "created_at"


__all__ = ["IncidentAdmin", "JobAdmin", "JobStepAdmin", "MachineAdmin", "MachinePairingAdmin"]
