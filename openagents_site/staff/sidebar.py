"""The sidebar of the staff site, grouped by what people look for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

Item = dict[str, Any]

# Group -> (model, icon, and a title where the model's own name says too little)
Entry = tuple[str, str, str]
GROUPS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Boxes and runs",
        (
            ("boxes.Box", "deployed_code", ""),
            ("runs.Run", "terminal", ""),
            ("boxes.FanoutRequest", "account_tree", "Plans"),
        ),
    ),
    (
        "To look after",
        (
            ("boxes.ReconciliationEvent", "radar", "Leaks and sightings"),
            ("work.Incident", "report", ""),
        ),
    ),
    (
        "Agents",
        (
            ("work.Job", "smart_toy", ""),
            ("work.JobStep", "footprint", ""),
            ("work.Delegation", "forward_to_inbox", ""),
            ("work.Machine", "computer", ""),
            ("work.MachinePairing", "link", ""),
        ),
    ),
    (
        "Forge",
        (
            ("forge.Repository", "source", ""),
            ("forge.Issue", "adjust", ""),
            ("forge.Assignment", "assignment", ""),
            ("forge.Push", "publish", ""),
        ),
    ),
    (
        "People",
        (
            ("accounts.User", "person", ""),
            ("auth.Group", "groups", "Roles"),
            ("accounts.ApiToken", "token", ""),
            ("conversations.Conversation", "forum", ""),
            ("conversations.Message", "chat", ""),
            ("admin.LogEntry", "history", "What staff did"),
        ),
    ),
    (
        "The installation",
        (
            ("boxes.ScheduleSlot", "update", ""),
            ("boxes.ProcessHeartbeat", "monitor_heart", ""),
            ("boxes.WebhookDelivery", "webhook", ""),
            ("webhooks.Subscription", "notifications", "Outbound webhooks"),
            ("webhooks.Delivery", "outgoing_mail", "Their deliveries"),
            ("webhooks.Event", "campaign", "Their events"),
            ("django_q.Schedule", "event_repeat", ""),
            ("django_q.OrmQ", "hourglass_top", ""),
            ("django_q.Failure", "error", ""),
        ),
    ),
)
OTHER = "Other tables"


def navigation(request: HttpRequest) -> list[Item]:
    """Every list that the caller may see, in groups. A list that no group names is under the last, which is
    folded away, so none is out of reach."""
    overview = {"title": "Overview", "icon": "dashboard", "link": reverse("admin:index")}
    fleet = {"title": "My fleet", "icon": "directions_boat", "link": reverse("fleet:fleet")}
    named = [(title, [_named(*entry) for entry in entries]) for title, entries in GROUPS]
    known = {model for _, entries in named for model, _ in entries}
    rest = [(model, _item(model, "table", "")) for model in admin.site._registry if model not in known]
    groups = [(title, list(_allowed(request, entries))) for title, entries in [*named, (OTHER, rest)]]
    shown = [
        {"title": title, "items": items, "collapsible": title == OTHER} for title, items in groups if items
    ]
    return [{"items": [overview, fleet]}, *shown]


def _named(label: str, icon: str, title: str) -> tuple[type[Model], Item]:
    model = apps.get_model(label)
    return model, _item(model, icon, title)


def _item(model: type[Model], icon: str, title: str) -> Item:
    name = str(model._meta.verbose_name_plural)
    return {"title": title or name[:1].upper() + name[1:], "icon": icon}


def _allowed(request: HttpRequest, entries: list[tuple[type[Model], Item]]) -> Iterator[Item]:
    for model, item in entries:
        staff_page = admin.site._registry.get(model)
        if staff_page is not None and staff_page.has_view_or_change_permission(request):
            opts = model._meta
            yield {**item, "link": reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")}
