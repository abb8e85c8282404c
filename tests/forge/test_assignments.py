"""Making attempts: what must hold, in order; what they claim; how they start, and end."""

from __future__ import annotations

import uuid
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from accounts.services import delete_user
from base import pump
from base.clock import database_now
from base.errors import CodedError
from base.faults import FaultRaised, armed
from boxes.models import Box
from conversations.services import delete_conversation, ensure_conversation
from forge import assignments
from forge.assignments.driver import AssignmentDriver, carry_on
from forge.assignments.finishing import reason_code
from forge.assignments.objective import wall_clock_seconds
from forge.models import Assignment, AssignmentCredential, Issue
from forge.services import create_issue, set_member, update_repository
from runs import services as runs
from runs.models import Run
from tests.forge.conftest import make_overdue, rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


@pytest.fixture
def create(owner, repository, issue, box):
    """`create(branch="x")` makes an attempt at the issue on the box, but for what is said."""

    def make(**changes):
        keywords = {
            "requesting_user": owner, "repository_id": repository.pk, "issue_number": issue.number, "box_id": box.box_id
        }  # fmt: skip
        return assignments.create(**keywords | changes)

    return make


def code_of(create, **changes) -> str:
    before = Assignment.objects.count()
    with pytest.raises(CodedError) as refused:
        create(**changes)
    assert Assignment.objects.count() == before
    return refused.value.code


def test_it_claims_the_issue_and_the_box_and_starts_the_run(create, owner, issue, box):
    assignment, plaintext = create(command="make test")

    assert (assignment.state, assignment.branch, assignment.target_kind) == (
        "running",
        "agent/issue-1",
        "box",
    )
    assert assignment.requesting_principal["id"] == str(owner.pk)
    assert assignment.credential_delivery_status == "not_applicable"
    run = Run.objects.get(pk=assignment.run_id)
    assert run.requesting_principal == {"type": "assignment", "id": str(assignment.pk)}
    assert run.command.endswith("make test\n")
    assert plaintext
    assert plaintext.split(".")[1] not in run.command


STRANGE = [
    ("boat", "invalid_assignment_target", {"target_kind": "boat"}),
    ("nobody", "conversation_not_found", {"requesting_user": None}),
    ("conversation", "conversation_not_found", {"conversation_id": uuid.uuid4}),
    ("conversation that is none", "conversation_not_found", {"conversation_id": "x"}),
    ("box", "box_not_owned", {"box_id": "bx_none"}),
    ("no box", "box_not_owned", {"box_id": None}),
    ("machine", "machine_not_found", {"machine_id": uuid.uuid4}),
    ("machine that is none", "machine_not_found", {"machine_id": "laptop"}),
    ("repository", "repository_not_found", {"repository_id": uuid.uuid4}),
    ("repository that is none", "repository_not_found", {"repository_id": "project"}),
    ("issue", "issue_not_found", {"issue_number": 99}),
    ("issue that is none", "issue_not_found", {"issue_number": "one"}),
    ("issue beyond all", "issue_not_found", {"issue_number": 10**30}),
    ("issue below all", "issue_not_found", {"issue_number": -1}),
    ("no issue", "issue_not_found", {"issue_number": None}),
    ("branch", "invalid_assignment_branch", {"branch": "a b"}),
    ("main", "protected_branch", {"branch": "main"}),
    ("master", "protected_branch", {"branch": "master"}),
    ("protected/", "protected_branch", {"branch": "protected/x"}),
    ("principal", "invalid_principal", {"requesting_principal": {"type": "agent", "id": "1"}}),
    ("deadline", "invalid_deadline", {"deadline_at": "tomorrow"}),
    ("deadline without zone", "invalid_deadline", {"deadline_at": "2099-01-01T00:00:00"}),
    ("deadline gone by", "invalid_deadline", {"deadline_at": "2001-01-01T00:00:00Z"}),
    ("blank command", "invalid_command", {"command": "  "}),
    ("NUL", "invalid_command", {"command": "a\0b"}),
    ("long command", "invalid_command", {"command": "x" * 6000}),
]


