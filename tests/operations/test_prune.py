"""What is kept for a time only is forgotten after it, and the ledger never."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pgtrigger
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_q.models import Task

from accounts.models import User
from base import retention as base_retention
from base.retention import Rule, before
from boxes.models import Box
from conversations.services import ensure_conversation
from openagents_site import retention, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def set_days(settings: Any) -> Callable[..., None]:
    def change(**days: int) -> None:
        settings.RETENTION = settings.RETENTION | days

    return change


@pytest.fixture
def box(owner: User) -> Box:
    """A box with a history of three rows."""
    box = Box.objects.create(conversation=ensure_conversation(owner), box_id="bx_1", state="provisioning")
    Box.objects.update(state="ready")
    Box.objects.update(setup_status="done")
    return box


def age(table: str, column: str, days: int, which: str = "true") -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"update {table} set {column} = {column} - make_interval(days => %s) where {which}", [days]
        )


def age_history(box: Box, days: int, but_newest: int) -> None:
    newest = box.history.order_by("-pgh_id")[:but_newest].values_list("pgh_id", flat=True)
    with pgtrigger.ignore("boxes.BoxHistory:append_only"):
        box.history.exclude(pgh_id__in=list(newest)).update(
            pgh_created_at=timezone.now() - timedelta(days=days)
        )


def scheduled_task(name: str) -> None:
    now = timezone.now()
    Task.objects.create(id=name, name=name, func="x", started=now, stopped=now, success=True)


def test_old_history_goes_and_the_row_stays(box: Box):
    age_history(box, 401, but_newest=1)

    found = {forgotten.what: forgotten.rows for forgotten in retention.prune()}

    assert found["history of boxes"] == 2
    assert [row.setup_status for row in box.history.all()] == ["done"]
    assert Box.objects.filter(pk=box.pk).exists()


def test_history_goes_in_batches_and_stops_at_the_first_that_is_young(
    box: Box, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(base_retention, "BATCH", 1)
    age_history(box, 401, but_newest=1)

    assert sum(rule.forget() for rule in retention.history_rules() if "boxes" in rule.what) == 2


def test_it_is_kept_for_ever_where_it_is_set_so(box: Box, set_days: Callable[..., None]):
    set_days(history_days=0)
    age_history(box, 4000, but_newest=0)

    retention.prune()

    assert box.history.count() == 3


def test_old_results_of_scheduled_tasks_go():
    scheduled_task("old")
    scheduled_task("new")
    age("django_q_task", "stopped", 15, "id = 'old'")

    tasks.prune()

    assert list(Task.objects.values_list("id", flat=True)) == ["new"]


def test_a_dry_run_counts_and_deletes_nothing(box: Box, capsys: pytest.CaptureFixture[str]):
    age_history(box, 401, but_newest=1)

    call_command("prune", "--dry-run")

    assert "history of boxes: 2 would be deleted, older than 400 days\n" in capsys.readouterr().out
    assert box.history.count() == 3


def test_the_command_says_what_it_deleted(
    box: Box, capsys: pytest.CaptureFixture[str], set_days: Callable[..., None]
):
    set_days(task_days=0)
    age_history(box, 401, but_newest=1)

    call_command("prune")

    said = capsys.readouterr().out
    assert "history of boxes: 2 deleted, older than 400 days\n" in said
    assert "results of scheduled tasks: kept for ever\n" in said


@pytest.mark.parametrize("rule", retention.rules(), ids=lambda rule: rule.what)
def test_counting_and_deleting_agree_for_every_rule(rule: Rule):
    assert rule.count() == rule.forget() == 0


def test_a_rule_that_fails_costs_no_other(box: Box, monkeypatch: pytest.MonkeyPatch):
    age_history(box, 401, but_newest=1)
    broken = Rule("nothing", "no_such_table", "id", before("at"), lambda: 1)
    histories = [rule for rule in retention.history_rules() if "boxes" in rule.what]

    with connection.cursor() as cursor:  # as in autocommit: the failure must not end the test's transaction
        cursor.execute("savepoint before_it")
    [failed] = retention.prune(chosen=[broken])
    with connection.cursor() as cursor:
        cursor.execute("rollback to before_it")
    connection.needs_rollback = False

    assert failed.rows is None
    assert [forgotten.rows for forgotten in retention.prune(chosen=histories)] == [2]


def test_the_command_fails_where_something_could_not_be_looked_at(monkeypatch: pytest.MonkeyPatch):
    broken = Rule("nothing", "process_heartbeats", "name", "r.no_such_column", lambda: 1)
    monkeypatch.setattr(retention, "rules", lambda: [broken])

    with pytest.raises(CommandError, match="not everything"):
        call_command("prune", "--dry-run")


def test_no_rule_names_a_table_of_the_ledger():
    ledger = {"conversation_boxes", "box_fanout_requests", "box_fanout_items", "box_runs", "forge_repositories", "forge_issues",
              "forge_comments", "forge_assignments", "forge_assignment_credentials", "forge_pushes", "work_jobs",
              "work_job_steps", "machines", "machine_pairings", "incidents", "visitors", "conversations", "messages"}  # fmt: skip

    assert ledger.isdisjoint({rule.table for rule in retention.rules()})


def test_the_reference_names_every_kind() -> None:
    told = (Path(__file__).parents[2] / "docs" / "reference" / "operations.md").read_text()
    table = told.partition("## `manage.py prune`")[2].partition("\n## ")[0]

    own = [rule.what for rule in retention.rules() if not rule.what.startswith("history of ")]

    assert [what for what in own if what not in table] == []
