"""What happened to a row, and who did it: read from the table of its history, which triggers write with every change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import F, OuterRef, QuerySet, Subquery, Value

STATES = ("state", "status", "resolution")
REASONS = ("stop_reason", "failure_reason", "error_code")


@dataclass(frozen=True)
class Actor:
    """Who did it. `type` is user, token, machine or system; `user` is the account behind a token, a machine or a session.

    `name` is what people know it by: the account's, or the part of the system or the command that acted.
    """

    type: str
    id: str | None
    name: str | None
    user: str | None = None


@dataclass(frozen=True)
class Transition:
    """One change. `values` are the watched fields after it; the first of a row is its creation."""

    id: int
    at: datetime
    event: str
    state: str | None
    previous_state: str | None
    reason: str | None
    values: dict[str, Any]
    actor: Actor
    request_id: str | None


def is_tracked(model: type[models.Model]) -> bool:
    return any(field.name == "history" for field in model._meta.related_objects)


def rows_of(model: type[models.Model], pk: Any) -> QuerySet[Any]:
    """The history of one row, newest first, each with the state before it. One query."""
    history: Any = model._meta.get_field("history").related_model
    state = _first_of(history, STATES)
    before = history.objects.filter(pgh_obj=OuterRef("pgh_obj"), pgh_id__lt=OuterRef("pgh_id")).order_by(
        "-pgh_id"
    )
    rows: QuerySet[Any] = history.objects.filter(pgh_obj=pk).order_by("-pgh_id")
    if state is None:
        nothing = Value(None, output_field=models.TextField())
        rows = rows.annotate(state_now=nothing, state_before=nothing)
    else:
        rows = rows.annotate(state_now=F(state), state_before=Subquery(before.values(state)[:1]))
    return rows


def transitions(rows: Iterable[Any]) -> list[Transition]:
    """The rows of `rows_of` as what happened. One query, for the names of users."""
    rows = list(rows)
    names = _names_of({user for row in rows if (user := (row.pgh_context or {}).get("user"))})
    return [_transition(row, names) for row in rows]


def _transition(row: Any, names: Mapping[str, str]) -> Transition:
    context = row.pgh_context or {}
    fields = [field for field in row._meta.concrete_fields if not field.name.startswith("pgh_")]
    reason = _first_of(type(row), REASONS)
    return Transition(
        id=row.pgh_id,
        at=row.pgh_created_at,
        event="created" if row.pgh_label == "insert" else "changed",
        state=row.state_now,
        previous_state=row.state_before,
        reason=context.get("why") or (getattr(row, reason) if reason else None),
        values={field.name: getattr(row, field.attname) for field in fields},
        actor=actor_of(context, names),
        request_id=context.get("request_id"),
    )


def actor_of(context: Mapping[str, Any], names: Mapping[str, str]) -> Actor:
    """Who a history row's context names; the system where it names nobody."""
    user = context.get("user")
    name = names.get(user) if user else None
    for kind in ("machine", "token"):
        if context.get(kind):
            return Actor(kind, context[kind], name, user)
    if user:
        return Actor("user", user, name, user)
    return Actor("system", None, context.get("command") or context.get("actor"))


def _names_of(users: set[str]) -> dict[str, str]:
    if not users:
        return {}
    return {
        str(user.pk): user.get_username() for user in get_user_model()._default_manager.filter(pk__in=users)
    }


def _first_of(history: type[models.Model], names: tuple[str, ...]) -> str | None:
    known = {field.name for field in history._meta.concrete_fields}
    return next((name for name in names if name in known), None)
