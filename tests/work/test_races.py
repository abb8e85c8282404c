"""Two at once, on connections of their own: of what may happen once, one does it and the other is told."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from base.pump import Holder
from conversations.models import Message
from tests.work.conftest import DEAD_WORKER, JobOf, outcome_of, raced
from work.errors import JobFenced, JobNotAcceptingSteps, PairingConsumed, TooManyMachines, WorkError
from work.machines import approve_pairing, authenticate_token, claim_pairing, start_pairing
from work.models import Incident, Job, Machine
from work.services import (
    append_report_delta,
    cancel_job,
    claim_due,
    claim_for_run,
    complete_job_step,
    finish_job,
    get_job,
    list_job_steps,
    recover_interrupted_jobs,
    request_job_step,
    start_job_step,
)

pytestmark = pytest.mark.django_db(transaction=True)
RACES = 10


def test_of_two_ends_the_first_stands_and_is_told_once(make_job: JobOf) -> None:
    for _ in range(RACES):
        job = claim_for_run(make_job().pk)

        ends = raced(
            lambda job=job: finish_job(job.pk, "completed", final_text="done").status,
            lambda job=job: finish_job(job.pk, "failed", error_code="provider_failure").status,
            lambda job=job: cancel_job(job.pk).status,
        )

        ended = get_job(job.pk)
        assert ends[0] == ends[1] == ended.status
        assert ends[2] in (ended.status, "running")
        assert Message.objects.get(work_job_id=job.pk).content == ended.report
        assert job.history.filter(status__in=Job.TERMINAL_STATUSES).count() == 1


def test_due_jobs_are_given_to_one_claimant_each(make_job: JobOf) -> None:
    jobs = [make_job(str(number)) for number in range(12)]

    answers = raced(*[lambda: [job.pk for job in claim_due(Holder(), 5)] for _ in range(4)])

    assert sorted(pk for answer in answers for pk in answer) == sorted(job.pk for job in jobs)
    assert {get_job(job.pk).generation for job in jobs} == {1}


def test_of_two_who_take_a_job_over_the_later_one_owns_it(make_job: JobOf) -> None:
    for _ in range(RACES):
        job = make_job()

        claims = raced(lambda job=job: claim_for_run(job.pk), lambda job=job: claim_for_run(job.pk))

        assert sorted(claim.generation for claim in claims) == [1, 2]
        writes = {claim.generation: append_report_delta(job.pk, claim.generation, "x") for claim in claims}
        assert writes == {1: "fenced", 2: "ok"}


def test_a_worker_that_is_overtaken_while_it_writes_leaves_nothing_half_done(make_job: JobOf) -> None:
    for _ in range(RACES):
        job = claim_for_run(make_job().pk)

        step, adopted, _ = raced(
            lambda job=job: request_job_step(job.pk, job.generation, provider_call_id="1", tool_name="x"),
            lambda job=job: claim_for_run(job.pk),
            lambda job=job: finish_job(job.pk, "completed", final_text="late", generation=job.generation),
        )

        ended = get_job(job.pk)
        steps = list_job_steps(ended)
        assert len(steps) == (0 if isinstance(step, JobFenced | JobNotAcceptingSteps) else 1)
        assert ended.tool_call_count == len(steps)
        assert ended.is_terminal == isinstance(adopted, WorkError)


def test_the_same_call_is_one_step_and_starts_once(make_job: JobOf) -> None:
    for _ in range(RACES):
        job = claim_for_run(make_job().pk)

        def call(job: Job = job) -> str:
            step = request_job_step(job.pk, job.generation, provider_call_id="1", tool_name="x")
            answer = start_job_step(job.pk, job.generation, step.pk)
            if answer == "started":
                complete_job_step(job.pk, job.generation, step.pk, outcome_of(step))
            return answer

        answers = Counter(
            answer if isinstance(answer, str) else answer.code for answer in raced(call, call, call)
        )

        assert answers["started"] == 1
        assert set(answers) <= {"started", "already_running", "work_job_step_is_terminal"}
        assert (len(list_job_steps(job)), get_job(job.pk).tool_call_count) == (1, 1)


def test_two_recoveries_record_one_interruption(make_job: JobOf) -> None:
    for _ in range(RACES):
        job = claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))

        raced(
            recover_interrupted_jobs,
            recover_interrupted_jobs,
            lambda job=job: Job.objects.filter(pk=job.pk).update(next_step_at=timezone.now()),
            lambda: claim_due(Holder(), 5),
        )

        assert Incident.objects.filter(code="runtime_restarted", correlation_ref=str(job.pk)).count() == 1


def test_however_many_are_approved_at_once_a_user_has_8_machines(owner: User) -> None:
    codes = [start_pairing(name=f"computer {number}", tier="probe").code for number in range(12)]

    answers = raced(*[lambda code=code: approve_pairing(owner, code) for code in codes])

    kinds = Counter(type(answer) for answer in answers)
    assert kinds == {Machine: 8, TooManyMachines: 4}


def test_a_pairing_is_approved_and_claimed_once(owner: User, stranger: User) -> None:
    for _ in range(3):
        pairing = start_pairing(name="computer", tier="probe")

        approvals = raced(
            lambda code=pairing.code: approve_pairing(owner, code),
            lambda code=pairing.code: approve_pairing(stranger, code),
        )
        claims: list[Any] = raced(
            *[lambda found=pairing: claim_pairing(found.id, found.poll_secret) for _ in range(3)]
        )

        assert sum(isinstance(answer, Machine) for answer in approvals) == 1
        assert sum(isinstance(answer, PairingConsumed) for answer in claims) == 2
        (claim,) = [answer for answer in claims if not isinstance(answer, Exception)]
        assert authenticate_token(claim.token) == claim.machine
