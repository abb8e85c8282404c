"""What the staff pages of every app share: they show, and change only through services."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from base.history import Transition, is_tracked, rows_of, transitions

SHOWN_TRANSITIONS = 50


class ReadOnlyAdmin(ModelAdmin):
    """Rows of a ledger: looked at, searched and filtered, never edited, added or deleted by hand."""

    show_full_result_count = False  # a count of a long history costs more than it tells
    list_per_page = 50

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return [*fields, "transitions"] if obj is not None and is_tracked(self.model) else fields

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """A row with a history shows it below everything else."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or not is_tracked(self.model) or "transitions" in flatten_fieldsets(sets):
            return sets
        return [*sets, (None, {"fields": ("transitions",)})]

    @admin.display(description="What happened")
    def transitions(self, obj: Any) -> SafeString:
        """The newest changes of the row: when, from which state to which, why, by whom, in which request."""
        newest = transitions(rows_of(self.model, obj.pk)[:SHOWN_TRANSITIONS])
        rows = format_html_join("", "<tr>" + "<td>{}</td>" * len(HEADINGS) + "</tr>", map(_cells, newest))
        heading = format_html_join("", "<th>{}</th>", ((text,) for text in HEADINGS))
        return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", heading, rows)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


HEADINGS = ("When", "State", "Reason", "By", "Request")


def _cells(transition: Transition) -> tuple[str, ...]:
    actor = transition.actor
    moved = f"{transition.previous_state} → {transition.state}"
    return (
        f"{transition.at:%Y-%m-%d %H:%M:%S.%f}",
        moved
        if transition.previous_state not in {None, transition.state}
        else transition.state or transition.event,
        transition.reason or "",
        " ".join(part for part in (actor.type, actor.name) if part),
        transition.request_id or "",
    )
