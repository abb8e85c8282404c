"""The end of a job: report, message, row, and how it is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.services import delete_user
from base.pump import Holder
from conversations.models import Message
from conversations.services import ConversationNotFound, delete_conversation, ensure_conversation
from tests.work.conftest import DEAD_WORKER, JobOf, delegation_attributes, machine_for, new_user, outcome_of
from tests.work.guarded import WRONG_DELEGATIONS
from work.errors import (
    InvalidTransition,
    JobInvalid,
    JobNotFound,
    MachineNotFound,
    MachineRevoked,
    PairingNotFound,
)
from work.machines import approve_pairing, revoke_machine, start_pairing
from work.models import Incident, Job, Machine
from work.services import (
    append_report_delta,
    cancel_active_delegations,
    cancel_job,
    claim_due,
    claim_for_run,
    complete_job_step,
    create_job,
    finish_job,
    get_job,
    request_job_step,
)

pytestmark = pytest.mark.django_db


def test_the_models_last_word_is_the_report(running: Job) -> None:
    append_report_delta(running.pk, running.generation, "Let me look. ")

    finished = finish_job(running.pk, "completed", final_text="  Found it.\n", generation=running.generation)

    assert finished.report == "Found it."
    assert get_job(running.pk).report == "Found it."


def test_an_end_at_a_limit_with_a_last_word_is_that_word(running: Job) -> None:
    finished = finish_job(
        running.pk, "budget_exhausted", error_code="tool_call_limit_reached", final_text="Partial report."
    )

    assert (finished.report, finished.error_code) == ("Partial report.", "tool_call_limit_reached")


@pytest.mark.parametrize(
    ("status", "code", "line"),
    [
        ("failed", "provider_failure", "Deep work job failed (provider_failure)."),
        ("interrupted", "runtime_restarted", "Deep work job was interrupted (runtime_restarted)."),
        ("cancelled", "cancelled", "Deep work job was cancelled."),
        (
            "budget_exhausted",
            "wall_clock_exceeded",
            "Deep work job was stopped at a limit (wall_clock_exceeded).",
        ),
    ],
)
def test_half_a_text_never_reads_like_success(running: Job, status: str, code: str, line: str) -> None:
    append_report_delta(running.pk, running.generation, "Everything is fine")

    finished = finish_job(running.pk, status, error_code=code)

    assert finished.report.splitlines() == [line, "", "Everything is fine"]


def test_a_job_without_a_text_says_what_was_done(running: Job) -> None:
    step = request_job_step(running.pk, running.generation, provider_call_id="1", tool_name="box_run")
    complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))

    finished = finish_job(running.pk, "failed", error_code="provider_failure")

    assert "box_run:succeeded" in finished.report
    assert running.goal in finished.report


def test_a_full_text_leaves_room_for_how_it_ended(running: Job) -> None:
    append_report_delta(running.pk, running.generation, "é" * 4_000)

    finished = finish_job(running.pk, "failed", error_code="provider_failure")

    assert finished.report.startswith("Deep work job failed (provider_failure).")
    assert 7_990 < len(finished.report.encode()) <= 8_000


def test_the_first_end_stands(running: Job) -> None:
    first = finish_job(running.pk, "completed", final_text="first")

    again = finish_job(running.pk, "failed", error_code="late", generation=99)

    assert (again.status, again.report, again.completed_at) == ("completed", "first", first.completed_at)
    assert Message.objects.filter(work_job_id=running.pk).count() == 1


@pytest.mark.parametrize("status", ["completed", "budget_exhausted"])
def test_a_job_that_never_ran_cannot_have_succeeded(make_job: JobOf, status: str) -> None:
    with pytest.raises(InvalidTransition):
        finish_job(make_job().pk, status, final_text="x")


def test_only_an_end_is_an_end(running: Job) -> None:
    with pytest.raises(ValueError, match="not an end"):
        finish_job(running.pk, "running")
    with pytest.raises(JobNotFound):
        finish_job(running.conversation_id, "failed")


@pytest.mark.parametrize(("given", "kept"), [("é" * 65, "work_job_failure"), (5, "work_job_failure"), ("", "work_job_failure"), ("x" * 128, "x" * 128), (None, None)])  # fmt: skip
def test_a_code_is_kept_if_it_can_be(running: Job, given: Any, kept: str | None) -> None:
    assert finish_job(running.pk, "cancelled", error_code=given).error_code == kept


def test_counts_and_usage_may_be_given_with_the_end(running: Job) -> None:
    finish_job(
        running.pk, "completed", final_text="x", usage={"input_tokens": 3}, counts={"tool_call_count": 2}
    )

    job = get_job(running.pk)
    assert (job.usage, job.tool_call_count, job.continuation_count) == ({"input_tokens": 3}, 2, 0)
    assert (job.lease_owner, job.lease_expires_at, job.next_step_at) == (None, None, None)


def test_a_failed_job_is_an_incident_and_a_completed_one_is_none(make_job: JobOf) -> None:
    for status in ("completed", "cancelled", "interrupted", "budget_exhausted", "failed"):
        finish_job(claim_for_run(make_job().pk).pk, status, error_code="duplicate_tool_execution_claim")

    incident = Incident.objects.get()
    assert (incident.code, incident.severity) == ("duplicate_tool_execution_claim", "anomalous")


@pytest.mark.parametrize(
    ("status", "code", "recorded"),
    [
        ("completed", None, None),
        ("failed", "timeout", "delegation_timeout"),
        ("failed", "refused", "delegation_refused"),
        ("cancelled", "cancelled", "delegation_cancelled"),
        ("failed", "machine_offline", "machine_offline"),
        ("failed", "anything", "delegation_failed"),
    ],
)
def test_the_end_of_a_delegation_is_recorded(
    make_delegation: JobOf, status: str, code: str | None, recorded: str | None
) -> None:
    job = claim_for_run(make_delegation("ended").pk)

    finish_job(job.pk, status, error_code=code, final_text="x")

    assert [incident.code for incident in Incident.objects.all()] == ([recorded] if recorded else [])


# --- cancelling


def test_a_held_job_is_asked_to_stop_and_the_request_outlives_its_worker(running: Job) -> None:
    stopping = cancel_job(running.pk)
    assert (stopping.status, stopping.cancel_code) == ("running", "cancelled")
    assert cancel_job(running.pk).cancel_requested_at == stopping.cancel_requested_at

    Job.objects.filter(pk=running.pk).update(lease_owner=DEAD_WORKER, next_step_at=timezone.now())

    assert claim_due(Holder(), 5) == []
    ended = get_job(running.pk)
    assert (ended.status, ended.error_code) == ("cancelled", "cancelled")


def test_a_job_that_its_dead_worker_holds_is_cancelled_at_once(make_job: JobOf) -> None:
    job = claim_for_run(make_job().pk, Holder(owner=DEAD_WORKER))

    assert cancel_job(job.pk).status == "cancelled"


def test_an_ended_job_is_not_cancelled(running: Job) -> None:
    finished = finish_job(running.pk, "completed", final_text="x")

    assert cancel_job(running.pk).status == "completed"
    assert get_job(running.pk).cancel_requested_at == finished.cancel_requested_at is None


def test_every_delegation_of_a_conversation_but_one_is_cancelled(make_delegation: JobOf) -> None:
    first = make_delegation("several")
    values = {
        name: getattr(first, name)
        for name in ("conversation_id", "owner_visitor_id", "machine_id", "surface", "goal", "kind", "delegation",
                     "authority_snapshot", "budget_snapshot")
    }  # fmt: skip
    second, work = (
        create_job(**values),
        create_job(
            conversation_id=first.conversation_id, owner_visitor_id=first.owner_visitor_id, goal="deep work"
        ),
    )

    assert cancel_active_delegations(first.conversation, except_job=second.pk) == 1

    assert [get_job(job.pk).status for job in (first, second, work)] == ["cancelled", "queued", "queued"]


def test_a_deleted_conversation_ends_its_jobs_and_keeps_no_text(make_job: JobOf) -> None:
    job = make_job()

    delete_conversation(job.conversation)

    ended = get_job(job.pk)
    assert (ended.status, ended.error_code, ended.report_message) == ("cancelled", "owner_deleted", None)


def test_a_deleted_user_has_no_jobs_and_no_machines(make_delegation: JobOf) -> None:
    job = make_delegation("leaving")

    delete_user(job.machine.user)

    assert get_job(job.pk).status == "cancelled"
    assert Machine.objects.get(pk=job.machine_id).status == "revoked"
    assert not Message.objects.filter(work_job_id=job.pk).exists()


def test_a_revoked_machine_ends_what_was_delegated_to_it(make_delegation: JobOf) -> None:
    job, other = make_delegation("revoked"), make_delegation("kept")

    assert revoke_machine(job.machine)

    ended = get_job(job.pk)
    assert (ended.status, ended.error_code) == ("cancelled", "machine_revoked")
    assert get_job(other.pk).status == "queued"


# --- what is accepted


def test_a_job_is_told_what_is_wrong_with_it_before_the_database_is(make_job: JobOf) -> None:

    for keywords, field in (
        ({"goal": " "}, "goal"),
        ({"goal": "x" * 2_001}, "goal"),
        ({"goal": "\0"}, "goal"),
        ({"kind": "coding"}, "kind"),
        ({"surface": "smell"}, "surface"),
        ({"context_hint": "x" * 2_001}, "context_hint"),
        ({"requesting_tool_step_ref": "x" * 257}, "requesting_tool_step_ref"),
        ({"token_budget": 0}, "token_budget"),
        ({"cost_budget_microusd": True}, "cost_budget_microusd"),
        ({"delegation": {}}, "delegation"),
        ({"kind": "delegation"}, "machine_id"),
    ):
        with pytest.raises(JobInvalid) as refused:
            make_job(**keywords)
        assert field in refused.value.fields


def test_a_delegation_is_checked_as_the_database_checks_it(make_delegation: JobOf) -> None:

    admitted = make_delegation("checked")
    for field, wrong in WRONG_DELEGATIONS:
        values = delegation_attributes(admitted.conversation, admitted.machine, "x")
        values[field] |= wrong
        with pytest.raises(JobInvalid):
            create_job(**values)
    assert Job.objects.count() == 1


def test_no_job_for_anothers_conversation_or_machine_or_a_revoked_one(make_delegation: JobOf) -> None:

    job = make_delegation("mine")
    values = delegation_attributes(job.conversation, job.machine, "x")
    other = ensure_conversation("another")
    with pytest.raises(JobInvalid, match="owner_visitor_id"):
        create_job(**values | {"owner_visitor_id": other.visitor_id})
    foreign = machine_for(new_user("stranger-of-job"), "foreign")
    with pytest.raises(MachineNotFound):
        create_job(**delegation_attributes(job.conversation, foreign, "x"))
    with pytest.raises(JobInvalid, match="authority_snapshot"):
        create_job(**values | {"authority_snapshot": values["authority_snapshot"] | {"roots": ["/"]}})
    revoke_machine(job.machine)
    with pytest.raises(MachineRevoked):
        create_job(**values)
    delete_conversation(job.conversation)
    with pytest.raises(ConversationNotFound):
        create_job(**values)


def test_a_stranger_finds_no_job(make_delegation: JobOf) -> None:
    job = make_delegation("found")

    assert get_job(job.pk, job.machine.user).pk == job.pk
    for wanted, user in ((job.pk, new_user("stranger-of-found")), ("nonsense", None)):
        with pytest.raises(JobNotFound):
            get_job(wanted, user)


def test_a_deleted_user_gets_no_more_jobs_and_no_more_machines(make_delegation: JobOf) -> None:
    job = make_delegation("gone")
    user, pairing = job.machine.user, start_pairing(name="late", tier="probe")
    delete_user(user)

    with pytest.raises(ConversationNotFound):
        create_job(conversation_id=job.conversation_id, owner_visitor_id=job.owner_visitor_id, goal="late")
    with pytest.raises(PairingNotFound):
        approve_pairing(user, pairing.code)
