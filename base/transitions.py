"""A state change is one guarded UPDATE, and losing is an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def move(rows: QuerySet[M], *, where: dict[str, Any], to: dict[str, Any]) -> bool:
    """Write `to` on the one row of `rows` if `where` still holds for it, in a single statement.

    Returns whether this caller made the change. False means that somebody else changed the row first: nothing was
    written, and what the row says now is what counts.
    """
    return rows.filter(**where).update(**to) == 1


def move_state(
    row: M, *, from_states: Iterable[str], to: str, generation: int | None = None, **values: Any
) -> bool:
    """`move` for a row with a `state`; with `generation`, only while this caller's lease is the newest one."""
    where: dict[str, Any] = {"state__in": list(from_states)}
    if generation is not None:
        where["generation"] = generation
    return move(type(row)._default_manager.filter(pk=row.pk), where=where, to={"state": to, **values})
