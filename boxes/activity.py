"""When boxes were last in use: by synchronous commands (stamped on the row) and by what higher apps report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from base import hooks
from boxes.models import Box


class Used(Protocol):
    """What is read of a box to tell when it was last in use: a ledger row, or any part of one."""

    @property
    def pk(self) -> UUID: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def stopped_at(self) -> datetime | None: ...
    @property
    def last_activity_at(self) -> datetime | None: ...


def idle_since(boxes: Sequence[Used]) -> dict[UUID, datetime | None]:
    """For each box, since when nothing was done in it: its last activity, else its creation.

    None while something is alive in it, however old, for a stopped box, and for every box while a reporter cannot say: what
    is not known to be idle is not called so. Asks each reporter once for all boxes.
    """
    active = [box for box in boxes if box.stopped_at is None]
    reports = _reports(active)
    if reports is None:
        return dict.fromkeys((box.pk for box in boxes), None)
    return {box.pk: _idle_since(box, reports) if box.stopped_at is None else None for box in boxes}


def attach(boxes: Iterable[Box]) -> list[Box]:
    """The boxes, each with its `idle_since` set, in as many queries as there are reporters."""
    listed = list(boxes)
    by_id = {box.pk: box for box in listed}
    for pk, moment in idle_since(listed).items():
        by_id[pk].idle_since = moment
    return listed


def _reports(boxes: Sequence[Used]) -> list[Mapping[UUID, Any]] | None:
    """What each reporter said; None if one of them failed."""
    if not boxes:
        return []
    reports = hooks.box_activity([box.pk for box in boxes])
    return reports if len(reports) == len(hooks.box_activity.registered()) else None


def _idle_since(box: Used, reports: Sequence[Mapping[UUID, datetime | None]]) -> datetime | None:
    said = [report[box.pk] for report in reports if box.pk in report]
    if any(moment is None for moment in said):
        return None
    used = [moment for moment in (box.last_activity_at, *said) if moment is not None]
    return max(used, default=box.created_at)
