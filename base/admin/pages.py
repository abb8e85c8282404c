"""The staff page of a table."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from base.admin.acting import ActingAdmin
from base.admin.paging import BoundedPaginator, StaffChangeList
from base.admin.permissions import NothingByHand
from base.admin.related import related_to
from base.admin.searching import search
from base.history import Transition, is_tracked, rows_of, transitions

SHOWN_TRANSITIONS = 50
PLAIN = (models.BooleanField, models.DateField, models.IntegerField, models.FloatField, models.UUIDField)
"""Kinds of columns that hold no secret. Any other may be guessed letter by letter by whoever may filter by it."""


class StaffAdmin(ActingAdmin):
    """Fast however long the table is; a row's page shows what belongs to it and what happened to it."""

    show_full_result_count = False
    list_per_page = 50
    paginator: Any = BoundedPaginator
    sortable_by: Any = ()  # by other than the page's own order only where an index serves it
    search_exactly = True
    change_list_template: Any = "staff/change_list.html"
    change_form_outer_after_template = "staff/row.html"
    list_filter_submit = False
    compressed_fields = True

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[StaffChangeList]:
        return StaffChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By exact values and prefixes, each from an index; by parts of texts only where `search_exactly` is off."""
        if not self.search_exactly:
            found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
            return found
        return search(queryset, self.search_fields, search_term), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """None for what is no id as for what is not there."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """A list is filtered by no text that its pages keep to themselves: its rows would tell it, a letter at a time."""
        if self._keeps_back(lookup.partition("__")[0], request):
            return False
        return bool(super().lookup_allowed(lookup, value, request))

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Nor does a list name its rows by such a text."""
        return not self._keeps_back(to_field, request) and bool(super().to_field_allowed(request, to_field))

    def _keeps_back(self, name: str, request: HttpRequest) -> bool:
        try:
            field = self.opts.pk if name == "pk" else self.opts.get_field(name)
        except FieldDoesNotExist:
            return False
        told = field.related_model._meta.pk if field.is_relation else field
        if told.is_relation or isinstance(told, PLAIN):
            return False
        page = flatten_fieldsets(self.fieldsets or self.get_fieldsets(request))
        return field.name not in {*page, *self.get_list_display(request)}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        if obj is not None:
            context["related_rows"] = related_to(obj, request)
            context["happened"] = self.happened(obj)
            context["actions_detail"] = [*context.get("actions_detail", ()), *self.offered(request, obj)]
        response: HttpResponse = super().render_change_form(request, context, *args, obj=obj, **kwargs)
        return response

    def happened(self, row: Any) -> list[Transition] | None:
        """The newest changes of the row, newest first; None for a table without history."""
        if not is_tracked(self.model):
            return None
        return transitions(rows_of(self.model, row.pk)[:SHOWN_TRANSITIONS])


class ReadOnlyAdmin(NothingByHand, StaffAdmin):
    """Rows of a ledger: looked at, searched and filtered, and changed by actions alone."""
