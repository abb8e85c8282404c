"""Staff pages of the ledger of runs."""

from __future__ import annotations

from django.contrib import admin

from base.admin import ReadOnlyAdmin
from runs.models import Run


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "conversation_box",
        "command",
        "state",
        "exit_status",
        "failure_reason",
        "admitted_at",
        "finished_at",
        "kill_confirmed",
    )
    list_filter = ("state", "timed_out", "kill_confirmed")
    list_select_related = ("conversation_box",)
    search_fields = ("id", "conversation_box__box_id", "conversation_box__label", "idempotency_key")
    date_hierarchy = "admitted_at"
    exclude = ("output_state",)
