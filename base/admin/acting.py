"""The pages of actions: a confirmation that names what will happen to what, and the messages that say what happened."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.enums import ActionVariant
from unfold.widgets import INPUT_CLASSES, SELECT_CLASSES

from base.admin.actions import MOST_ROWS, Action, Outcome, carry_out, carry_out_on_list, public_id, said
from base.admin.cells import beside, short

CONFIRMED = "confirmed"
FROM_LIST = "action"
FILTERS = "filters"
LEVELS = {
    "done": messages.SUCCESS,
    "already": messages.INFO,
    "refused": messages.WARNING,
    "failed": messages.ERROR,
}
NAMED = 10
"""Rows that one message names; of more it says how many."""


class ActingAdmin(ModelAdmin):
    """Offers `staff_actions` in the list, for several rows, and on a row's page, each behind a page that asks."""

    staff_actions: Sequence[Action] = ()
    list_disable_select_all = True

    # where it is offered

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for action in self._allowed(request):
            if not action.on_list:
                actions[action.name] = (_handler(action), action.name, action.title)
        return actions

    def get_urls(self) -> list[URLPattern]:
        stem = f"{self.opts.app_label}_{self.opts.model_name}"
        wrap = self.admin_site.admin_view
        own = [
            path("do/<slug:name>/", wrap(self.list_action_view), name=f"{stem}_list_action"),
            path("<path:object_id>/do/<slug:name>/", wrap(self.row_action_view), name=f"{stem}_action"),
        ]
        return [*own, *super().get_urls()]

    def offered(self, request: HttpRequest, row: Model) -> list[dict[str, Any]]:
        """The buttons of a row's page."""
        actions = [action for action in self._allowed(request) if not action.on_list and action.applies(row)]
        return [
            self._button(action, self._address("action", public_id(row), action.name)) for action in actions
        ]

    def offered_on_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The buttons above the list."""
        actions = [action for action in self._allowed(request) if action.on_list]
        return [self._button(action, self._address("list_action", action.name)) for action in actions]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response: HttpResponse = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            shown = [*response.context_data.get("actions_list", ()), *self.offered_on_list(request)]
            response.context_data["actions_list"] = shown
        return response

    # what it does

    def row_action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """One row: asked by a GET, done by a POST."""
        action = self._action(request, name, on_list=False)
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return self._asked_or_done(request, action, [row], self._address("change", public_id(row)))

    def list_action_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """No row in particular."""
        action = self._action(request, name, on_list=True)
        back = self._address("changelist")
        form = self._form(action, request)
        if not _is_confirmed(request) or (form is not None and not form.is_valid()):
            return self._question(request, action, [], form, back)
        values = form.cleaned_data if form is not None else {}
        self._tell(request, [(None, carry_out_on_list(action, self.model, request, values))])
        return HttpResponseRedirect(back)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *where: Any, **options: Any
    ) -> HttpResponse | None:
        """What is ticked and is no key of a row is not there, as a row that is gone."""
        ticked = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        data = request.POST.copy()
        data.setlist(helpers.ACTION_CHECKBOX_NAME, [key for key in ticked if self._is_key(key)])
        request.POST = data  # type: ignore[assignment]  # what Django calls immutable is a class of the stubs alone
        response: HttpResponse | None = super().response_action(request, queryset, *where, **options)
        return response

    def _is_key(self, text: str) -> bool:
        try:
            self.opts.pk.to_python(text)
        except (ValidationError, ValueError):
            return False
        return "\0" not in text and not (text.isdigit() and len(text) > 18)

    def act_on_selected(self, request: HttpRequest, action: Action, rows: QuerySet[Any]) -> HttpResponse:
        """Those ticked in the list. Once asked about they stay those, whatever the list is filtered by."""
        filters = request.POST.get(FILTERS) or request.GET.urlencode()
        back = f"{self._address('changelist')}?{filters}" if filters else self._address("changelist")
        selected = list(rows[: MOST_ROWS + 1])
        if len(selected) > MOST_ROWS:
            messages.error(request, f"At most {MOST_ROWS} rows at once. Nothing was done.")
            return HttpResponseRedirect(back)
        if missing := len(set(request.POST.getlist(helpers.ACTION_CHECKBOX_NAME))) - len(selected):
            messages.warning(
                request,
                f"{missing} of the selected rows {'is' if missing == 1 else 'are'} not there any more.",
            )
        if not selected:
            return HttpResponseRedirect(back)
        return self._asked_or_done(request, action, selected, back)

    def _asked_or_done(
        self, request: HttpRequest, action: Action, rows: list[Any], back: str
    ) -> HttpResponse:
        form = self._form(action, request)
        if not _is_confirmed(request) or (form is not None and not form.is_valid()):
            return self._question(request, action, rows, form, back)
        values = form.cleaned_data if form is not None else {}
        self._tell(request, carry_out(action, rows, request, values))
        return HttpResponseRedirect(back)

    def _question(
        self, request: HttpRequest, action: Action, rows: list[Any], form: Form | None, back: str
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": action.title,
            "action": action,
            "rows": [(public_id(row), str(row), beside(row, self.describe(row))) for row in rows],
            "opts": self.opts,
            "form": form,
            "back": back,
            "target": self._address("changelist") if FROM_LIST in request.POST else request.path,
            "from_list": FROM_LIST in request.POST,
            "filters": request.POST.get(FILTERS) or request.GET.urlencode(),
            "checkbox": helpers.ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "staff/confirm.html", context)

    def describe(self, row: Any) -> str:
        """What a confirmation says of a row beside its name."""
        state = next((name for name in ("state", "status") if hasattr(row, name)), None)
        return str(getattr(row, state)) if state else ""

    def _form(self, action: Action, request: HttpRequest) -> Form | None:
        if action.form is None:
            return None
        form = action.form(request.POST if _is_confirmed(request) else None)
        for shown in form.fields.values():
            classes = SELECT_CLASSES if hasattr(shown, "choices") else INPUT_CLASSES
            shown.widget.attrs.setdefault("class", " ".join(classes))
        return form

    def _tell(self, request: HttpRequest, outcomes: Sequence[tuple[Model | None, Outcome]]) -> None:
        """One message for all rows of which the same is to be said."""
        groups: dict[Outcome, list[str]] = defaultdict(list)
        for row, outcome in outcomes:
            groups[outcome].append("" if row is None else short(row))
        for outcome, names in groups.items():
            shown = ", ".join(name for name in names[:NAMED] if name)
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            text = f"{shown}{more}: {said(outcome)}" if shown else said(outcome)
            self.message_user(request, text, LEVELS[outcome.kind])

    def _action(self, request: HttpRequest, name: str, *, on_list: bool) -> Action:
        found = [action for action in self.staff_actions if action.name == name and action.on_list == on_list]
        if not found:
            raise Http404
        if not found[0].may(request, self.model):
            raise PermissionDenied
        return found[0]

    def _allowed(self, request: HttpRequest) -> list[Action]:
        return [action for action in self.staff_actions if action.may(request, self.model)]

    def _address(self, page: str, *args: Any) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=args)

    def _button(self, action: Action, address: str) -> dict[str, Any]:
        variant = ActionVariant.DANGER if action.dangerous else ActionVariant.DEFAULT
        return {
            "title": action.title,
            "icon": action.icon,
            "variant": variant,
            "attrs": {},
            "dialog": None,
            "path": address,
        }


def _is_confirmed(request: HttpRequest) -> bool:
    return request.method == "POST" and CONFIRMED in request.POST


def _handler(action: Action) -> Callable[[ActingAdmin, HttpRequest, QuerySet[Any]], HttpResponse]:
    def handle(page: ActingAdmin, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse:
        return page.act_on_selected(request, action, rows)

    return handle
