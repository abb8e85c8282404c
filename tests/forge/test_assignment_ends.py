"""How attempts end: with their run, at their deadline, by whoever may cancel them, or with their owner."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import pytest
from django.utils import timezone

from accounts.services import delete_user
from base.errors import CodedError
from conversations.services import delete_conversation, ensure_conversation
from forge import assignments
from forge.assignments.finishing import reason_code
from forge.models import Assignment
from forge.services import create_issue, set_member
from runs import services as runs
from runs.models import Run
from tests.forge.attempts import code_of
from tests.forge.conftest import make_overdue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


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


def test_an_end_that_was_not_heard_is_made_up_for(create):
    assignment, _ = create()
    Run.objects.filter(pk=assignment.run_id).update(
        state="completed", exit_status=0, finished_at=timezone.now()
    )

    assert assignments.catch_up() == 1
    assert assignments.catch_up() == 0
    assert Assignment.objects.get().state == "completed"
