"""An attempt that has ended is not brought back by a slower starter.

The window between what the starter reads and what it writes is opened for real: a finisher on a connection of its own commits
just after the starter's first statement on the table of attempts, and just before it. The invariant, of all rows: no attempt
lives while its credential is revoked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import responses
from django.db import connection

from accounts.models import User
from accounts.services import upsert_github_user
from boxes.models import Box
from conversations.services import ensure_conversation
from forge import assignments
from forge.models import Assignment, AssignmentCredential
from forge.services import create_issue, create_repository
from runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

BASE = "https://box-api.internal"


@pytest.fixture(autouse=True)
def provider_answers(settings: Any) -> Iterator[None]:
    """The provider shows each box as ready."""
    settings.BOX_API = {"base_url": BASE, "api_key": "assignment-start-race-test", "retry_delay_ms": 0}
    with responses.RequestsMock(assert_all_requests_are_fired=False) as wire:
        for box_id in ("bx_racetst2", "bx_racetst3", "bx_racetst4"):
            body = {"box": {"id": box_id, "state": "ready", "setupStatus": "done"}}
            wire.get(f"{BASE}/boxes/{box_id}", json=body)
        yield


@pytest.mark.parametrize("moment", ["before", "after"])
def test_leaves_the_assignment_terminal_and_its_credential_revoked(moment: str) -> None:
    assignment = admit("start-race-window", "bx_racetst2")

    with finalized_inside_the_starter_window(assignment, moment):
        assignments.start_running(assignment, None)

    refute_live_assignment_with_revoked_credential()
    current = Assignment.objects.get(pk=assignment.pk)
    assert current.state == "completed"
    assert assignments.credential(assignment).revoked_at is not None


def test_reports_that_it_lost_and_writes_nothing() -> None:
    assignment = admit("start-race-late", "bx_racetst3")
    assert assignments.finish(assignment, "completed").state == "completed"

    answer, current = assignments.start_running(assignment, None)

    assert answer == "already_finished"
    assert current.state == "completed"
    assert current.started_at is None
    assert current.run_id is None
    refute_live_assignment_with_revoked_credential()


def test_reports_that_it_won_when_the_assignment_is_still_live() -> None:
    assignment = admit("start-race-live", "bx_racetst4")

    answer, started = assignments.start_running(assignment, None)

    assert answer == "started"
    assert started.state == "running"
    assert started.started_at is not None
    refute_live_assignment_with_revoked_credential()


def refute_live_assignment_with_revoked_credential() -> None:
    """The invariant, of every row."""
    revoked = AssignmentCredential.objects.filter(revoked_at__isnull=False)
    live = Assignment.objects.exclude(state__in=Assignment.TERMINAL_STATES).filter(credential__in=revoked)
    assert list(live) == [], "attempts live while their credential is revoked"


@contextmanager
def finalized_inside_the_starter_window(assignment: Assignment, moment: str) -> Iterator[None]:
    """The attempt ends, on another connection, around the first statement of this one that touches its table; once."""
    armed = [True]

    def window(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        is_first = bool(armed) and "forge_assignments" in sql
        if is_first:
            armed.clear()
        if is_first and moment == "before":
            on_another_connection(lambda: assignments.finish(assignment, "completed"))
        result = execute(sql, params, many, context)
        if is_first and moment == "after":
            on_another_connection(lambda: assignments.finish(assignment, "completed"))
        return result

    with connection.execute_wrapper(window):
        yield
    assert not armed, "the starter never touched the table"


def on_another_connection(work: Callable[[], Any]) -> None:
    """Do this in a thread with a connection of its own, which waits two seconds at most for a lock."""
    errors: list[BaseException] = []

    def carried_out() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("set lock_timeout = '2s'")
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=carried_out)
    thread.start()
    thread.join()
    assert not errors, errors


def admit(owner_slug: str, box_id: str) -> Assignment:
    """An attempt that was made and started, put back to where a starter finds it."""
    owner = user_called(owner_slug)
    repository = create_repository(owner, "guarded", visibility="public")
    issue = create_issue(repository, title="Prove the guard", body="A body.")
    conversation = ensure_conversation(owner)
    box = Box.objects.create(conversation=conversation, box_id=box_id, state="ready", setup_status="done")
    branch = f"agent/issue-{issue.number}"

    assignment, plaintext = assignments.create(
        target_kind="box",
        box_id=box.box_id,
        conversation_id=conversation.pk,
        repository_id=repository.pk,
        issue_number=issue.number,
        branch=branch,
        requesting_user=owner,
        requesting_principal=owner,
    )

    assert assignment.state == "running"
    assert plaintext
    assert Run.objects.get(pk=assignment.run_id).state == "admitted"
    Assignment.objects.filter(pk=assignment.pk).update(state="admitted", started_at=None, run_id=None)
    return Assignment.objects.get(pk=assignment.pk)


def user_called(slug: str) -> User:
    return upsert_github_user(github_id=4711, github_login=slug)
