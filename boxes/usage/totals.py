"""Totals of the ledger, by conversation, owner, day and box. Each is one query."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, TruncDate

from boxes.models import Box

UNSETTLED = Q(stopped_at__isnull=True) | Q(settled_cost_microusd__isnull=True)


class Totals(TypedDict):
    """`lifetime_seconds` of ended boxes; the settled cost in micro-US-dollars; all boxes; those without a known cost."""

    lifetime_seconds: int
    settled_cost_microusd: int
    boxes: int
    unsettled_boxes: int


class Grouping(StrEnum):
    DAY = "day"  # of creation, UTC
    BOX = "box"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Group:
    """One row of a grouped total; `key` is the day, the box's id, or the user's id (None without an account).

    `label` is what people call it: the day, the box's label, the account's name.
    """

    key: str | None
    label: str
    totals: Totals


_SUMS: dict[str, Any] = {
    "lifetime": Coalesce(Sum("lifetime_seconds"), 0),
    "cost": Coalesce(Sum("settled_cost_microusd"), 0),
    "all": Count("id"),
    "unsettled": Count("id", filter=UNSETTLED),
}


def for_conversation(conversation_id: UUID) -> Totals:
    return totals(Box.objects.filter(conversation_id=conversation_id))


def for_owner(user_id: UUID) -> Totals:
    """Of all conversations of the user, deleted ones too: what was spent stays spent."""
    return totals(Box.objects.filter(conversation__visitor__user_id=user_id))


def totals(boxes: QuerySet[Box]) -> Totals:
    """The totals of these boxes."""
    return _totals(boxes.order_by().aggregate(**_SUMS))


def grouped(boxes: QuerySet[Box], grouping: Grouping, *, limit: int | None = None) -> list[Group]:
    """The totals of these boxes by day, box or owner; newest day first, else the costliest first; at most `limit`."""
    choices: dict[Grouping, dict[str, Any]] = {
        Grouping.DAY: {"key": TruncDate("created_at"), "name": TruncDate("created_at")},
        Grouping.BOX: {"key": F("id"), "name": F("label")},
        Grouping.OWNER: {
            "key": F("conversation__visitor__user_id"),
            "name": F("conversation__visitor__user__slug"),
        },
    }
    order = ["-key"] if grouping is Grouping.DAY else ["-cost", "key"]
    rows = boxes.order_by().values(**choices[grouping]).annotate(**_SUMS).order_by(*order)
    return [_group(dict(row)) for row in rows[:limit]]


def _group(row: dict[str, Any]) -> Group:
    key = None if row["key"] is None else str(row["key"])
    return Group(key, str(row["name"] or "no account"), _totals(row))


def _totals(row: dict[str, Any]) -> Totals:
    return Totals(
        lifetime_seconds=int(row["lifetime"]),
        settled_cost_microusd=int(row["cost"]),
        boxes=row["all"],
        unsettled_boxes=row["unsettled"],
    )
