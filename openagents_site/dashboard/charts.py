"""Columns over days as drawings that the server makes: no script and no network, and the same figures in a table beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from base.amounts import dollars
from openagents_site.dashboard.figures import Day
from runs.states import TERMINAL, RunState

WIDTH, HEIGHT = 360, 120
LABELS = 6  # of days below a drawing, at most
Amount = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Part:
    """A rectangle of a column. `kind` is its class in the style sheet."""

    y: int
    height: int
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class Column:
    """One day; `label` is empty where there is no room for it."""

    x: int
    middle: int
    width: int
    label: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing and its table. `summary` says in words what the drawing shows."""

    name: str
    title: str
    summary: str
    top: str
    columns: Sequence[Column]
    legend: Sequence[tuple[str, str]]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def charts(days: Sequence[Day]) -> list[Chart]:
    """New boxes, spending, and how runs ended."""
    return [
        _chart("boxes", "New boxes", days, {"boxes": [day.boxes for day in days]}, _number),
        _chart("spending", "Spent", days, {"spent": [day.spent_microusd for day in days]}, dollars),
        _chart("runs", "Runs by their end", days, {str(state): [day.runs[state] for day in days] for state in TERMINAL}, _number),
    ]  # fmt: skip


def _chart(name: str, title: str, days: Sequence[Day], series: dict[str, list[int]], amount: Amount) -> Chart:
    totals = [sum(values) for values in zip(*series.values(), strict=True)]
    top = max(totals, default=0)
    whole = amount(sum(totals))
    summary = f"{whole} in {len(days)} days (UTC), at most {amount(top)} on one day."
    names = [key.replace("_", " ") for key in series]
    heads = ["Day", *(names if len(series) > 1 else [title])]
    rows = [
        [f"{day.day:%Y-%m-%d}", *(amount(values[index]) for values in series.values())]
        for index, day in enumerate(days)
    ]
    columns = [
        _column(index, day, len(days), {key: values[index] for key, values in series.items()}, top, amount)
        for index, day in enumerate(days)
    ]
    legend = list(zip(series, names, strict=True)) if len(series) > 1 else []
    return Chart(name, title, summary, amount(top), columns, legend, heads, rows)


def _column(index: int, day: Day, number: int, values: dict[str, int], top: int, amount: Amount) -> Column:
    room = WIDTH // number
    width = max(4, room * 7 // 10)
    x = index * WIDTH // number + (room - width) // 2
    every = -(-number // LABELS)
    label = f"{day.day.day} {day.day:%b}" if (number - 1 - index) % every == 0 else ""
    parts: list[Part] = []
    y = HEIGHT
    for kind, value in values.items():
        height = max(1, round(value * HEIGHT / top)) if value else 0
        y -= height
        if height:
            said = kind.replace("_", " ") if kind in RunState.values else ""
            parts.append(
                Part(max(0, y), height, kind, f"{day.day:%Y-%m-%d}: {amount(value)} {said}".rstrip())
            )
    return Column(x, x + width // 2, width, label, parts)


def _number(value: int) -> str:
    return f"{value:,}"
