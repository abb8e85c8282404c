"""What the database itself refuses, whoever writes."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from forge import assignments
from forge.models import Assignment, AssignmentCredential, Comment, Issue, Push
from forge.receipts import append
from forge.services import create_comment, create_issue
from tests.forge.conftest import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def assignment(owner, repository, issue, box, no_provider) -> Assignment:
    made, _ = assignments.create(
        requesting_user=owner, repository_id=repository.pk, issue_number=issue.number, box_id=box.pk
    )
    return made


def refuses(sql: str, *parameters, match: str) -> None:
    with pytest.raises(DatabaseError, match=match), transaction.atomic():
        rows(sql, *parameters)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'running'", "state = 'admitted'", "state = 'failed'", "failure_reason = 'other'",
        "terminal_commit = repeat('a', 40)", "started_at = null", "run_id = null", "finished_at = now() - interval '1 day'",
    ],
)  # fmt: skip
def test_an_attempt_that_has_ended_is_frozen(assignment, change):
    assignments.finish(assignment, "completed", reason="done")

    refuses(
        f"update forge_assignments set {change} where id = %s", assignment.pk, match="immutable|ends once"
    )


def test_a_living_attempt_moves_freely_among_its_living_states(assignment):
    for state in ("admitted", "running", "admitted"):
        Assignment.objects.filter(pk=assignment.pk).update(state=state, run_id=None)

    assert Assignment.objects.get(pk=assignment.pk).state == "admitted"


@pytest.mark.parametrize(
    "change",
    ["branch = 'other'", "deadline_at = now() + interval '9 days'", "command = 'rm'", "creation_key = 'x'",
     "issue_id = issue_id + 1", "requesting_principal = '{}'", "id = gen_random_uuid()"],
)  # fmt: skip
def test_what_an_attempt_is_never_changes(assignment, change):
    refuses(
        f"update forge_assignments set {change} where id = %s", assignment.pk, match="identity is immutable"
    )


def test_a_credential_is_not_revoked_while_its_attempt_lives(assignment):
    refuses(
        "update forge_assignment_credentials set revoked_at = now() where assignment_id = %s",
        assignment.pk,
        match="live assignment with a revoked credential",
    )


def test_an_attempt_is_not_made_live_beside_a_revoked_credential(assignment):
    """Even if a row's freeze were lifted."""
    assignments.finish(assignment, "completed")
    rows("set constraints all immediate")
    rows("alter table forge_assignments disable trigger user")
    name = rows("select tgname from pg_trigger where tgname like 'pgtrigger_assignment_3_credential%%'")[0][0]
    rows(f'alter table forge_assignments enable trigger "{name}"')

    refuses(
        "update forge_assignments set state = 'running', finished_at = null where id = %s",
        assignment.pk,
        match="live assignment with a revoked credential",
    )
    rows("alter table forge_assignments enable trigger user")


@pytest.mark.parametrize("value", ["null", "now() + interval '1 hour'"])
def test_a_revoked_credential_stays_revoked(assignment, value):
    assignments.finish(assignment, "completed")

    refuses(
        f"update forge_assignment_credentials set revoked_at = {value} where assignment_id = %s",
        assignment.pk,
        match="a revoked credential stays revoked",
    )


def test_a_revoked_credential_gets_no_new_secret(assignment):
    assignments.finish(assignment, "completed")

    with pytest.raises(DatabaseError, match="gets no new secret"), transaction.atomic():
        AssignmentCredential.objects.filter(assignment=assignment).update(token_digest=b"1" * 32)


@pytest.mark.parametrize("change", ["id = gen_random_uuid()", "branch = 'main'", "expires_at = now() + interval '1 year'", "repository_id = gen_random_uuid()"])  # fmt: skip
def test_what_a_credential_opens_never_changes(assignment, change):
    refuses(
        f"update forge_assignment_credentials set {change} where assignment_id = %s",
        assignment.pk,
        match="credential identity is immutable",
    )


@pytest.mark.parametrize("digest", [b"", b"1" * 31, b"1" * 33])
def test_a_digest_has_32_bytes(assignment, digest):
    with pytest.raises(IntegrityError, match="digest_check"), transaction.atomic():
        AssignmentCredential.objects.filter(assignment=assignment).update(token_digest=digest)


CLAIMS = {
    "issue": "forge_assignments_one_active_issue_index",
    "box": "forge_assignments_one_active_box_index",
}


