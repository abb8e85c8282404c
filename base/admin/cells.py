"""Values as people read them: money in dollars, times in words, ids short, and links to the pages of rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

SHORT = 60
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def money(microusd: int | None) -> str | None:
    """Micro-US-dollars as dollars: to the cent, and finer where that would be nothing."""
    if microusd is None:
        return None
    dollars = microusd / 1_000_000
    return f"${dollars:,.2f}" if microusd == 0 or abs(dollars) >= 0.1 else f"${dollars:.6f}".rstrip("0")


def span(seconds: float | None) -> str | None:
    """A length of time in its two largest units: `1 h 3 min`."""
    if seconds is None:
        return None
    if 0 < seconds < 1:
        return f"{round(seconds * 1000)} ms"
    left, parts = int(seconds), []
    for size, unit in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """None where one of them is not there yet."""
    return None if start is None or end is None else (end - start).total_seconds()


def age(moment: datetime | None, now: datetime) -> str | None:
    """How long ago, or in how long: `3 min ago`, `in 2 h`."""
    if moment is None:
        return None
    passed = now - moment
    text = span(abs(passed).total_seconds())
    return f"{text} ago" if passed >= timedelta(0) else f"in {text}"


def short(text: Any, longest: int = SHORT) -> str:
    """The first line of a text, cut with an ellipsis."""
    words = str(text or "").split("\n", 1)
    line = words[0]
    cut = len(line) > longest or len(words) > 1
    return f"{line[: longest - 1]}…" if cut else line


def beside(row: Any, state: str) -> str:
    """The state, to be shown beside the row's name; nothing if the name says it."""
    return "" if not state or f"({state})" in str(row) else state


def page_of(model: type[Model], key: Any) -> str | None:
    """The address of a row's staff page; None where there is none."""
    opts = model._meta
    try:
        return reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[quote(key)])
    except NoReverseMatch:
        return None


def link_to(row: Model | None, text: str | None = None) -> str | None:
    """A link to the row's staff page; its text alone where there is none."""
    if row is None:
        return None
    shown, address = text or str(row), page_of(type(row), row.pk)
    if address is None:
        return shown
    return format_html('<a href="{}" class="text-link">{}</a>', address, shown)
