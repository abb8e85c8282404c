"""A dispatch goes out once, whatever becomes of its answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from boxes.models import Box
from runs import pump
from runs.models import Run
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.driving import driven, now_due

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]


@pytest.mark.django_db
def test_a_dispatch_that_arrived_is_found_and_not_repeated(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}; echo out")
    provider.next("command", drop_after=True)

    run = driven(run)

    assert (run.state, run.output) == ("completed", "out\n")
    assert counter.read_text() == "ran\n"
    assert run.probe_attempts == 1
    assert run.probe_attempted_at is not None


@pytest.mark.django_db
def test_a_dispatch_that_never_arrived_is_lost_and_not_repeated(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_before=True)

    run = driven(run)

    assert (run.state, run.failure_reason) == ("lost", "dispatch_ambiguous")
    assert counter.read_text() == ""


@pytest.mark.django_db
def test_a_dispatch_that_arrives_after_the_probe_cannot_start(
    begin: Begin, provider: FakeProvider, fake_box: Box, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_before=True)
    step(run.pk)
    late = provider.calls("command")[0].json

    run = driven(run)
    answer = provider.commands.run(provider.boxes[fake_box.box_id], late)

    assert "OPENAGENTS_RUN_EXISTS" in answer["stdout"]
    assert counter.read_text() == ""


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "after": True},
        {"status": 504, "after": True},
        {"cut_json": 0.3},
        {"html": True, "after": True},
    ],
)
def test_an_unclear_answer_is_looked_into(
    begin: Begin, provider: FakeProvider, counter: Path, fault: dict[str, Any]
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", **fault)

    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_dispatch_that_was_delivered_twice_runs_once(
    begin: Begin, provider: FakeProvider, counter: Path
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", twice=True)

    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_probe_without_an_answer_is_no_answer(begin: Begin, provider: FakeProvider, counter: Path) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", drop_after=True)
    step(run.pk)
    for fault in ({"drop_before": True}, {"status": 503}, {"status": 401}, {"status": 429, "retry_after": 1}):
        provider.next("command", **fault)
        run = step(run.pk)
        assert run.state == "admitted"

    run = driven(run)

    assert run.state == "completed"
    assert run.probe_attempts == 5
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429, "retry_after": 30},
        {"status": 429},
        {"status": 409, "code": "box_starting"},
        {"status": 409, "code": "box_securing"},
    ],
)
def test_what_certainly_did_not_run_is_dispatched_again(
    begin: Begin, provider: FakeProvider, counter: Path, fault: dict[str, Any]
) -> None:
    run = begin(f"echo ran >> {counter}")
    provider.next("command", **fault)

    run = step(run.pk)
    assert run.state == "admitted"
    assert run.dispatch_attempted_at is None
    assert run.next_step_at > timezone.now()
    run = driven(run)

    assert run.state == "completed"
    assert counter.read_text() == "ran\n"


@pytest.mark.django_db
def test_a_pause_that_the_provider_asked_for_is_kept(begin: Begin, provider: FakeProvider) -> None:
    run = begin("true")
    provider.next("command", status=429, retry_after=30)
    pump.run_once()

    now_due(run)
    pump.run_once()

    assert provider.count("command") == 1
    run.refresh_from_db()
    assert run.calls_resume_at > timezone.now() + timedelta(seconds=25)
    assert run.dispatch_attempted_at is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "state", "reason"),
    [
        ({"status": 402}, "failed", "box_billing_required"),
        ({"status": 401}, "failed", "box_unauthorized"),
        ({"status": 404}, "lost", "box_not_found"),
        ({"status": 409, "code": "box_stopped"}, "lost", "box_stopped"),
        ({"status": 409, "code": "machine_not_running"}, "lost", "machine_not_running"),
    ],
)
def test_a_dispatch_that_is_refused_ends_the_run(
    begin: Begin, provider: FakeProvider, fault: dict[str, Any], state: str, reason: str
) -> None:
    run = begin("true")
    provider.next("command", **fault)

    run = step(run.pk)

    assert (run.state, run.failure_reason) == (state, reason)


@pytest.mark.django_db
def test_a_box_that_cannot_hold_a_run_says_why(begin: Begin, provider: FakeProvider, fake_box: Box) -> None:
    home = provider.commands.home(provider.boxes[fake_box.box_id])
    (home / ".openagents").write_text("a file where the folder should be")

    run = step(begin("true").pk)

    assert (run.state, run.failure_reason) == ("failed", "dispatch_cannot_create_directory")
