"""What belongs to a row, for its page: each app says what it adds to the rows of the apps below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from base.admin.cells import beside, page_of, short

SHOWN = 5
STATES = ("state", "status", "resolution")


@dataclass(frozen=True)
class Relation:
    """`rows(row)` are the rows that belong to it, newest first; `filters(row)` finds the same in their own list."""

    title: str
    rows: Callable[[Any], QuerySet[Any]]
    filters: Callable[[Any], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Entry:
    address: str | None
    text: str
    state: str


@dataclass(frozen=True)
class Related:
    """What the page shows of one relation; `all` is the address of the list of all, where there are more."""

    title: str
    entries: list[Entry]
    all: str | None


_RELATIONS: dict[type[Model], list[Relation]] = {}


def relate(
    model: type[Model],
    title: str,
    rows: Callable[[Any], QuerySet[Any]],
    filters: Callable[[Any], Mapping[str, Any]] | None = None,
) -> None:
    """Show these rows on the pages of `model`. Shown in the order in which they were named."""
    _RELATIONS.setdefault(model, []).append(Relation(title, rows, filters))


def related_to(row: Model, request: HttpRequest) -> list[Related]:
    """What belongs to the row and may be seen by the caller. One query a relation."""
    found = (_looked_up(relation, row, request) for relation in _RELATIONS.get(type(row), ()))
    return [related for related in found if related is not None]


def _looked_up(relation: Relation, row: Model, request: HttpRequest) -> Related | None:
    rows = relation.rows(row)
    opts = rows.model._meta
    if not request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}"):
        return None
    first = list(rows[: SHOWN + 1])
    if not first:
        return None
    entries = [
        Entry(page_of(type(item), item.pk), short(item), beside(item, _state(item))) for item in first[:SHOWN]
    ]
    return Related(relation.title, entries, _list(relation, row, rows.model) if len(first) > SHOWN else None)


def _state(item: Model) -> str:
    name = next((name for name in STATES if hasattr(item, name)), None)
    if name is None:
        return ""
    display = getattr(item, f"get_{name}_display", None)
    return str(getattr(item, name) or "") if display is None else str(getattr(item, name) or "open")


def _list(relation: Relation, row: Model, model: type[Model]) -> str | None:
    if relation.filters is None:
        return None
    try:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    except NoReverseMatch:
        return None
    return f"{address}?{urlencode(relation.filters(row))}"
