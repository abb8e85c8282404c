"""A secret that the model writes into a call reaches the tool, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from tests.work.conftest import JobOf
from tests.work.driven import REPORT, done
from tests.work.guarded import put
from tests.work.scripted import asks, calls_of, registry, said
from work.arguments import exact, shown
from work.digests import argument_digest
from work.models import Job, JobStep
from work.services import claim_for_run, finish_job, list_job_steps, release, request_job_step

pytestmark = pytest.mark.django_db

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
RequestStep = Callable[..., JobStep]


def test_the_tool_gets_it_and_the_row_and_the_model_do_not(make_job: JobOf) -> None:
    got: list[Any] = []
    tools = registry(lambda call: got.append(call.arguments) or {})

    job, model = done(make_job(), said(asks(f"with {SECRET}", "call-1")), REPORT, tools=tools)

    [step] = list_job_steps(job)
    assert got == [{"query": f"with {SECRET}"}]
    assert json.loads(step.arguments) == {"query": "with [REDACTED]"}
    assert (step.status, step.sealed_arguments) == ("succeeded", None)
    assert calls_of(model.requests[1])[0].arguments == step.arguments


def test_a_worker_that_takes_the_job_over_carries_out_the_exact_call(make_job: JobOf) -> None:
    job, got = make_job(), list[Any]()
    held = claim_for_run(job.pk)
    arguments = json.dumps({"query": SECRET})
    step = request_job_step(
        job.pk, held.generation, provider_call_id="call-1", tool_name="recall_messages", arguments=arguments
    )
    assert SECRET not in step.arguments
    assert SECRET.encode() not in bytes(step.sealed_arguments or b"")

    release(job.pk, held.generation)

    done(Job.objects.get(pk=job.pk), REPORT, tools=registry(lambda call: got.append(call.arguments) or {}))

    assert got == [{"query": SECRET}]


def test_it_goes_with_a_call_that_is_never_carried_out(running: Job, request_step: RequestStep) -> None:
    step = request_step("call-1", arguments=SECRET)
    assert (step.arguments, exact(step)) == ("[REDACTED]", SECRET)

    finish_job(running.pk, "cancelled")

    step.refresh_from_db()
    assert (step.status, step.sealed_arguments) == ("cancelled", None)


def test_a_call_whose_seal_cannot_be_opened_fails_and_the_job_goes_on(make_job: JobOf) -> None:
    job = make_job()
    held = claim_for_run(job.pk)
    with override_settings(SECRET_KEY="another " * 8):
        request_job_step(
            job.pk, held.generation, provider_call_id="call-1", tool_name="recall_messages", arguments=SECRET
        )

    release(job.pk, held.generation)

    job, _ = done(Job.objects.get(pk=job.pk), REPORT)

    [step] = list_job_steps(job)
    assert (job.status, step.status, step.error["code"]) == ("completed", "failed", "tool_arguments_lost")


def test_no_short_secret_can_be_guessed_by_a_digest(request_step: RequestStep) -> None:
    steps = [
        request_step(f"call-{word}", arguments=f'{{"password": "{word}"}}') for word in ("summer", "winter")
    ]

    assert {step.argument_digest for step in steps} == {argument_digest('{"password":"[REDACTED]"}')}


def test_what_holds_no_secret_is_kept_as_it_was_written(request_step: RequestStep) -> None:
    written = '{ "query" : "the Token limit",  "n": 1.0 }'
    step = request_step("call-1", arguments=written)

    assert (step.arguments, step.sealed_arguments) == (written, None)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('{"password": "x"}', '{"password":"[REDACTED]"}'),
        (f'{{"a": "\\u0067{SECRET[1:]}"}}', '{"a":"[REDACTED]"}'),
        (f'{{"a": "{SECRET}", "a": 1}}', '{"a": "[REDACTED]", "a": 1}'),
        (f"not json {SECRET}", "not json [REDACTED]"),
        ("[" * 100_000, "[" * 100_000),
        ('{"a": NaN}', '{"a": NaN}'),
    ],
    ids=["by name", "escaped", "overwritten", "no json", "too deep", "nan"],
)
def test_a_secret_is_struck_out_however_it_is_written(written: str, kept: str) -> None:
    assert shown(written) == kept


def test_the_exact_text_can_be_put_back_into_no_ended_step(running: Job, request_step: RequestStep) -> None:
    step = request_step("call-1", arguments=SECRET)
    finish_job(running.pk, "cancelled")

    with pytest.raises(Exception, match="terminal work job step is immutable"):
        put(step, sealed_arguments=b"again")
