"""Who drives a job: claims, leases, generations, failures."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from base.pump import Holder
from tests.work.conftest import DEAD_WORKER, JobOf, outcome_of
from work.errors import JobFenced, JobHeld, JobNotFound, JobTerminal
from work.models import Incident, Job
from work.services import (
    Captured,
    append_report_delta,
    cancel_job,
    claim_due,
    claim_for_run,
    complete_job_step,
    finish_job,
    get_job,
    record_continuation,
    record_failure,
    release,
    renew,
    request_job_step,
)

pytestmark = pytest.mark.django_db
DIGEST = "a" * 64


def end_lease(job: Job) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=job.pk).update(lease_expires_at=past, next_step_at=past)


def test_a_claim_starts_a_queued_job_and_keeps_what_drives_it(make_job: JobOf) -> None:
    captured = Captured("model-1", DIGEST, DIGEST, "messages:1")

    job = claim_for_run(make_job().pk, Holder(owner=7), captured=captured)

    assert (job.status, job.generation, job.lease_owner) == ("running", 1, 7)
    assert job.started_at is not None
    assert (job.model_id, job.instruction_digest, job.tool_catalog_digest) == ("model-1", DIGEST, DIGEST)


def test_a_second_claim_takes_over_and_keeps_the_first_start(running: Job) -> None:
    append_report_delta(running.pk, running.generation, "so far")

    adopted = claim_for_run(running.pk)

    assert (adopted.generation, adopted.started_at) == (running.generation + 1, running.started_at)
    assert (adopted.status, adopted.report) == ("running", "so far")


def test_an_ended_or_unknown_job_is_not_claimed(running: Job) -> None:
    finish_job(running.pk, "failed")

    with pytest.raises(JobTerminal):
        claim_for_run(running.pk)
    with pytest.raises(JobNotFound):
        claim_for_run(running.conversation_id)


def test_a_held_job_can_be_left_alone(running: Job) -> None:
    with pytest.raises(JobHeld):
        claim_for_run(running.pk, only_if_free=True)
    end_lease(running)
    assert claim_for_run(running.pk, only_if_free=True).generation == running.generation + 1


def test_an_old_worker_can_write_nothing_at_all(running: Job) -> None:
    old = running.generation
    claim_for_run(running.pk)

    assert append_report_delta(running.pk, old, "late") == "fenced"
    assert record_continuation(running.pk, old, {"input_tokens": 5}) == "fenced"
    assert release(running.pk, old) == "fenced"
    assert renew([(running.pk, old)]) == {}
    for write in (
        lambda: finish_job(running.pk, "completed", generation=old, final_text="late"),
        lambda: record_failure(running.pk, old, "late"),
    ):
        with pytest.raises(JobFenced):
            write()
    job = get_job(running.pk)
    assert (job.status, job.report, job.usage, job.failures) == ("running", None, {}, 0)


def test_due_jobs_are_claimed_oldest_first_and_only_of_the_kinds_asked_for(make_job: JobOf) -> None:
    jobs = [make_job(str(number)) for number in range(3)]

    assert claim_due(Holder(), 5, kinds=["delegation"]) == []
    assert [job.pk for job in claim_due(Holder(), 2)] == [jobs[0].pk, jobs[1].pk]
    assert [job.pk for job in claim_due(Holder(), 2)] == [jobs[2].pk]


def test_a_lease_that_is_renewed_lasts_and_tells_of_a_cancel(running: Job) -> None:
    end_lease(running)
    assert renew([(running.pk, running.generation)]) == {running.pk: False}
    assert claim_due(Holder(), 5) == []

    cancel_job(running.pk)

    assert renew([(running.pk, running.generation)]) == {running.pk: True}


def test_a_released_job_is_due_again_after_the_delay(running: Job) -> None:
    assert release(running.pk, running.generation, delay_seconds=3600) == "ok"
    assert claim_due(Holder(), 5) == []

    Job.objects.filter(pk=running.pk).update(next_step_at=timezone.now())

    (again,) = claim_due(Holder(), 5)
    assert (again.attempts, Incident.objects.count()) == (1, 0)


def test_taking_over_what_was_not_released_is_an_interruption_and_recorded_once(make_job: JobOf) -> None:
    job = claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))
    Job.objects.filter(pk=job.pk).update(next_step_at=timezone.now())

    assert len(claim_due(Holder(), 5)) == 1

    assert Incident.objects.get().code == "runtime_restarted"


def test_a_job_that_kills_its_workers_ends(make_job: JobOf) -> None:
    job = make_job()
    for _ in range(10):
        Job.objects.filter(pk=job.pk).update(lease_expires_at=None, next_step_at=timezone.now())
        assert len(claim_due(Holder(), 1)) == 1
    Job.objects.filter(pk=job.pk).update(lease_expires_at=None, next_step_at=timezone.now())

    assert claim_due(Holder(), 1) == []

    ended = get_job(job.pk)
    assert (ended.status, ended.error_code) == ("failed", "work_job_attempts_exhausted")
    assert Incident.objects.get(code="work_job_attempts_exhausted").severity == "anomalous"


def test_a_committed_step_is_progress(running: Job) -> None:
    record_failure(running.pk, running.generation, "provider_failure")
    job = claim_for_run(running.pk)
    assert (job.attempts, job.failures) == (2, 1)

    step = request_job_step(job.pk, job.generation, provider_call_id="1", tool_name="x")
    complete_job_step(job.pk, job.generation, step.pk, outcome_of(step))

    job.refresh_from_db()
    assert (job.attempts, job.failures, job.failure_code) == (0, 0, None)


def test_equal_failures_end_a_job_with_an_incident(running: Job) -> None:
    job = running
    for number in range(1, 5):
        job = record_failure(job.pk, job.generation, "provider_failure")
        assert (job.status, job.failures) == ("running", number)
        job = claim_for_run(job.pk)

    ended = record_failure(job.pk, job.generation, "provider_failure")

    assert (ended.status, ended.error_code) == ("failed", "provider_failure")
    incident = Incident.objects.get()
    assert (incident.code, incident.severity, incident.surface) == ("provider_failure", "degraded", "job")
    assert (incident.origin, incident.context["failures"]) == ("job_server", 5)


def test_another_failure_begins_a_new_row(running: Job) -> None:
    job = running
    for code in ["a", "b"] * 5:
        job = record_failure(job.pk, job.generation, code)
        job = claim_for_run(job.pk)

    assert (job.status, job.failures) == ("running", 1)


def test_usage_adds_up(running: Job) -> None:
    answer = {"input_tokens": 5, "details": {"cached": 2}, "model": "m"}

    for _ in range(2):
        record_continuation(running.pk, running.generation, answer)

    job = get_job(running.pk)
    assert job.continuation_count == 2
    assert job.usage == {"input_tokens": 10, "details": {"cached": 4}, "model": "m"}


def test_text_is_cut_between_characters_and_written_over_where_asked(running: Job) -> None:
    append_report_delta(running.pk, running.generation, "é" * 3_999 + "x")
    append_report_delta(running.pk, running.generation, "éé")
    assert get_job(running.pk).report == "é" * 3_999 + "x"

    append_report_delta(running.pk, running.generation, "again\0", offset=2)
    assert get_job(running.pk).report == "éagain␀"
