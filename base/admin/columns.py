"""Columns that many lists have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unfold.decorators import display

from base.admin.cells import link_to, money, span

Column = Callable[[Any, Any], Any]


def state_column(field: str, colours: Mapping[str, str]) -> Column:
    """The field's value as a coloured label; `colours` are success, info, warning and danger, others are grey."""

    @display(description=field.replace("_", " "), label=dict(colours), ordering=field)
    def shown(page: Any, row: Any) -> Any:
        return getattr(row, field) or "none"

    return shown  # type: ignore[no-any-return]


def money_column(field: str, description: str) -> Column:
    """A field of micro-US-dollars, in dollars."""

    @display(description=description, empty_value="not known yet")
    def shown(page: Any, row: Any) -> str | None:
        return money(getattr(row, field))

    return shown  # type: ignore[no-any-return]


def span_column(field: str, description: str, per_second: int = 1) -> Column:
    """A field that counts seconds, or parts of them, in words."""

    @display(description=description)
    def shown(page: Any, row: Any) -> str | None:
        value = getattr(row, field)
        return None if value is None else span(value / per_second)

    return shown  # type: ignore[no-any-return]


def link_column(field: str, description: str = "") -> Column:
    """A foreign key as a link to its row's page. Name it in `list_select_related`."""

    @display(description=description or field.replace("_", " "))
    def shown(page: Any, row: Any) -> str | None:
        return link_to(getattr(row, field))

    return shown  # type: ignore[no-any-return]