@pytest.mark.parametrize(("what", "code", "changes"), STRANGE, ids=[row[0] for row in STRANGE])
def test_it_refuses_and_writes_nothing(create, what, code, changes):
    made = {name: value() if callable(value) else value for name, value in changes.items()}

    assert code_of(create, **made) == code
    assert not AssignmentCredential.objects.exists()


ORDER = [
    "target_kind",
    "conversation_id",
    "box_id",
    "repository_id",
    "issue_number",
    "branch",
    "requesting_principal",
]
WRONG = {
    "target_kind": ("boat", "invalid_assignment_target"),
    "conversation_id": (uuid.UUID(int=1), "conversation_not_found"),
    "box_id": ("bx_none", "box_not_owned"),
    "repository_id": (uuid.UUID(int=1), "repository_not_found"),
    "issue_number": (99, "issue_not_found"),
    "branch": ("main", "protected_branch"),
    "requesting_principal": ({"type": "agent"}, "invalid_principal"),
}


@pytest.mark.parametrize("first", range(len(ORDER)), ids=lambda number: ORDER[number])
def test_the_first_thing_that_does_not_hold_is_what_the_caller_hears(create, first):
    wrong = {name: WRONG[name][0] for name in ORDER[first:]}

    assert code_of(create, **wrong) == WRONG[ORDER[first]][1]


def test_it_refuses_a_stopped_box(create, box):
    Box.objects.filter(pk=box.pk).update(stop_requested_at=timezone.now())

    assert code_of(create) == "box_stopped"


def test_another_owners_box_is_not_there(create, stranger, make_box):
    assert code_of(create, box_id=make_box(stranger).box_id) == "box_not_owned"


def test_a_private_repository_is_not_there_for_a_stranger(create, stranger, make_box):
    assert (
        code_of(create, requesting_user=stranger, box_id=make_box(stranger).box_id) == "repository_not_found"
    )


@pytest.mark.parametrize("role", ["viewer", None])
def test_it_wants_somebody_who_may_write(create, repository, stranger, make_box, role):
    update_repository(repository, visibility="public")
    if role:
        set_member(repository, stranger, role)

    assert (
        code_of(create, requesting_user=stranger, box_id=make_box(stranger).box_id)
        == "repository_not_writable"
    )


@pytest.mark.parametrize("changes", [{"default_branch": "trunk"}, {"protected_branches": ["trunk"]}], ids=str)
def test_a_branch_is_protected_as_the_repository_says_now(create, repository, changes):
    update_repository(repository, **changes)

    assert code_of(create, branch="trunk") == "protected_branch"


def test_a_repository_that_is_not_ready_is_not_there(create, repository):
    rows("update forge_repositories set lifecycle_state = 'failed'")

    assert code_of(create) == "repository_not_found"


def test_an_issue_and_a_box_have_one_attempt_at_a_time(create, repository, owner, make_box):
    first, _ = create()
    another = create_issue(repository, title="another")

    assert code_of(create, box_id=make_box(owner).box_id) == "assignment_issue_claimed"
    assert code_of(create, issue_number=another.number) == "assignment_box_busy"
    assignments.finish(first, "failed")
    runs.finish(first.run_id, "failed")
    assert create()[0].state == "running"


def test_an_issue_can_be_named_by_id(create, issue):
    assert create(issue_number=None, issue_id=issue.pk)[0].issue_id == issue.pk


def test_the_same_key_makes_one_attempt(create):
    first, plaintext = create(idempotency_key="k")

    again, nothing = create(idempotency_key="k")

    assert again.pk == first.pk
    assert plaintext
    assert nothing is None
    assert Run.objects.count() == 1


