"""The dashboard's figures, by numbers, and how the database finds them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base import leases, notify
from boxes import heartbeats, slots
from boxes.models import ReconciliationEvent
from openagents_site.dashboard import figures, questions
from tests.dashboard.conftest import MakeBox, MakeRun
from work.incidents import report

pytestmark = pytest.mark.django_db


def leak(box_id: str, *, owned: bool, now: datetime, **fields: Any) -> None:
    ReconciliationEvent.objects.create(
        provider_box_id=box_id, event_type="leak", reason="unclaimed", owned=owned, observed_at=now, **fields
    )


def test_an_empty_installation_has_zeros_and_no_unknowns() -> None:
    now = figures.now()

    assert (now.boxes, now.runs, now.leaks, now.incidents, now.ended_last_day) == ({}, {}, {}, {}, {})
    assert (now.spent_today_microusd, now.spent_month_microusd, now.burn_rate_microusd) == (0, 0, 0)
    assert (now.workers, now.heartbeats, now.passes) == (0, {}, [])
    assert {queue.due for queue in now.queues or ()} == {0}


def test_what_goes_on_is_counted_by_state(make_box: MakeBox, make_run: MakeRun, now: datetime) -> None:
    for state in ("ready", "ready", "provisioning"):
        make_box(state=state, estimated_burn_rate_microusd=100_000)
    make_run("running", admitted_at=now - timedelta(minutes=5))
    make_run("admitted")
    make_run("completed")

    found = figures.now()

    assert (found.boxes, found.burn_rate_microusd) == ({"ready": 2, "provisioning": 1}, 300_000)
    assert found.runs == {"running": 1, "admitted": 1}
    assert 300 <= found.oldest_run_seconds < 360


def test_runs_of_the_last_day_are_counted_by_their_end(make_run: MakeRun, now: datetime) -> None:
    for state in ("completed", "completed", "lost", "running"):
        make_run(state)
    make_run("failed", admitted_at=now - timedelta(hours=25))

    assert figures.now().ended_last_day == {"completed": 2, "lost": 1}


def test_spending_is_of_today_and_of_the_month(make_box: MakeBox, now: datetime, midnight: datetime) -> None:
    make_box(stopped_at=now, settled_cost_microusd=500)
    make_box(stopped_at=midnight.replace(day=1), settled_cost_microusd=70)
    make_box(stopped_at=midnight.replace(day=1) - timedelta(days=1), settled_cost_microusd=9)
    make_box(created_at=now - timedelta(hours=2), estimated_burn_rate_microusd=1_000_000)

    found = figures.now()

    today, month = found.spent_today_microusd, found.spent_month_microusd
    assert today is not None
    assert month is not None
    assert 2_000_500 <= today < 2_100_500 + 70
    assert month - today == (0 if midnight.day == 1 else 70)


def test_open_leaks_and_incidents_are_counted(now: datetime, owner: Any) -> None:
    leak("a", owned=True, now=now)
    leak("b", owned=False, now=now)
    leak("c", owned=False, now=now, handled_at=now, resolution="dismissed")
    report({"surface": "controller", "origin": "test", "code": "one", "owner_user": owner.pk, "summary": "x"})

    found = figures.now()

    assert (found.leaks, found.incidents) == ({"true": 1, "false": 1}, {"open": 1})


def test_signs_of_life_are_told(make_box: MakeBox) -> None:
    heartbeats.stamp("scheduler")
    slots.ensure("reconcile", interval_ms=60_000, initial_delay_ms=0)
    link = notify.own_connection()
    leases.new_worker(link)

    found = figures.now()
    link.close()

    assert found.workers == 1
    assert set(found.heartbeats or {}) == {"scheduler"}
    [reconcile] = found.passes or ()
    assert (reconcile.name, reconcile.failures, reconcile.age_seconds, reconcile.error) == (
        "reconcile",
        0,
        None,
        None,
    )


def test_each_day_has_its_figures_also_where_they_are_zero(
    make_box: MakeBox, make_run: MakeRun, now: datetime, midnight: datetime
) -> None:
    yesterday = midnight - timedelta(minutes=1)
    make_box(created_at=yesterday, stopped_at=yesterday, settled_cost_microusd=300)
    make_box(
        created_at=midnight - timedelta(days=7),
        stopped_at=midnight - timedelta(days=7),
        settled_cost_microusd=9,
    )
    make_run("failed", admitted_at=yesterday)
    make_run("completed", admitted_at=now)

    days = figures.days(7, spent_today_microusd=12)

    assert days is not None
    assert [day.day for day in days] == [midnight.date() - timedelta(days=ago) for ago in range(6, -1, -1)]
    assert [(day.boxes, day.spent_microusd) for day in days] == [*[(0, 0)] * 5, (1, 300), (2, 12)]
    assert [day.runs["failed"] for day in days] == [0, 0, 0, 0, 0, 1, 0]
    assert [day.runs["completed"] for day in days] == [0, 0, 0, 0, 0, 0, 1]


def test_the_database_is_asked_as_often_for_many_rows_as_for_none(
    make_box: MakeBox, make_run: MakeRun
) -> None:
    with CaptureQueriesContext(connection) as few:
        figures.now()
        figures.days(7, 0)
    for state in ("completed", "failed", "running") * 5:
        make_run(state)
        make_box()

    with CaptureQueriesContext(connection) as many:
        figures.now()
        figures.days(30, 0)

    asked = [query["sql"] for query in many if query["sql"].lstrip().lower().startswith("select")]
    assert len(many) == len(few)
    assert len(asked) == 15


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        (questions.new_boxes(30), "conversation_boxes"),
        (questions.spending(30), "conversation_boxes"),
        (questions.ended_runs(30), "box_runs"),
        (questions.ENDED_LAST_DAY, "box_runs"),
        (questions.INCIDENTS, "incidents"),
    ],
    ids=["new boxes", "spending", "ended runs", "last day", "incidents"],
)
def test_no_question_reads_a_history_that_it_is_not_about(sql: str, table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off")
        cursor.execute(f"explain {sql}")
        plan = "\n".join(row[0] for row in cursor.fetchall())

    assert "Index Cond" in plan
    assert f"Seq Scan on {table}" not in plan


def test_a_question_without_an_answer_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, make_box: MakeBox
) -> None:
    make_box()
    monkeypatch.setattr(questions, "INCIDENTS", "select status from no_such_table")

    found = figures.now()

    assert (found.incidents, found.boxes) == (None, {"ready": 1})
