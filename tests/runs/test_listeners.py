"""What the runs app is told, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from base import hooks
from boxes.models import Box
from conversations.services import ensure_conversation
from runs import pump, services
from runs.models import Run
from runs.scripts import GitCredential
from runs.services import finish
from runs.worker import step
from tests.fakes.provider import FakeProvider
from tests.runs.driving import driven

Begin = Callable[..., Run]
MakeRun = Callable[..., Run]


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    """Registers with a hook for one test."""
    added: list[tuple[Any, Any]] = []

    def register(hook: Any, function: Any) -> None:
        hook.register(function)
        added.append((hook, function))

    yield register
    for hook, function in added:
        hook._callables.remove(function)


@pytest.mark.django_db
def test_a_stopped_box_ends_its_run_without_a_call(
    begin: Begin, fake_box: Box, provider: FakeProvider
) -> None:
    run = begin("sleep 60")
    step(run.pk)
    count = provider.count("command")
    Box.objects.filter(pk=fake_box.pk).update(stopped_at=timezone.now(), state="archived")

    hooks.box_stopped(fake_box.pk)
    pump.run_once()

    run.refresh_from_db()
    assert (run.state, run.failure_reason) == ("lost", "box_stopped")
    assert provider.count("command") == count


@pytest.mark.django_db
def test_it_tells_when_a_box_was_last_in_use(make_run: MakeRun) -> None:
    ended = finish(make_run().pk, "completed", 0)
    alive = make_run(conversation_box=Box.objects.create(conversation=ended.conversation, label="alive"))
    unused = Box.objects.create(conversation=ended.conversation, label="unused")

    [told] = hooks.box_activity([ended.conversation_box_id, alive.conversation_box_id, unused.pk])

    assert told == {ended.conversation_box_id: ended.finished_at, alive.conversation_box_id: None}


@pytest.mark.django_db
def test_a_deleted_owner_has_no_living_runs(make_run: MakeRun, owner: Any) -> None:
    theirs = make_run(conversation=ensure_conversation(owner))
    others = make_run()

    hooks.owner_deleted(owner)

    assert Run.objects.get(pk=theirs.pk).cancellation_requested_at is not None
    assert Run.objects.get(pk=others.pk).cancellation_requested_at is None
    assert services.cancel_of_owner(others.conversation) == 1


@pytest.mark.django_db
def test_who_asked_for_a_run_is_told_of_its_end_once(begin: Begin, registered: Any) -> None:
    told: list[tuple[Any, str, bool]] = []
    registered(hooks.run_finished, lambda run: told.append((run.pk, run.state, connection.in_atomic_block)))

    run = driven(begin("exit 3"))
    step(run.pk)
    finish(run.pk, "lost")

    assert told == [(run.pk, "failed", True)]


@pytest.mark.django_db
def test_a_listener_that_breaks_the_database_does_not_keep_a_run_alive(begin: Begin, registered: Any) -> None:
    def breaks(run: Run) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select 1 / 0")

    registered(hooks.run_finished, breaks)

    assert driven(begin("true")).state == "completed"


ASSIGNMENT = {"type": "assignment", "id": "7"}
SECRET = "oa_assignment_7." + "s" * 43


@pytest.mark.django_db
def test_a_credential_goes_with_the_dispatch_and_nowhere_else(
    begin: Begin, registered: Any, provider: FakeProvider
) -> None:
    minted: list[Any] = []

    def mint(run: Run) -> GitCredential:
        minted.append(run.pk)
        return GitCredential("https://forge.example", SECRET)

    registered(hooks.run_credential, mint)
    registered(hooks.credential_seen, lambda run, word: word == "s" * 43)
    run = begin('cat "$OPENAGENTS_RUN_DIRECTORY/forge-credential"; echo ' + "s" * 43, principal=ASSIGNMENT)

    run = driven(run)

    assert minted == [run.pk]
    assert "s" * 20 not in run.output
    assert SECRET not in str(Run.objects.filter(pk=run.pk).values())
    assert "[REDACTED" in run.output
    directory = next(provider.commands._root.rglob(str(run.pk)))
    assert not (directory / "forge-credential").exists()


@pytest.mark.django_db
def test_an_assignment_without_its_credential_is_not_sent(begin: Begin, provider: FakeProvider) -> None:
    run = step(begin("true", principal=ASSIGNMENT).pk)

    assert (run.state, run.failure_reason) == ("failed", "credential_unavailable")
    assert run.dispatch_attempted_at is None
    assert provider.count("command") == 0
