"""Staff pages of jobs, steps, machines, pairings and incidents. Digests of tokens and raw probes are never shown."""

from __future__ import annotations

from django.contrib import admin

from base.admin import ReadOnlyAdmin
from work.models import Incident, Job, JobStep, Machine, MachinePairing


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "goal", "status", "error_code", "created_at", "completed_at")
    list_filter = ("status", "kind", "surface")
    list_select_related = ("conversation",)
    search_fields = ("id", "conversation__id", "owner_visitor__user__username")
    date_hierarchy = "created_at"


@admin.register(JobStep)
class JobStepAdmin(ReadOnlyAdmin):
    list_display = ("work_job_id", "sequence", "tool_name", "status", "requested_at", "completed_at")
    list_filter = ("status", "tool_name")
    search_fields = ("work_job__id", "provider_call_id")


@admin.register(Machine)
class MachineAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "tier", "platform", "status", "last_seen_at", "token_expires_at")
    list_filter = ("status", "tier")
    list_select_related = ("user",)
    search_fields = ("id", "name", "user__username")
    exclude = ("token_digest", "last_probe")


@admin.register(MachinePairing)
class MachinePairingAdmin(ReadOnlyAdmin):
    list_display = ("name", "tier", "status", "machine", "created_at", "expires_at")
    list_filter = ("status", "tier")
    list_select_related = ("machine",)
    search_fields = ("id", "name")
    exclude = ("code_digest", "poll_secret_digest", "sealed_token")


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "severity", "code", "surface", "origin", "summary", "owner_user", "status")
    list_filter = ("severity", "status", "surface", "origin")
    list_select_related = ("owner_user",)
    search_fields = ("id", "code", "correlation_ref", "owner_user__username")
    date_hierarchy = "created_at"
