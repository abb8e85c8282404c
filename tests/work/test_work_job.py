"""The life of a job in the ledger, from its admission to its report."""

from __future__ import annotations

import re
import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from base.pump import Holder
from conversations.models import Message
from conversations.services import ensure_conversation, get_conversation_owner, provider_messages
from tests.work.conftest import DEAD_WORKER, JobOf, delegation_attributes, in_thread, machine_for, new_user
from tests.work.scripted import Recaller, ScriptedModel, registry
from work.conf import work_settings
from work.errors import WorkError
from work.incidents import list_recent
from work.models import Incident, Job
from work.services import (
    cancel_job,
    checkpoint_delegation_session,
    claim_due,
    claim_for_run,
    create_job,
    finish_job,
    get_job,
    list_job_steps,
    recover_interrupted_jobs,
    request_job_step,
    start_job_step,
)
from work.worker import drive

pytestmark = pytest.mark.django_db


def test_a_multi_step_job_completes_with_durable_steps_and_a_report_message(make_job: JobOf) -> None:
    job, recaller = make_job("[deep-work-job]"), Recaller()

    drive(job.id, client=ScriptedModel(), registry=registry(recaller))

    finished = get_job(job.id)
    assert finished.status == "completed"
    assert finished.report == "Deep work report: both lookarounds succeeded; found dw-alpha and dw-beta."
    assert finished.error_code is None
    assert finished.model_id == work_settings().model
    assert re.fullmatch(r"[0-9a-f]{64}", finished.instruction_digest)
    assert re.fullmatch(r"[0-9a-f]{64}", finished.tool_catalog_digest)
    assert finished.tool_call_count == 2
    assert finished.usage["input_tokens"] > 0

    scope_ref = f"conversation:{job.conversation_id}"
    assert recaller.seen == [("dw-alpha", scope_ref), ("dw-beta", scope_ref)]

    first, second = list_job_steps(finished)
    assert (first.tool_name, first.status) == ("recall_messages", "succeeded")
    assert first.provider_call_id == "call-deep-work-1"
    assert first.result == {"matches": ["Found dw-alpha in this conversation."]}
    assert (second.status, second.provider_call_id) == ("succeeded", "call-deep-work-2")

    message = Message.objects.get(pk=finished.report_message_id)
    assert (message.role, message.status) == ("assistant", "complete")
    assert (message.conversation_id, message.work_job_id) == (job.conversation_id, finished.id)
    assert message.content == finished.report
    said = [(message.role, message.content) for message in provider_messages(job.conversation_id)]
    assert ("assistant", finished.report) in said


def test_a_tool_free_goal_completes_with_the_model_text_as_the_report(make_job: JobOf) -> None:
    job = make_job("just summarize the plan")

    drive(job.id, client=ScriptedModel(), registry=registry())

    finished = get_job(job.id)
    assert finished.status == "completed"
    assert finished.report == "I hear you. You said: just summarize the plan"
    assert list_job_steps(finished) == []
    assert Message.objects.get(pk=finished.report_message_id).content == finished.report


def test_the_tool_call_ceiling_forces_a_tool_free_partial_report_and_an_explicit_terminal_status(
    make_job: JobOf,
) -> None:
    job = make_job("[deep-work-limit]")

    drive(job.id, client=ScriptedModel(), registry=registry())

    finished = get_job(job.id)
    assert finished.status == "budget_exhausted"
    assert finished.error_code == "tool_call_limit_reached"
    assert finished.report == "Deep work partial report: the host limit ended the search (failed)."
    steps = list_job_steps(finished)
    assert len(steps) == 33
    *completed, limited = steps
    assert all(step.status == "succeeded" for step in completed)
    assert limited.status == "failed"
    assert limited.error["code"] == "tool_call_limit_reached"
    assert Message.objects.get(pk=finished.report_message_id).content == finished.report


