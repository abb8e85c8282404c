"""The staff page of a table."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from base.admin.acting import ActingAdmin
from base.admin.paging import BoundedPaginator, StaffChangeList
from base.admin.related import related_to
from base.admin.searching import search
from base.history import Transition, is_tracked, rows_of, transitions

SHOWN_TRANSITIONS = 50


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


class ReadOnlyAdmin(StaffAdmin):
    """Rows of a ledger: looked at, searched and filtered, and changed by actions alone."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