@pytest.mark.parametrize("shared", CLAIMS)
def test_one_living_attempt_for_each_issue_and_box(assignment, repository, make_box, owner, shared):
    issue = assignment.issue if shared == "issue" else create_issue(repository, title="another")
    box = assignment.conversation_box if shared == "box" else make_box(owner)

    with pytest.raises(IntegrityError, match=CLAIMS[shared]), transaction.atomic():
        insert(assignment, issue=issue, conversation_box=box)
    assignments.finish(assignment, "failed")
    insert(assignment, issue=issue, conversation_box=box)


@pytest.mark.parametrize(
    "wrong",
    [
        {"target_kind": "boat"}, {"target_kind": "computer"}, {"conversation_box": None}, {"state": "lost"},
        {"state": "completed"}, {"finished_at": datetime(2026, 6, 1, tzinfo=UTC)}, {"branch": ""}, {"terminal_commit": "HEAD"},
        {"credential_delivery_status": "maybe"},
    ],
    ids=str,
)  # fmt: skip
def test_an_attempt_has_a_shape(assignment, wrong):
    assignments.finish(assignment, "failed")

    with pytest.raises(IntegrityError, match="_check"), transaction.atomic():
        insert(assignment, **wrong)


@pytest.mark.parametrize("table", ["forge_assignments", "forge_assignment_credentials", "forge_issues",
                                   "forge_repositories", "forge_pushes", "forge_comments"])  # fmt: skip
def test_nothing_of_the_ledger_is_deleted(assignment, repository, table):
    create_comment(assignment.issue, body="hello")
    receipt(repository)

    refuses(f"delete from {table}", match="annot (update or )?delete")


def test_a_comment_belongs_to_the_repository_of_its_issue(issue, make_repository, owner):
    elsewhere = make_repository(owner, "elsewhere")

    with pytest.raises(DatabaseError, match="belongs to another repository"), transaction.atomic():
        Comment.objects.create(issue=issue, repository=elsewhere, body="lost")


def test_a_number_is_never_given_twice(repository, issue):
    refuses("update forge_repositories set last_issue_number = 0", match="never reused")
    refuses("update forge_issues set number = 7", match="identity is immutable")
    refuses("update forge_issues set id = id + 1", match="identity is immutable")
    refuses("update forge_repositories set id = gen_random_uuid()", match="identity is immutable")
    with pytest.raises(IntegrityError, match="forge_issues_number_index"), transaction.atomic():
        Issue.objects.create(repository=repository, number=issue.number, title="again")


@pytest.mark.parametrize("change", ["principal = 'user:0'", "refs = '{\"refs/heads/x\": {}}'", "link = previous_link", "sequence = 9"])  # fmt: skip
def test_a_receipt_is_never_changed(repository, change):
    receipt(repository)

    refuses(f"update forge_pushes set {change}", match="[Cc]annot update")


def test_a_receipt_follows_the_one_before_it(repository):
    receipt(repository)
    second = Push.objects.get(repository=repository)
    second.pk, second.sequence = None, 1

    with pytest.raises(DatabaseError, match="does not follow"), transaction.atomic():
        second.save(force_insert=True)
    second.previous_link = second.link
    second.save(force_insert=True)


@pytest.mark.parametrize("name", ["Upper", ".dot", "a..b", "end.", "x.git", "", "a/b", "-x"])
def test_a_repository_has_a_name_that_an_address_can_have(repository, name):
    refuses(
        "insert into forge_repositories (id, owner_id, name, description, visibility, default_branch, protected_branches,"
        " lifecycle_state, storage_key, last_issue_number) select gen_random_uuid(), owner_id, %s, '', 'private', 'main',"
        " '{}', 'failed', md5(random()::text), 0 from forge_repositories limit 1",
        name,
        match="name_check",
    )


def test_every_change_of_an_attempt_leaves_a_row(assignment):
    assignments.start_running(assignment)
    assignments.finish(assignment, "failed", reason="why_not")

    states = list(assignment.history.order_by("pgh_id").values_list("state", "failure_reason"))
    assert states == [("admitted", None), ("running", None), ("failed", "why_not")]


def receipt(repository) -> Push:
    moved = {"refs/heads/x": {"old": None, "new": "a" * 40}}
    return append(repository, "user:1", moved, duration_ms=1, now=timezone.now())


def insert(like: Assignment, **changes) -> Assignment:
    values = {
        name: getattr(like, name)
        for name in (
            "target_kind",
            "conversation",
            "conversation_box",
            "repository",
            "issue",
            "branch",
            "requesting_principal",
        )
    }
    now = timezone.now()
    values |= {"id": uuid.uuid4(), "admitted_at": now, "deadline_at": now + timedelta(minutes=1)}
    return Assignment.objects.create(**values | changes)
