"""Staff pages of incidents."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from base.admin import Action, Outcome, ReadOnlyAdmin, already, done, link_column, relate, state_column
from conversations.models import Conversation
from work import incidents
from work.models import Incident, Job
from work.states import IncidentStatus

SEVERITY_COLOURS = {"degraded": "warning", "anomalous": "danger"}
STATUS_COLOURS = {"open": "danger", "triaged": "warning", "fixing": "info", "resolved": "success"}
CLOSED = (IncidentStatus.RESOLVED, IncidentStatus.WONT_FIX)


class CloseForm(forms.Form):
    """What became of it."""

    status = forms.ChoiceField(
        label="What became of it", choices=[(status.value, status.label) for status in CLOSED]
    )
    receipt_ref = forms.CharField(
        label="By what", required=False, max_length=256, help_text="For example the change that mended it."
    )


def close(incident: Incident, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    if incident.status == values["status"]:
        return already(f"was {incident.status}")
    receipt = values["receipt_ref"]
    changed = (
        incidents.change(incident, status=values["status"], receipt_ref=receipt)
        if receipt
        else incidents.change(incident, status=values["status"])
    )
    return done(f"is {changed.status}")


CLOSE = Action(
    name="close",
    title="Close",
    warning="The incident is closed; the next one with its code is an incident of its own.",
    permission="close_incident",
    perform=close,
    icon="task_alt",
    form=CloseForm,
    applies=lambda incident: incident.status not in CLOSED,
)


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = ("code", "shown_severity", "shown_status", "summary", "origin", "user", "created_at")
    list_filter = ("status", "severity")
    list_select_related = ("owner_user",)
    sortable_by = ("created_at",)
    search_fields = ("id", "code", "correlation_ref", "conversation", "owner_user__username")
    search_help_text = "Id, code, correlation, conversation or user name"
    date_hierarchy = "created_at"
    staff_actions = (CLOSE,)
    shown_severity = state_column("severity", SEVERITY_COLOURS)
    shown_status = state_column("status", STATUS_COLOURS)
    user = link_column("owner_user", "owner")


def _incidents(**which: Any) -> QuerySet[Incident]:
    return Incident.objects.filter(**which).order_by("-created_at")


relate(Job, "Incidents", lambda job: _incidents(correlation_ref=str(job.pk)))
relate(Incident, "Conversation", lambda row: Conversation.objects.filter(pk=row.conversation_id))
relate(Incident, "Mended by", lambda row: Job.objects.filter(pk=row.fixer_job_id))