def test_startup_recovery_resumes_an_orphaned_running_job_instead_of_burying_it(make_job: JobOf) -> None:
    job = make_job("[deep-work-block]")
    before = claim_for_run(job.id, Holder(owner=DEAD_WORKER))
    step = request_job_step(
        job.id,
        before.generation,
        provider_call_id="call-deep-work-block",
        tool_name="recall_messages",
        arguments='{"query": "block"}',
    )
    start_job_step(job.id, before.generation, step.pk)  # and then its worker died
    assert get_job(job.id).status == "running"

    recover_interrupted_jobs()
    final = drive(job.id, client=ScriptedModel(), registry=registry())

    assert final.is_terminal
    assert final.generation > before.generation
    assert final.started_at == before.started_at
    assert final.status != "interrupted"
    assert final.error_code != "runtime_restarted"
    assert [step.status for step in list_job_steps(job.id)] == ["interrupted"]
    assert Incident.objects.filter(code="runtime_restarted", correlation_ref=str(job.id)).count() == 1


@pytest.mark.django_db(transaction=True)
def test_startup_recovery_leaves_an_already_running_singleton_untouched(make_job: JobOf) -> None:
    job, recaller = make_job("[deep-work-block]"), Recaller()
    worker = threading.Thread(
        target=in_thread(lambda: drive(job.id, client=ScriptedModel(), registry=registry(recaller)))
    )
    worker.start()
    assert recaller.blocked.wait(60)
    running = get_job(job.id)
    assert running.status == "running"

    recover_interrupted_jobs()

    undisturbed = get_job(job.id)
    assert (undisturbed.status, undisturbed.generation) == ("running", running.generation)
    assert claim_due(Holder(), 10) == []
    assert not Incident.objects.exists()
    recaller.released.set()
    worker.join(60)
    final = get_job(job.id)
    assert (final.status, final.generation) == ("completed", running.generation)


def test_startup_recovery_schedules_transient_cluster_startup_failures_without_burying_the_job(
    make_job: JobOf,
) -> None:
    job = make_job("recover after cluster startup")
    events: list[tuple[Any, ...]] = []

    class ClusterStarting(WorkError):
        code = "cluster_starting"

    def start_worker(kind: str, job_id: UUID) -> None:
        events.append(("start failed", kind, job_id))
        raise ClusterStarting

    def schedule_retry(scheduled: Job, code: str, starter: Any) -> None:
        events.append(("retry scheduled", scheduled.id, code, starter))

    recover_interrupted_jobs(start_worker=start_worker, schedule_retry=schedule_retry)

    assert events == [
        ("start failed", "deep_work", job.id),
        ("retry scheduled", job.id, "cluster_starting", start_worker),
    ]
    recovered = get_job(job.id)
    assert (recovered.status, recovered.error_code, recovered.report) == ("queued", None, None)


def test_terminal_jobs_are_immutable_and_active_jobs_cannot_skip_transitions(make_job: JobOf) -> None:
    job = claim_for_run(make_job("just a report").id)
    finished = finish_job(job.id, "completed", final_text="a report")
    assert finished.status == "completed"

    with pytest.raises(DatabaseError, match="terminal work job is immutable"), transaction.atomic():
        Job.objects.filter(pk=finished.pk).update(report="rewritten history")

    queued = make_job("never started")
    with pytest.raises(DatabaseError, match="invalid queued work job transition"), transaction.atomic():
        Job.objects.filter(pk=queued.pk).update(status="completed", completed_at=timezone.now(), report="x")


def test_an_interrupted_delegation_job_reports_honestly__not_with_deep_work_text(
    make_delegation: JobOf,
) -> None:
    job = make_delegation("deleg-report-browser")

    finished = finish_job(job.id, "interrupted", error_code="runtime_restarted")

    assert finished.status == "interrupted"
    assert (
        "Delegation to claude on devin-test-deleg-report-browser was interrupted by a server restart"
        in finished.report
    )
    assert "Deep work job" not in finished.report
    assert "no tool calls had completed" not in finished.report


def test_cancel_job_finishes_a_queued_job_as_cancelled_with_an_honest_report(make_delegation: JobOf) -> None:
    job = make_delegation("deleg-cancel-browser")

    finished = cancel_job(job.id)

    assert (finished.status, finished.error_code) == ("cancelled", "cancelled")
    assert "was cancelled" in finished.report


