"""What the model of a deep-work job is told, what is kept of what it says, and what of that another takes over."""

from __future__ import annotations

import json
import threading

import pytest

from base.pump import Holder
from tests.work.conftest import DEAD_WORKER, JobOf, in_thread
from tests.work.driven import CALL, REPORT, done, registry_of, succeeded
from tests.work.scripted import (
    USAGE,
    Recaller,
    ScriptedModel,
    asks,
    calls_of,
    outputs_of,
    registry,
    said,
    tool,
)
from work.deep_work import loop
from work.deep_work.ledger import InThisThread
from work.deep_work.stop import Stop
from work.errors import JobFenced, JobHeld, NotDriven
from work.model_client import ModelText, Text
from work.models import Job
from work.services import (
    append_report_delta,
    claim_for_run,
    complete_job_step,
    get_job,
    list_job_steps,
    request_job_step,
    start_job_step,
)
from work.worker import drive

pytestmark = pytest.mark.django_db


# --- what the model is told, and what is kept ---


def test_what_the_model_said_before_a_call_is_shown_to_it_again_and_is_not_the_report(
    make_job: JobOf,
) -> None:
    job, model = done(make_job(), said(Text("Let me look."), asks("x", "call-1")), REPORT)

    assert job.report == "What I found."
    assert [item for item in model.requests[1].items if isinstance(item, ModelText)] == [
        ModelText("Let me look.")
    ]
    assert [call.call_id for call in calls_of(model.requests[1])] == ["call-1"]
    assert outputs_of(model.requests[1]) == ['{"matches":["Found x in this conversation."]}']


def test_answers_and_their_use_are_counted(make_job: JobOf) -> None:
    job, _ = done(make_job(), CALL, said(asks("y", "call-2")), REPORT)
    assert (job.tool_call_count, job.continuation_count) == (2, 2)
    assert job.usage == {name: 3 * number for name, number in USAGE.items()} | {"cost_microusd": 0}


def test_a_step_keeps_what_asked_for_it(make_job: JobOf) -> None:
    job, _ = done(make_job(), CALL, REPORT)
    (step,) = list_job_steps(job)
    assert (step.provider_item_id, step.provider_response_id) == ("item-call-1", "resp")
    assert (step.tool_version, step.catalog_digest) == ("1", job.tool_catalog_digest)
    assert (step.executor_id, step.executor_disclosure) == ("host", {"where": "server"})


def test_the_memory_that_a_job_has_is_named(make_job: JobOf) -> None:
    job, _ = done(make_job(), REPORT)
    assert job.memory_snapshot_ref.startswith(f"conversation:{job.conversation_id}@20")


def test_a_job_that_says_nothing_still_ends_with_a_report(make_job: JobOf) -> None:
    job, _ = done(make_job("count the boxes"), CALL, said())
    assert job.status == "completed"
    assert "recall_messages:succeeded" in job.report
    assert "count the boxes" in job.report


def test_a_job_that_has_ended_is_answered_as_it_is(make_job: JobOf) -> None:
    job, _ = done(make_job(), REPORT)
    again, model = done(job, CALL)
    assert (again.report, model.requests) == ("What I found.", [])


def test_a_job_that_somebody_is_at_work_on_is_left_alone(running: Job) -> None:
    with pytest.raises(JobHeld):
        done(running, REPORT)


def test_a_delegation_is_not_driven_here(make_delegation: JobOf) -> None:
    with pytest.raises(NotDriven):
        done(make_delegation("elsewhere"), REPORT)


# --- taking over ---


def left_by_the_dead(job: Job, *, started: bool = True) -> Job:
    """The job as a worker left it that died while it carried out its first call."""
    held = claim_for_run(job.pk, Holder(owner=DEAD_WORKER))
    append_report_delta(job.pk, held.generation, "Looking. ")
    step = request_job_step(
        job.pk,
        held.generation,
        provider_call_id="call-1",
        tool_name="recall_messages",
        arguments='{"query": "x"}',
    )
    if started:
        start_job_step(job.pk, held.generation, step.pk)
    return held


def test_a_call_that_was_interrupted_is_told_and_not_repeated(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    held = left_by_the_dead(job)
    ended, model = done(job, REPORT, tools=registry(recaller))
    assert recaller.seen == []
    assert [step.status for step in list_job_steps(job)] == ["interrupted"]
    assert json.loads(outputs_of(model.requests[0])[0])["error"]["code"] == "interrupted"
    assert (ended.started_at, ended.tool_call_count) == (held.started_at, 1)


def test_a_call_that_had_not_begun_is_carried_out(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    left_by_the_dead(job, started=False)
    done(job, REPORT, tools=registry(recaller))
    assert len(recaller.seen) == 1


def test_a_call_that_may_be_repeated_is_repeated(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    left_by_the_dead(job)
    done(job, REPORT, tools=registry_of(tool("recall_messages", recaller, safe_to_repeat=True)))
    assert len(recaller.seen) == 1
    assert [step.status for step in list_job_steps(job)] == ["succeeded"]


def test_half_an_answer_of_the_dead_is_written_over(make_job: JobOf) -> None:
    job = make_job()
    held = left_by_the_dead(job, started=False)
    (step,) = list_job_steps(job)
    start_job_step(job.pk, held.generation, step.pk)
    complete_job_step(job.pk, held.generation, step.pk, succeeded(step))
    append_report_delta(job.pk, held.generation, "Now I know tha")
    ended, model = done(job, said(Text("Now I know that."), asks("y", "call-2")), said())
    told = "Deep work job is completed, but the model's last answer was empty.\n\nLooking. Now I know that."
    assert ended.report == told
    assert [item.text for item in model.requests[0].items if isinstance(item, ModelText)] == ["Looking."]


def test_whoever_holds_an_older_generation_asks_nobody_and_writes_nothing(make_job: JobOf) -> None:
    held = claim_for_run(make_job().pk)
    claim_for_run(held.pk)
    model = ScriptedModel()
    old = loop.DeepWork(held, ledger=InThisThread(), stop=Stop(), client=model, registry=registry())
    assert old.run() == loop.Left.LOST
    assert (get_job(held.pk).report, model.requests) == (None, [])


@pytest.mark.django_db(transaction=True)
def test_whoever_lost_the_job_leaves_it_to_the_other(make_job: JobOf) -> None:
    job, recaller, gone = make_job("[deep-work-block]"), Recaller(), threading.Event()
    let_go = threading.Event()

    def old() -> None:
        with pytest.raises(JobFenced):
            drive(job.pk, client=ScriptedModel(), registry=registry(recaller))
        gone.set()

    worker = threading.Thread(target=in_thread(old))
    worker.start()
    assert recaller.blocked.wait(60)
    slow = ScriptedModel(lambda _: [lambda: let_go.wait(60), *said(Text("Taken over."))])
    other = threading.Thread(
        target=in_thread(lambda: drive(job.pk, client=slow, registry=registry(), take_over=True))
    )
    other.start()
    assert gone.wait(60)
    recaller.released.set()
    let_go.set()
    other.join(60)
    assert get_job(job.pk).report == "Taken over."
    assert [step.status for step in list_job_steps(job)] == ["interrupted"]
