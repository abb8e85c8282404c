"""Taking up again what nobody holds."""

from __future__ import annotations

from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone

from base.pump import Holder
from tests.work.conftest import DEAD_WORKER, JobOf
from work import limits
from work.models import Incident, Job
from work.services import (
    claim_due,
    claim_for_run,
    finish_job,
    get_job,
    recover_interrupted_jobs,
    release,
    release_orphans,
    sweep_ended_leases,
)

pytestmark = pytest.mark.django_db


class ClusterStarting(Exception):
    code = "cluster_starting"


def cannot_start(kind: str, job_id: UUID) -> None:
    raise ClusterStarting


def come_due(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(next_step_at=timezone.now())


def test_a_start_is_tried_again_after_growing_delays_and_then_the_job_is_interrupted(make_job: JobOf) -> None:
    job = make_job()
    for failures, delay in enumerate(limits.START_RETRIES, start=1):
        before = timezone.now()
        assert recover_interrupted_jobs(start_worker=cannot_start).deferred == 1
        assert recover_interrupted_jobs(start_worker=cannot_start).found == 0
        waiting = get_job(job.pk)
        assert (waiting.status, waiting.start_failures) == ("queued", failures)
        assert delay <= waiting.next_step_at - before
        come_due(job)

    recover_interrupted_jobs(start_worker=cannot_start)

    ended = get_job(job.pk)
    assert (ended.status, ended.error_code) == ("interrupted", "runtime_restarted")
    assert [delay.total_seconds() for delay in limits.START_RETRIES] == [0.25, 0.5, 1, 2, 4, 8, 15]


def test_a_start_that_works_ends_the_row_of_failures(make_job: JobOf) -> None:
    job = make_job()
    recover_interrupted_jobs(start_worker=cannot_start)
    come_due(job)

    (claimed,) = claim_due(Holder(), 1)

    assert claimed.start_failures == 0


def test_an_interruption_is_recorded_once_for_each_holder(make_job: JobOf) -> None:
    job = claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))
    recover_interrupted_jobs()
    recover_interrupted_jobs()
    assert Incident.objects.count() == 1

    claim_for_run(job.pk, Holder(owner=DEAD_WORKER))
    recover_interrupted_jobs()

    assert [incident.context["generation"] for incident in Incident.objects.order_by("created_at")] == [1, 2]


def test_one_bad_job_does_not_keep_the_others_from_being_recovered(make_job: JobOf) -> None:
    bad, good = make_job("bad"), make_job("good")
    started: list[UUID] = []

    def start_worker(kind: str, job_id: UUID) -> None:
        if job_id == bad.pk:
            raise RuntimeError("no code")
        started.append(job_id)

    recovery = recover_interrupted_jobs(start_worker=start_worker)

    assert (started, recovery.found, recovery.started) == ([good.pk], 2, 1)


def test_what_waits_or_has_ended_is_left_alone(make_job: JobOf) -> None:
    waiting, ended = claim_for_run(make_job().pk), claim_for_run(make_job().pk)
    release(waiting.pk, waiting.generation, delay_seconds=3600)
    finish_job(ended.pk, "failed", error_code="cancelled")

    assert recover_interrupted_jobs().found == 0
    assert get_job(waiting.pk).next_step_at > timezone.now()


def test_the_sweep_takes_only_what_somebody_held(make_job: JobOf) -> None:
    queued, held = make_job(), claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))

    assert sweep_ended_leases().found == 1

    assert Incident.objects.get().correlation_ref == str(held.pk)
    assert get_job(queued.pk).recovered_generation is None


def test_what_dead_workers_hold_is_due_at_once(make_job: JobOf) -> None:
    job = claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))
    live = claim_for_run(make_job().pk)

    assert (release_orphans(), release_orphans()) == (1, 0)

    assert [claimed.pk for claimed in claim_due(Holder(), 5)] == [job.pk]
    assert get_job(live.pk).generation == live.generation


def test_a_recovered_job_may_be_started_by_anything(make_job: JobOf) -> None:
    job = make_job()
    calls: list[Any] = []

    recover_interrupted_jobs(start_worker=lambda kind, job_id: calls.append((kind, job_id)))

    assert calls == [("deep_work", job.pk)]


def test_an_operator_may_look_before_recovering(make_job: JobOf) -> None:
    held, job = claim_for_run(make_job().pk), claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))
    before, told = get_job(job.pk).next_step_at, StringIO()

    call_command("recover_work", "--dry-run", stdout=told)
    assert str(job.pk) in told.getvalue()
    assert str(held.pk) not in told.getvalue()
    assert (get_job(job.pk).next_step_at, Incident.objects.count()) == (before, 0)

    call_command("recover_work", stdout=told)
    assert "1 interrupted, 1 due again, 0 deferred" in told.getvalue()
    assert get_job(job.pk).next_step_at < before