def test_checkpoint_delegation_session_persists_the_session_id_only_for_the_live_generation(
    make_delegation: JobOf,
) -> None:
    job = make_delegation("deleg-ckpt-browser", "Delegate to claude on devin-test: do work")
    running = claim_for_run(job.id)

    assert checkpoint_delegation_session(job.id, running.generation, "sess-live") == "ok"
    assert get_job(job.id).delegation["resume_session_id"] == "sess-live"
    assert checkpoint_delegation_session(job.id, running.generation - 1, "sess-zombie") == "fenced"
    assert get_job(job.id).delegation["resume_session_id"] == "sess-live"

    finish_job(job.id, "cancelled", error_code="cancelled")
    assert checkpoint_delegation_session(job.id, running.generation, "sess-late") == "fenced"
    assert get_job(job.id).delegation["resume_session_id"] == "sess-live"


def test_delegation_execution_identity_is_immutable_except_for_its_fenced_session_checkpoint(
    make_delegation: JobOf,
) -> None:
    job = make_delegation("deleg-immutable-execution", "Delegate to claude on devin-test: do work")
    same = {
        "conversation_id": job.conversation_id,
        "owner_visitor_id": job.owner_visitor_id,
        "machine_id": job.machine_id,
        "surface": "text",
        "kind": "delegation",
        "budget_snapshot": job.budget_snapshot,
    }

    with pytest.raises(DatabaseError, match="work job identity is immutable"), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(
            delegation=job.delegation | {"prompt": "replace the admitted prompt"}
        )

    with pytest.raises(IntegrityError, match="work_jobs_delegation_identity"), transaction.atomic():
        Job.objects.create(
            **same,
            goal="A mismatched budget must fail",
            delegation=job.delegation | {"timeout_ms": 1},
            authority_snapshot=job.authority_snapshot,
        )

    with (
        pytest.raises(DatabaseError, match="work job machine authority snapshot mismatch"),
        transaction.atomic(),
    ):
        Job.objects.create(
            **same,
            goal="A false machine authority snapshot must fail",
            delegation=job.delegation,
            authority_snapshot=job.authority_snapshot | {"roots": ["/tmp/foreign-root"]},
        )


def test_boot_recovery_records_a_degraded_incident_for_each_interrupted_job() -> None:
    user = new_user("deleg-recover")
    conversation = ensure_conversation(user)
    owner = get_conversation_owner(conversation)
    machine = machine_for(user, "deleg-recover")
    job = create_job(
        **delegation_attributes(conversation, machine, "Delegate to claude on devin-test: do work")
    )

    recover_interrupted_jobs()

    assert get_job(job.id).status != "interrupted"
    incident = next(found for found in list_recent(owner.user_id) if found.code == "runtime_restarted")
    assert incident.severity == "degraded"
    assert incident.surface == "delegation"


def test_the_database_rejects_a_delegated_machine_owned_by_another_account(make_delegation: JobOf) -> None:
    admitted = make_delegation(
        "deleg-owner-boundary", "Delegate to claude on devin-test: preserve the owner boundary"
    )
    foreign = machine_for(new_user("deleg-owner-outsider"), "deleg-owner-outsider")

    with pytest.raises(DatabaseError, match="work job machine owner mismatch"), transaction.atomic():
        Job.objects.create(
            conversation_id=admitted.conversation_id,
            owner_visitor_id=admitted.owner_visitor_id,
            machine_id=foreign.id,
            surface="text",
            goal="Cross-account delegation must fail",
            kind="delegation",
            delegation=admitted.delegation | {"machine_id": str(foreign.id)},
            authority_snapshot=admitted.authority_snapshot,
            budget_snapshot=admitted.budget_snapshot,
        )


def test_the_report_is_ordinary_evidence_of_the_conversation(make_job: JobOf) -> None:
    job = claim_for_run(make_job("[deep-work-job]").id)

    finished = finish_job(job.id, "completed", final_text="found dw-alpha and dw-beta")

    message = Message.objects.get(pk=finished.report_message_id)
    assert (message.role, message.status, message.content) == ("assistant", "complete", finished.report)
    assert (message.conversation_id, message.work_job_id) == (job.conversation_id, job.id)
    assert [said.content for said in provider_messages(job.conversation_id)] == [finished.report]