ALL_HEADINGS = "## Problem\nx\n\n**Scope**\ny\n\nAcceptance Criteria:\nz\n\n# SUCCESS METRICS\nw"
BODIES = {
    "nothing": ("", 900),
    "words in a sentence": ("The problem is the scope, acceptance criteria and success metrics.", 900),
    "three headings": ("# Problem\n# Scope\n# Acceptance criteria\n", 900),
    "four headings": (ALL_HEADINGS, 3600),
    "four headings, windows": (ALL_HEADINGS.replace("\n", "\r\n"), 3600),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_thorough_issue_gets_an_hour(kind):
    body, seconds = BODIES[kind]

    assert wall_clock_seconds(body) == seconds


def test_the_deadline_is_the_earliest_and_a_caller_only_narrows(create, box_api, issue):
    now = database_now()
    create_and_end = lambda **changes: end(create(**changes)[0])  # noqa: E731

    assert seconds_after(now, create_and_end().deadline_at) == pytest.approx(900, abs=5)
    near, far = (now + timedelta(seconds=60)).isoformat(), (now + timedelta(days=9)).isoformat()
    assert seconds_after(now, create_and_end(deadline_at=near).deadline_at) == pytest.approx(60, abs=1)
    assert seconds_after(now, create_and_end(deadline_at=far).deadline_at) == pytest.approx(900, abs=5)
    Issue.objects.filter(pk=issue.pk).update(body=ALL_HEADINGS)
    assert seconds_after(now, create_and_end().deadline_at) == pytest.approx(3600, abs=5)
    box_api(ttl_seconds=300)
    assert seconds_after(now, create_and_end().deadline_at) == pytest.approx(300, abs=5)


def seconds_after(now, moment) -> float:
    return (moment - now).total_seconds()


def end(assignment: Assignment) -> Assignment:
    assignments.finish(assignment, "failed")
    runs.finish(assignment.run_id, "failed")
    return assignment


def test_what_cannot_be_started_has_failed_with_that_code_and_claims_nothing(create, box, owner):
    runs.start_run(box.conversation_id, box.pk, {"type": "user", "id": "x"}, "sleep 60", "another")

    with pytest.raises(CodedError) as refused:
        create()

    assert refused.value.code == "box_run_in_progress"
    failed = Assignment.objects.get()
    assert (failed.state, failed.failure_reason) == ("failed", "box_run_in_progress")
    assert assignments.credential(failed).revoked_at == failed.finished_at


ENDS = [
    ("completed", {"exit_status": 0}, "completed", None),
    ("failed", {"exit_status": 3}, "failed", "run_failed"),
    ("failed", {"reason": "credential_unavailable"}, "failed", "credential_unavailable"),
    ("timed_out", {"reason": "run_duration_exceeded"}, "failed", "run_duration_exceeded"),
    ("lost", {"reason": "box_stopped"}, "failed", "box_stopped"),
    ("cancelled", {}, "cancelled", "run_cancelled"),
]


@pytest.mark.parametrize(("run_state", "how", "state", "reason"), ENDS, ids=[f"{e[0]}-{e[3]}" for e in ENDS])
def test_it_ends_as_its_run_does(create, run_state, how, state, reason):
    assignment, plaintext = create()

    runs.finish(assignment.run_id, run_state, **how)

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason, ended.next_step_at) == (state, reason, None)
    with pytest.raises(CodedError):
        assignments.authenticate(plaintext)


def test_the_first_end_stands(create):
    assignment, _ = create()
    first = assignments.finish(assignment, "failed", reason="one")

    again = assignments.finish(assignment, "completed", commit="a" * 40, reason="two")

    assert (again.state, again.failure_reason, again.finished_at) == ("failed", "one", first.finished_at)
    assert again.terminal_commit is None


def test_an_end_that_is_none_is_refused(create):
    with pytest.raises(ValueError, match="not an end"):
        assignments.finish(create()[0], "running")


