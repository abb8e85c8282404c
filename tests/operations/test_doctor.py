"""The doctor names what is not good, and what to do."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule

from accounts.models import User
from base import leases, notify
from boxes import heartbeats
from boxes.models import Box, ScheduleSlot
from conversations.services import ensure_conversation
from openagents_site import schedules
from openagents_site.doctor import Finding, Level, examination, host, ledger, processes
from openagents_site.launcher import records
from openagents_site.launcher.identity import Group, Identity
from openagents_site.periodic import ensure_reconcile_slot
from openagents_site.tasks import SCHEDULER
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.django_db


def levels(found: list[Finding]) -> dict[str, Level]:
    return {finding.check: finding.level for finding in found}


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def healthy(provider: FakeProvider, settings: Any, tmp_path: Path) -> Any:
    """An installation with everything that must be there."""
    settings.STATE_ROOT = tmp_path
    schedules.install()
    ensure_reconcile_slot()
    heartbeats.stamp(SCHEDULER)
    with notify.own_connection() as link:
        leases.new_worker(link)
        yield settings


def test_a_healthy_installation_has_nothing_bad(healthy: Any, capsys: pytest.CaptureFixture[str]):
    call_command("doctor")

    said = capsys.readouterr().out
    assert "BAD" not in said
    assert len(re.findall(r"^good hooks: \d+ registered with \d+ hooks", said, re.M)) == 1
    assert "WARN webhooks" not in said  # the provider is on this machine
    assert "good workers: 1 alive" in said


def test_what_is_bad_is_told_to_programs_too(healthy: Any, capsys: pytest.CaptureFixture[str]):
    Schedule.objects.filter(name="heartbeat").delete()

    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json")

    answer = json.loads(capsys.readouterr().out)
    assert (ended.value.code, answer["good"]) == (1, False)
    bad = [finding for finding in answer["findings"] if finding["level"] == "bad"]
    assert [(finding["check"], finding["remedy"]) for finding in bad] == [
        ("schedules", "run manage.py setup_schedules")
    ]


def test_a_schedule_that_calls_nothing_is_named(healthy: Any):
    Schedule.objects.filter(name="heartbeat").update(func="nothing.at_all")

    assert "heartbeat calls nothing.at_all" in only(ledger.schedules()).seen


def test_a_late_and_a_failing_pass_are_bad(healthy: Any):
    with connection.cursor() as cursor:
        cursor.execute("update schedule_slots set next_at = clock_timestamp() - interval '10 minutes'")
    assert "late" in only(ledger.slots()).seen

    ScheduleSlot.objects.update(failures=3, outcome={"error": "box_unreachable"})
    assert "box_unreachable" in only(ledger.slots()).seen


def test_processes_that_are_gone_are_bad(db: None):
    assert levels(processes.processes()) == {"workers": Level.BAD, "scheduler": Level.BAD}


def test_a_scheduler_that_was_not_due_yet_is_just_starting(healthy: Any, capsys: pytest.CaptureFixture[str]):
    with connection.cursor() as cursor:
        cursor.execute("delete from process_heartbeats")

    call_command("doctor")
    assert re.search(r"WARN scheduler: just starting, \d+ s ago: never worked yet", capsys.readouterr().out)

    Schedule.objects.filter(name="heartbeat").update(next_run=timezone.now() - timedelta(minutes=3))
    assert levels(processes.processes())["scheduler"] is Level.BAD


@contextmanager
def just_started(state: Path, part: str) -> Iterator[None]:
    """A process that `bin/up` has on record as this part."""
    (state / "run").mkdir()
    with subprocess.Popen(["sleep", "600"]) as started:
        identity = Identity.of(started.pid)
        assert identity is not None
        records.write(state / "run", part, Group(identity, "mark"))
        try:
            yield
        finally:
            started.kill()


def test_a_scheduler_that_was_started_again_is_given_its_time(healthy: Any, tmp_path: Path):
    with connection.cursor() as cursor:
        cursor.execute("update process_heartbeats set stamped_at = clock_timestamp() - interval '1 hour'")
    assert levels(processes.processes())["scheduler"] is Level.BAD

    with just_started(tmp_path, "scheduler"):
        assert levels(processes.processes())["scheduler"] is Level.WARNING


def test_a_worker_that_was_started_again_is_given_its_time(db: None, settings: Any, tmp_path: Path):
    settings.STATE_ROOT = tmp_path

    with just_started(tmp_path, "worker"):
        assert levels(processes.processes())["workers"] is Level.WARNING
    assert levels(processes.processes())["workers"] is Level.BAD


def test_rows_that_nobody_takes_up_are_bad(owner: User):
    assert only(ledger.stuck_rows()).level is Level.GOOD
    Box.objects.create(conversation=ensure_conversation(owner), box_id="bx_1")
    with connection.cursor() as cursor:
        cursor.execute(
            "update conversation_boxes set next_provision_at = clock_timestamp() - interval '6 minutes'"
        )

    assert only(ledger.stuck_rows()).seen == "1 box in provisioning is due for more than 5 minutes"


def test_a_provider_that_refuses_the_key_is_told_from_one_that_is_away(
    provider: FakeProvider, box_api: Callable[..., None]
):
    assert only(ledger.provider()).level is Level.GOOD
    box_api(**provider.settings | {"api_key": "another"})
    assert "refuses the key" in only(ledger.provider()).seen
    box_api(base_url="http://127.0.0.1:9/api/box/v1")
    assert "does not answer" in only(ledger.provider()).seen
    box_api(api_key="")
    assert only(ledger.provider()).level is Level.WARNING


def test_debug_and_traffic_in_the_clear_are_named(settings: Any):
    settings.DEBUG, settings.PUBLIC_BASE_URL = True, "http://boxes.example"

    assert only(host.debug_is_off()).level is Level.BAD
    assert only(host.tls()).level is Level.WARNING


def test_open_folders_are_bad(settings: Any, tmp_path: Path):
    settings.STATE_ROOT = tmp_path
    (tmp_path / "private").mkdir()
    (tmp_path / "private").chmod(0o755)

    found = host.folders()

    assert levels(found)["secrets"] is Level.BAD
    assert f"chmod 700 {tmp_path / 'private'}" in [finding.remedy for finding in found]


def test_without_git_repositories_cannot_be_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert only(host.git()).level is Level.GOOD
    monkeypatch.setenv("PATH", str(tmp_path))

    assert only(host.git()).level is Level.BAD


def test_migrations_that_are_missing_leave_out_what_needs_them(healthy: Any):
    with connection.cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'boxes' and name = '0001_initial'")

    found = levels(examination.examine())

    assert found["migrations"] is Level.BAD
    assert "schedules" not in found


def test_a_check_that_breaks_is_a_finding(healthy: Any, monkeypatch: pytest.MonkeyPatch):
    def broken() -> list[Finding]:
        raise ZeroDivisionError

    monkeypatch.setattr(examination, "WITHOUT_DATABASE", (broken,))

    found = examination.examine()

    assert found[0] == Finding(
        "broken", Level.BAD, "could not be looked at: ZeroDivisionError", "see the log"
    )
