"""Columns over days: what is drawn, and the same in words and in a table."""

from __future__ import annotations

from datetime import date, timedelta

from openagents_site.dashboard.charts import HEIGHT, WIDTH, charts
from openagents_site.dashboard.figures import Day
from runs.states import TERMINAL


def days(*boxes: int, **runs: int) -> list[Day]:
    none = {state.value: 0 for state in TERMINAL}
    first = date(2026, 3, 1)
    return [
        Day(first + timedelta(days=index), number, number * 1_500_000, none | runs)
        for index, number in enumerate(boxes)
    ]


def test_the_tallest_day_fills_the_drawing_and_the_others_their_share() -> None:
    boxes, spent, _ = charts(days(1, 0, 4))

    assert [[part.height for part in column.parts] for column in boxes.columns] == [
        [HEIGHT // 4],
        [],
        [HEIGHT],
    ]
    assert boxes.summary == "5 in 3 days (UTC), at most 4 on one day."
    assert spent.summary == "$7.50 in 3 days (UTC), at most $6.00 on one day."
    assert spent.rows[2] == ["2026-03-03", "$6.00"]


def test_the_ends_of_runs_stand_on_one_another() -> None:
    _, _, runs = charts(days(1, completed=3, failed=1))

    [column] = runs.columns
    assert [(part.kind, part.y, part.height) for part in column.parts] == [
        ("completed", 30, 90),
        ("failed", 0, 30),
    ]
    assert column.parts[0].said == "2026-03-01: 3 completed"
    assert runs.heads == ["Day", "completed", "failed", "cancelled", "timed out", "lost"]
    assert [name for _, name in runs.legend] == runs.heads[1:]


def test_a_little_among_much_can_still_be_seen() -> None:
    boxes, *_ = charts(days(1, 100_000))

    assert boxes.columns[0].parts[0].height == 1


def test_nothing_is_drawn_of_nothing() -> None:
    for chart in charts(days(0, 0)):
        assert [column.parts for column in chart.columns] == [[], []]
        assert "at most" in chart.summary


def test_days_stay_inside_the_drawing_and_few_of_many_are_named() -> None:
    boxes, *_ = charts(days(*[1] * 30))

    assert all(column.x >= 0 and column.x + column.width <= WIDTH for column in boxes.columns)
    named = [column.label for column in boxes.columns if column.label]
    assert len(named) <= 8
    assert boxes.columns[-1].label == "30 Mar"
