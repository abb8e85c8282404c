"""What the index of the staff site is given to show."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from base.clock import database_now
from boxes.conf import box_api
from openagents_site.dashboard import cards, figures
from openagents_site.dashboard.charts import HEIGHT, WIDTH, charts
from openagents_site.dashboard.health import findings, is_good

PERIODS = (7, 30)
CHARTED = ("boxes.view_box", "runs.view_run")


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The context with the figures that the caller may see."""
    conf, now = box_api(), figures.now()
    health = findings(now, has_key=bool(conf.api_key))
    shown = [card for card in cards.cards(now, conf, database_now()) if _may_see(request, card.model)]
    return context | {
        "cards": shown,
        "health": health,
        "is_well": is_good(health),
        "queues": cards.queue_lines(now.queues or []),
        **_history(request, now),
    }


def period(request: HttpRequest) -> int:
    """How many days are charted: those of `?days=`, if that is one of the choices."""
    asked = request.GET.get("days", "")
    return next((days for days in PERIODS if str(days) == asked), PERIODS[0])


def _history(request: HttpRequest, now: figures.Now) -> dict[str, Any]:
    if not request.user.has_perms(CHARTED):
        return {"charts": None}
    chosen = period(request)
    days = figures.days(chosen, now.spent_today_microusd)
    return {
        "charts": None if days is None else charts(days),
        "days": chosen,
        "periods": PERIODS,
        "width": WIDTH,
        "height": HEIGHT,
    }


def _may_see(request: HttpRequest, model: str) -> bool:
    app, name = model.split(".")
    return request.user.has_perm(f"{app}.view_{name}")
