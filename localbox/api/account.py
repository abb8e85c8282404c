"""The one account of this server: who it is, and what it may still start."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from .. import states
from ..settings import Settings
from ..sizes import SECONDS_PER_DOLLAR
from ..store import boxes, starts
from .calls import Answer
from .handlers import Call, Endpoint

LOGIN = "localbox"


async def me(call: Call) -> Answer:
    user = {"login": LOGIN, "email": None, "zeroDataRetention": False, "zeroDataRetentionEnabledAt": None}
    return Answer(200, "user.info", {"user": user})


async def limits(call: Call) -> Answer:
    rows, settings, now = call.provider.database.reader, call.provider.settings, time.time()
    used = {window.name: _window(rows, window, now) for window in starts.windows(settings)}
    active = boxes.count_active(rows)
    blocked = _blocked_reason(active, settings, used, closing=call.provider.lifecycle.closing)
    fields = {
        "canStart": blocked is None,
        "startBlockedReason": blocked,
        "blockedReason": None,
        "accessTier": "self_hosted",
        "billingStatus": "active",
        "activeBoxes": active,
        "maxActiveBoxes": settings.max_active_boxes,
        "activeStates": list(states.ACTIVE),
        "startLimits": _start_limits(settings) if used else None,
        "starts": {"unlimited": not used, **{name: used.get(name) for name in ("minute", "hour", "day")}},
        "creditSecondsPerDollar": SECONDS_PER_DOLLAR,
        "creditBalanceSeconds": None,
    }
    return Answer(200, "limits.info", fields)


def _window(rows: sqlite3.Connection, window: starts.Window, now: float) -> dict[str, int]:
    used = starts.used(rows, window, now)
    return {"limit": window.limit, "used": used, "remaining": max(0, window.limit - used)}


def _start_limits(settings: Settings) -> dict[str, int | None]:
    return {
        "perMinute": settings.starts_per_minute,
        "perHour": settings.starts_per_hour,
        "perDay": settings.starts_per_day,
    }


def _blocked_reason(active: int, settings: Settings, used: dict[str, Any], *, closing: bool) -> str | None:
    if closing:
        return "shutting_down"
    if active >= settings.max_active_boxes:
        return "limit_reached"
    return "rate_limited" if any(window["remaining"] == 0 for window in used.values()) else None


ENDPOINTS = (Endpoint("GET", "/me", me), Endpoint("GET", "/limits", limits))