REASONS = [
    (None, None), ("box_stopped", "box_stopped"), ({"code": 1}, "code_:_1"), ("x" * 500, "x" * 128),
    (SimpleNamespace(code="box_gone"), "box_gone"), ("  ", "assignment_failed"), ("a b\nc", "a_b_c"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kept"), REASONS, ids=[str(row[1])[:12] for row in REASONS])
def test_a_reason_is_a_plain_code(given, kept):
    assert reason_code(given) == kept


def test_cancelling_ends_the_run_and_the_credential(create):
    assignment, plaintext = create()

    cancelled = assignments.cancel(assignment)

    assert (cancelled.state, cancelled.failure_reason) == ("cancelled", "cancelled_by_request")
    assert cancelled.next_step_at is None
    assert Run.objects.get(pk=assignment.run_id).cancellation_requested_at is not None
    with pytest.raises(CodedError):
        assignments.authenticate(plaintext)


def test_who_may_write_may_cancel_from_the_issue(create, repository, stranger):
    assignment, _ = create()

    for refused, code in ((uuid.uuid4(), "assignment_not_found"), (assignment.pk, "repository_not_writable")):
        with pytest.raises(CodedError) as error:
            assignments.cancel_by_viewer(stranger, refused)
        assert error.value.code == code
    set_member(repository, stranger, "contributor")
    assert assignments.cancel_by_viewer(stranger, assignment.pk).failure_reason == "cancelled_by_viewer"
    with pytest.raises(CodedError) as error:
        assignments.cancel_by_viewer(stranger, assignment.pk)
    assert error.value.code == "assignment_not_live"


def test_it_expires_at_its_deadline_and_its_run_is_stopped(create):
    assignment, _ = create()
    assert assignments.expire() == 0

    make_overdue(assignment)
    assert assignments.expire() == 1

    ended = Assignment.objects.get(pk=assignment.pk)
    assert (ended.state, ended.failure_reason) == ("failed", "assignment_expired")
    assert Run.objects.get(pk=assignment.run_id).cancellation_requested_at is not None
    assert assignments.expire() == 0


def test_one_that_cannot_be_expired_costs_only_itself(create, owner, repository, make_box, monkeypatch):
    bad, _ = create()
    another = create_issue(repository, title="another")
    good, _ = create(issue_number=another.number, box_id=make_box(owner).box_id)
    make_overdue(bad, good)
    from forge.assignments import expiring

    real = expiring.finish
    monkeypatch.setattr(
        expiring,
        "finish",
        lambda one, *args, **more: real(one, *args, **more) if one.pk == good.pk else 1 / 0,
    )

    assert assignments.expire() == 1
    assert Assignment.objects.get(pk=bad.pk).state == "running"


def test_deleting_the_conversation_or_the_user_ends_it(create, owner):
    first, _ = create()

    delete_conversation(ensure_conversation(owner))

    ended = Assignment.objects.get(pk=first.pk)
    assert (ended.state, ended.failure_reason) == ("cancelled", "owner_deleted")
    delete_user(owner)
    assert code_of(create, requesting_user=type(owner).objects.get(pk=owner.pk)) == "conversation_not_found"


def test_what_its_maker_did_not_start_a_worker_starts_once(create):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create(idempotency_key="k")
    left = Assignment.objects.get()
    assert (left.state, Run.objects.count()) == ("admitted", 0)
    assert left.next_step_at is not None

    carry_on(left)
    carry_on(Assignment.objects.get())

    assert Assignment.objects.get().state == "running"
    assert Run.objects.count() == 1


def test_a_run_that_was_made_before_its_maker_died_is_found_again(create, issue):
    with pytest.raises(FaultRaised), armed("assignments.run_admitted", "raise"):
        create()
    Issue.objects.filter(pk=issue.pk).update(body="says something else by now")

    carry_on(Assignment.objects.get())

    started = Assignment.objects.get()
    assert started.run_id == Run.objects.get().pk


def test_what_an_end_left_running_a_worker_stops(create, monkeypatch):
    assignment, _ = create()
    assignments.finish(assignment, "failed", reason="machine_revoked")
    left = Assignment.objects.get()
    assert left.next_step_at is not None

    carry_on(left)

    assert Assignment.objects.get().next_step_at is None
    assert Run.objects.get().cancellation_requested_at is not None


def test_a_run_that_ended_before_the_starter_came_is_said(create, monkeypatch):
    from forge.assignments import starting

    real = starting.runs.start_run

    def starts_and_ends(*args, **more):
        run = real(*args, **more)
        return runs.finish(run.pk, "completed", 0)

    monkeypatch.setattr(starting.runs, "start_run", starts_and_ends)

    with pytest.raises(CodedError) as refused:
        create()

    assert refused.value.code == "assignment_finished"
    ended = Assignment.objects.get()
    assert (ended.state, ended.run_id, ended.started_at) == ("completed", None, None)


def test_an_end_that_was_not_heard_is_made_up_for(create):
    assignment, _ = create()
    Run.objects.filter(pk=assignment.run_id).update(
        state="completed", exit_status=0, finished_at=timezone.now()
    )

    assert assignments.catch_up() == 1
    assert assignments.catch_up() == 0
    assert Assignment.objects.get().state == "completed"


def test_attempts_are_read_oldest_first_and_tell_nothing_of_their_owner(
    create, issue, repository, owner, box
):
    first = end(create(command="secret words")[0])
    second, _ = create()
    other = create_issue(repository, title="another")

    found = assignments.attempts_for_issues([issue, other])

    assert [one.id for one in found[issue.pk]] == [first.pk, second.pk]
    assert found[other.pk] == []
    assert [one.state for one in found[issue.pk]] == ["failed", "running"]
    assert found[issue.pk][0].requester_kind == "user"
    told = str(found)
    for secret in (owner.pk, box.pk, box.box_id, box.conversation_id, "secret words", first.run_id):
        assert str(secret) not in told


def test_reading_attempts_takes_one_query(create, issue, repository, django_assert_num_queries):
    create()
    others = [create_issue(repository, title=f"{number}") for number in range(20)]

    with django_assert_num_queries(1):
        assignments.attempts_for_issues([issue, *others])


@pytest.mark.django_db(transaction=True)
def test_the_driver_starts_what_is_due_and_stops_what_is_over(create):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create()
    driver = AssignmentDriver()
    assert pump.run_once([driver]).claimed == 0  # its maker's turn
    rows(
        "update forge_assignments set next_step_at = clock_timestamp(), lease_expires_at = clock_timestamp()"
    )
    assert driver.seconds_until_due() == 0

    assert pump.run_once([driver]).settled == 1

    started = Assignment.objects.get()
    assert started.state == "running"
    assert started.next_step_at == started.deadline_at
    assignments.finish(started, "failed")
    assert pump.run_once([driver]).settled == 1
    assert Run.objects.get().cancellation_requested_at is not None
    assert driver.seconds_until_due() is None


@pytest.mark.django_db(transaction=True)
def test_a_step_that_breaks_is_taken_again_later(create, monkeypatch):
    with pytest.raises(FaultRaised), armed("assignments.admitted", "raise"):
        create()
    rows(
        "update forge_assignments set next_step_at = clock_timestamp(), lease_expires_at = clock_timestamp()"
    )

    with armed("assignments.admitted", "raise"):
        pump.run_once([AssignmentDriver()])

    left = Assignment.objects.get()
    assert (left.state, left.step_failures, left.lease_expires_at) == ("admitted", 1, None)
    assert left.next_step_at > database_now()


def test_the_same_key_finds_its_attempt_whatever_has_changed_since(create, box, repository):
    first, _ = create(idempotency_key="k", deadline_at=database_now() + timedelta(seconds=60))
    assignments.finish(first, "completed")
    Box.objects.filter(pk=box.pk).update(stop_requested_at=database_now())
    update_repository(repository, protected_branches=[first.branch])

    again, _ = create(idempotency_key="k", deadline_at=database_now() - timedelta(seconds=60))

    assert again.pk == first.pk


@pytest.mark.parametrize(
    "changes",
    [{"agent_id": "echo"}, {"cwd": "/work"}, {"machine_id": uuid.UUID(int=1), "target_kind": "box"},
     {"prompt": "x" * 8001}, {"prompt": "a\0b"}, {"prompt": " "}],
    ids=["an agent", "a folder", "a computer", "a long prompt", "a prompt with NUL", "a blank prompt"],
)  # fmt: skip
def test_what_is_not_for_a_box_is_refused_by_name(create, changes):
    assert code_of(create, **changes) == "invalid_request"
