"""Many at once: numbers without gaps, and no attempt that lives with a dead credential."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from base.errors import CodedError
from boxes.models import Box
from conversations.services import ensure_conversation
from forge import assignments
from forge.models import Assignment, AssignmentCredential, Issue
from forge.services import create_issue
from runs import services as runs
from runs.models import Run
from tests.threads import all_at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_50_issues_made_at_once_have_the_numbers_1_to_50(repository):
    made = all_at_once(lambda number: create_issue(repository, title=f"{number}"), range(50), threads=50)

    assert sorted(issue.number for issue in made) == list(range(1, 51))


def test_a_number_that_was_not_used_is_given_again(repository):
    with transaction.atomic():
        create_issue(repository, title="taken back")
        transaction.set_rollback(True)

    assert create_issue(repository, title="first").number == 1


def test_of_many_who_claim_one_issue_one_gets_it(owner, repository, issue, make_box, no_provider):
    boxes = [make_box(owner) for _ in range(12)]

    def claim(box: Box) -> str:
        try:
            return assignments.create(
                requesting_user=owner,
                repository_id=repository.pk,
                issue_number=issue.number,
                box_id=box.box_id,
            )[0].state
        except CodedError as refused:
            return refused.code

    answers = all_at_once(claim, boxes)

    assert sorted(answers) == ["assignment_issue_claimed"] * 11 + ["running"]


def test_200_attempts_whose_run_ends_at_once(owner, repository, no_provider, settings):
    """Each run ends while its attempt is being started, on another connection; the invariant is looked at all the while."""
    conversation = ensure_conversation(owner)
    pairs = [
        (create_issue(repository, title=f"{number}"), Box(conversation=conversation, box_id=f"bx_{number:04}", label=f"{number}", state="ready", setup_status="done"))
        for number in range(200)
    ]  # fmt: skip
    Box.objects.bulk_create([box for _, box in pairs])
    over, broken = threading.Event(), []

    def watch() -> None:
        while not over.is_set():
            broken.extend(living_with_a_dead_credential())
            over.wait(0.01)
        connection.close()

    def end_runs() -> None:
        while not over.is_set():
            for run_id in Run.objects.filter(state="admitted").values_list("pk", flat=True):
                runs.finish(run_id, "completed", 0)
            over.wait(0.001)
        connection.close()

    def attempt(pair: tuple[Issue, Box]) -> str:
        try:
            return assignments.create(
                requesting_user=owner,
                repository_id=repository.pk,
                issue_number=pair[0].number,
                box_id=pair[1].box_id,
            )[0].state
        except CodedError as refused:
            return refused.code

    others = [threading.Thread(target=watch), *(threading.Thread(target=end_runs) for _ in range(2))]
    for thread in others:
        thread.start()
    try:
        answers = all_at_once(attempt, pairs, threads=8)
        while Run.objects.filter(state="admitted").exists():
            over.wait(0.02)
    finally:
        over.set()
        for thread in others:
            thread.join()

    assert set(answers) <= {"running", "completed", "assignment_finished"}
    assert broken == []
    assert living_with_a_dead_credential() == []
    assert set(Assignment.objects.values_list("state", flat=True)) == {"completed"}
    assert not AssignmentCredential.objects.filter(revoked_at=None).exists()


def living_with_a_dead_credential() -> list[Any]:
    revoked = AssignmentCredential.objects.filter(revoked_at__isnull=False)
    living = Assignment.objects.exclude(state__in=Assignment.TERMINAL_STATES).filter(credential__in=revoked)
    return list(living.values_list("pk", flat=True))
