"""The page, the part of it that is asked for again, and its forms. Each form asks one service, then shows the page anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.rates import RateLimited
from base.api.errors import status_of
from base.errors import CodedError
from base.pages import page
from forge.selectors import attempts_of
from openagents_site.fleet_page import actions, selection
from openagents_site.fleet_page.runs import command_of
from openagents_site.fleet_page.text import shown

View = Callable[..., HttpResponse]


def _owner(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _tells_refusals(view: View) -> View:
    """A refusal is the page again, with what was refused in words and what was typed still in its field."""

    @wraps(view)
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except CodedError as refusal:
            typed = {name: request.POST.get(name, "") for name in ("label", "command")}
            values = {"refused": refusal.detail, "typed": typed, "typed_for": kwargs.get("box_id")}
            answer = _fleet(request, values, status=status_of(refusal.code))
            if isinstance(refusal, RateLimited):
                answer["Retry-After"] = str(refusal.retry_after_seconds)
            return answer

    return told


@login_required
@require_safe
def fleet(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return _fleet(request, {})


@login_required
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """What changes from second to second, as the page's script asks for it: without output, which it follows."""
    values = {"live": selection.live(_owner(request), with_output=False), "key": str(uuid4())}
    return page(request, "fleet/live.html", values)


@login_required
@require_safe
def usage(request: HttpRequest) -> HttpResponse:
    """What was spent, as the page's script asks for it."""
    return page(request, "fleet/usage.html", {"usage": selection.usage_of(_owner(request))})


@login_required
@require_POST
@_tells_refusals
def create(request: HttpRequest) -> HttpResponse:
    actions.create(_owner(request), request.POST.get("label", ""), request.POST.get("key", ""))
    return _done(request, "A box was asked for. It is ready in a moment.")


@login_required
@require_POST
@_tells_refusals
def start(request: HttpRequest, box_id: UUID) -> HttpResponse:
    actions.start(_owner(request), box_id, request.POST.get("command", ""), request.POST.get("key", ""))
    return _done(request, "The run was accepted.")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@_tells_refusals
def stop(request: HttpRequest, box_id: UUID) -> HttpResponse:
    """Nothing is stopped by a GET: that asks."""
    if request.method == "POST":
        box = actions.stop(_owner(request), box_id)
        return _done(request, f"{shown(box.label)} is {'stopped' if box.stopped_at else 'being stopped'}.")
    box = actions.box_of(_owner(request), box_id)
    return page(request, "fleet/ask_stop.html", {"box": box, "label": shown(box.label)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@_tells_refusals
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Nothing is cancelled by a GET: that asks."""
    if request.method == "POST":
        run = actions.cancel(_owner(request), run_id)
        return _done(
            request, "The run had ended already." if run.is_terminal else "The run is being cancelled."
        )
    run = actions.run_of(_owner(request), run_id)
    values = {
        "run": run,
        "label": shown(run.conversation_box.label),
        "command": command_of(run, attempts_of([run]).get(run.pk)),
    }
    return page(request, "fleet/ask_cancel.html", values)


def _fleet(request: HttpRequest, values: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    owner = _owner(request)
    shown_now = {
        "live": selection.live(owner, with_output=True),
        "usage": selection.usage_of(owner),
        "key": str(uuid4()),
    }
    return page(request, "fleet/fleet.html", shown_now | dict(values), status=status, scripts=True)


def _done(request: HttpRequest, said: str) -> HttpResponse:
    messages.success(request, said)
    return HttpResponseRedirect(reverse("fleet:fleet"))
