"""Making attempts: what must hold, in order; what they claim; and how they are read."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from base.clock import database_now
from base.errors import CodedError
from boxes.models import Box
from forge import assignments
from forge.assignments.objective import wall_clock_seconds
from forge.models import Assignment, AssignmentCredential, Issue
from forge.services import create_issue, set_member, update_repository
from runs import services as runs
from runs.models import Run
from tests.forge.attempts import code_of
from tests.forge.conftest import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


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
    def gets(seconds: int, **wanted) -> bool:
        """Whether an attempt that is made now has so long, from a moment while it was being made."""
        before = database_now()
        deadline = end(create(**wanted)[0]).deadline_at
        return before <= deadline - timedelta(seconds=seconds) <= database_now()

    now = database_now()
    near, far = now + timedelta(minutes=10), now + timedelta(days=9)
    assert gets(900)
    assert end(create(deadline_at=near.isoformat())[0]).deadline_at == near
    assert gets(900, deadline_at=far.isoformat())
    Issue.objects.filter(pk=issue.pk).update(body=ALL_HEADINGS)
    assert gets(3600)
    box_api(ttl_seconds=300)
    assert gets(300)


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


def test_the_same_key_finds_its_attempt_whatever_has_changed_since(create, box, repository):
    first, _ = create(idempotency_key="k", deadline_at=database_now() + timedelta(seconds=60))
    assignments.finish(first, "completed")
    Box.objects.filter(pk=box.pk).update(stop_requested_at=database_now())
    update_repository(repository, protected_branches=[first.branch])

    again, _ = create(idempotency_key="k", deadline_at=database_now() - timedelta(seconds=60))

    assert again.pk == first.pk


@pytest.mark.parametrize(
    "changes",
    [{"agent_id": "echo"}, {"cwd": "/srv/code"}, {"machine_id": uuid.UUID(int=1), "target_kind": "box"},
     {"prompt": "x" * 8001}, {"prompt": "a\0b"}, {"prompt": " "}],
    ids=["an agent", "a folder", "a computer", "a long prompt", "a prompt with NUL", "a blank prompt"],
)  # fmt: skip
def test_what_is_not_for_a_box_is_refused_by_name(create, changes):
    assert code_of(create, **changes) == "invalid_request"
