"""Attempts on paired computers: a delegation with what was agreed, a credential only where its owner allows it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from base import hooks
from base.clock import database_now
from base.errors import CodedError
from base.faults import FaultRaised, armed
from forge import assignments
from forge.assignments.driver import carry_on
from forge.models import Assignment
from tests.forge.conftest import rows
from tests.forge.machines import paired_machine
from work import services as jobs
from work.machines import revoke_machine
from work.machines.changing import change_machine
from work.models import Job, Machine, MachineChannel

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(owner) -> Machine:
    """A computer that is there."""
    made, _ = paired_machine(owner)
    MachineChannel.objects.create(machine=made, epoch=1, connected_at=database_now())
    Machine.objects.filter(pk=made.pk).update(
        last_seen_at=database_now(), last_probe={"agents": [{"id": "echo", "name": "Echo"}]}
    )
    return Machine.objects.get(pk=made.pk)


@pytest.fixture(autouse=True)
def answers(monkeypatch) -> dict[str, object]:
    """What the machine says when it is asked, in the place of a connector. `test_asking_computers` has one that speaks."""
    answers: dict[str, object] = {"allowed": True}
    monkeypatch.setattr("work.channel.asking.ask", lambda machine, kind, body, *, seconds: dict(answers))
    return answers


@pytest.fixture
def create(owner, repository, issue, machine):
    def make(**changes):
        keywords = {
            "requesting_user": owner, "repository_id": repository.pk, "issue_number": issue.number,
            "machine_id": machine.pk, "agent_id": "echo", "cwd": "/srv/code",
        }  # fmt: skip
        return assignments.create(**keywords | changes)

    return make


def code_of(create, **changes) -> str:
    with pytest.raises(CodedError) as refused:
        create(**changes)
    return refused.value.code


def test_it_delegates_what_the_issue_says(create, machine):
    assignment, plaintext = create()

    assert (assignment.state, assignment.target_kind) == ("running", "computer")
    assert assignment.credential_delivery_status == "pending"
    job = Job.objects.get(pk=assignment.work_job_id)
    assert (job.kind, job.machine_id, job.requesting_tool_step_ref) == (
        "delegation",
        machine.pk,
        f"assignment:{assignment.pk}",
    )
    assert job.delegation["prompt"].startswith("Issue #1: Mend the program")
    assert "agent/issue-1" in job.delegation["prompt"]
    assert 890_000 < job.delegation["timeout_ms"] <= 900_000
    assert job.authority_snapshot["machine_tier"] == machine.tier
    assert plaintext.split(".")[1] not in str(job.delegation)


def test_a_prompt_of_the_callers_stands_alone(create):
    assignment, _ = create(prompt="Just look.")

    assert Job.objects.get(pk=assignment.work_job_id).delegation["prompt"] == "Just look."


def test_the_time_of_the_job_is_what_is_left(create):
    assignment, _ = create(deadline_at=database_now() + timedelta(seconds=60))

    assert 50_000 < Job.objects.get(pk=assignment.work_job_id).delegation["timeout_ms"] <= 60_000


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"agent_id": "other"}, "agent_not_available"),
        ({"cwd": "/srv/code/../etc"}, "cwd_not_allowed"),
        ({"cwd": "/srv/code-beside"}, "cwd_not_allowed"),
        ({"command": "make"}, "invalid_request"),
        ({"box_id": "bx_1"}, "invalid_request"),
    ],
    ids=str,
)
def test_what_the_machine_does_not_offer_is_refused_and_nothing_is_written(create, changes, code):
    assert code_of(create, **changes) == code
    assert not Assignment.objects.exists()


def test_what_the_machine_refuses_has_failed_without_a_job(create, answers):
    answers |= {"allowed": False, "code": "cwd_not_allowed"}

    assert code_of(create) == "cwd_not_allowed"

    assert not Job.objects.exists()
    failed = Assignment.objects.get()
    assert (failed.state, failed.failure_reason) == ("failed", "cwd_not_allowed")


def test_machines_that_are_switched_off_get_none(create, settings):
    settings.MACHINES = {"enabled": False}

    assert code_of(create) == "computer_controller_disabled"


@pytest.mark.parametrize(
    "changes", [{"agent_id": None}, {"cwd": " "}, {"prompt": "x" * 8001}, {"agent_id": "x" * 65}], ids=str
)
def test_what_no_delegation_can_be_is_refused(create, changes):
    assert code_of(create, **changes) == "invalid_request"
    assert not Assignment.objects.exists()


def test_it_wants_a_computer_that_is_there(create, machine, stranger):
    theirs, _ = paired_machine(stranger)
    assert code_of(create, machine_id=theirs.pk) == "machine_not_found"
    Machine.objects.filter(pk=machine.pk).update(last_seen_at=database_now() - timedelta(hours=1))
    assert code_of(create) == "machine_offline"
    revoke_machine(machine)
    assert code_of(create) == "machine_revoked"


def test_a_computer_has_one_attempt_at_a_time(create, repository):
    from forge.services import create_issue

    create()

    assert (
        code_of(create, issue_number=create_issue(repository, title="another").number)
        == "assignment_machine_busy"
    )


ENDS = [
    ("completed", None, "completed", None), ("failed", "delegation_timeout", "failed", "delegation_timeout"),
    ("interrupted", None, "failed", "job_interrupted"), ("cancelled", "cancelled", "cancelled", "cancelled"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "code", "state", "reason"), ENDS, ids=[row[0] for row in ENDS])
def test_it_ends_as_its_job_does(create, status, code, state, reason):
    assignment, plaintext = create()
    jobs.claim_for_run(assignment.work_job_id)

    jobs.finish_job(assignment.work_job_id, status, error_code=code)

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason) == (state, reason)
    with pytest.raises(CodedError):
        assignments.authenticate(plaintext)


def test_a_credential_is_handed_over_where_the_owner_allows_it(create, machine):
    change_machine(machine, {"scoped_forge_credentials_enabled": True})
    assignment, first = create()
    job = Job.objects.get(pk=assignment.work_job_id)

    [handed] = hooks.job_credential(job)

    assert (handed["origin"], handed["username"], handed["branch"]) == (
        "http://testserver",
        "x",
        "agent/issue-1",
    )
    assert handed["clone_url"] == "http://testserver/owner/project.git"
    assert assignments.authenticate(handed["secret"]).assignment_id == assignment.pk
    with pytest.raises(CodedError):
        assignments.authenticate(first)
    delivered = Assignment.objects.get(pk=assignment.pk)
    assert (delivered.credential_delivery_status, delivered.credential_delivery_reason) == ("enabled", None)


def test_where_it_is_not_allowed_the_attempt_says_so(create):
    assignment, _ = create()

    assert hooks.job_credential(Job.objects.get(pk=assignment.work_job_id)) == [None]

    refused = Assignment.objects.get(pk=assignment.pk)
    assert refused.credential_delivery_status == "refused"
    assert refused.credential_delivery_reason == "computer_scoped_forge_credentials_not_enabled"


def test_a_job_of_no_attempt_gets_none(create):
    assignment, _ = create()
    assignments.finish(assignment, "failed")

    assert hooks.job_credential(Job.objects.get(pk=assignment.work_job_id)) == [None]


def test_revoking_the_computer_ends_the_attempt(create, machine):
    assignment, _ = create()

    revoke_machine(machine)

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason) == ("failed", "machine_revoked")
    assert Job.objects.get(pk=assignment.work_job_id).is_terminal


def test_switching_credentials_off_ends_the_attempt(create, machine):
    change_machine(machine, {"scoped_forge_credentials_enabled": True})
    assignment, _ = create()

    change_machine(machine, {"scoped_forge_credentials_enabled": False})

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason) == ("failed", "scoped_forge_credentials_disabled")


def test_cancelling_it_cancels_the_job(create):
    assignment, _ = create()

    assignments.cancel(assignment)

    assert Job.objects.get(pk=assignment.work_job_id).status == "cancelled"
    assert Assignment.objects.get().next_step_at is None


def test_a_maker_that_died_leaves_the_start_to_a_worker_and_there_is_one_job(create):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create()
    assert Job.objects.count() == 0

    carry_on(Assignment.objects.get())
    rows("update forge_assignments set state = 'admitted'")
    carry_on(Assignment.objects.get())

    assert Job.objects.count() == 1
