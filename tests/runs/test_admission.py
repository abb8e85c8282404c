"""Starting runs: what is refused, what is answered again, and who wins."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from boxes.errors import BoxNotFound, BoxNotReady, BoxStopped
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ensure_conversation
from runs.errors import IdempotencyConflict, InvalidCommand, InvalidIdempotencyKey, RunInProgress, RunNotFound
from runs.models import Run
from runs.services import finish, get_run, list_runs, start_run
from runs.services.admission import run_directory
from tests.fakes.provider import FakeProvider

PRINCIPAL = {"type": "user", "id": "tester"}
Begin = Callable[..., Run]


@pytest.mark.django_db
def test_it_admits_a_run_that_is_due_now(begin: Begin, fake_box: Box, provider: FakeProvider) -> None:
    run = begin("echo hello", "key")

    assert run.state == "admitted"
    assert run.conversation_box == fake_box
    assert run.next_step_at <= timezone.now()
    assert (run.deadline_at - run.admitted_at).total_seconds() == 1800
    assert provider.count("get") == 1
    assert provider.count("command") == 0


@pytest.mark.django_db
def test_the_deadline_is_never_after_the_life_of_a_box(begin: Begin, box_api: Any) -> None:
    box_api(ttl_seconds=60, run_max_duration_seconds=500)

    run = begin("true")

    assert (run.deadline_at - run.admitted_at).total_seconds() == 60


@pytest.mark.parametrize(
    ("principal", "folder"),
    [
        ({"type": "user", "id": "a-b_9"}, "a-b_9"),
        ({"type": "user", "id": "../../x y"}, "------x-y"),
        ({"type": "user", "id": 42}, "42"),
        ({"type": "user"}, "unknown"),
    ],
)
def test_a_run_lives_in_a_directory_of_its_principal(principal: dict[str, Any], folder: str) -> None:
    run_id = uuid.uuid4()

    assert run_directory(principal, run_id) == f"$HOME/.openagents/box-runs/users/{folder}/{run_id}"


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "é" * 4001, "\ud800", None, 5])
def test_it_refuses_what_is_no_command(begin: Begin, provider: FakeProvider, command: Any) -> None:
    with pytest.raises(InvalidCommand) as refused:
        begin(command)

    assert refused.value.code == "invalid_command"
    assert provider.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["é" * 129, "a\0b", "\ud800", 7])
def test_it_refuses_what_is_no_key(begin: Begin, key: Any) -> None:
    with pytest.raises(InvalidIdempotencyKey):
        begin("true", key)


@pytest.mark.django_db
def test_the_longest_command_and_key_are_taken(begin: Begin) -> None:
    assert begin("é" * 4000, "k" * 256).command == "é" * 4000


@pytest.mark.django_db
def test_a_box_is_found_by_id_provider_id_and_label(fake_box: Box) -> None:
    for number, ref in enumerate((str(fake_box.pk), fake_box.box_id, fake_box.label)):
        run = start_run(fake_box.conversation_id, ref, PRINCIPAL, "true", f"key-{number}")
        assert get_run(fake_box.conversation_id, ref, run.pk) == run
        finish(run.pk, "completed", 0)


@pytest.mark.django_db
def test_another_conversations_box_is_not_there(fake_box: Box, provider: FakeProvider) -> None:
    other = ensure_conversation("somebody else")

    with pytest.raises(BoxNotFound):
        start_run(other.pk, fake_box.box_id, PRINCIPAL, "true", "key")

    assert provider.count() == 0


@pytest.mark.django_db
def test_the_same_key_and_command_give_the_same_run(begin: Begin) -> None:
    first = begin("true", "key")
    finish(first.pk, "failed", 1)

    assert begin("true", "key") == first
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_the_same_key_with_another_command_or_box_is_a_conflict(
    begin: Begin, fake_box: Box, provider: FakeProvider
) -> None:
    begin("true", "key")
    other = Box.objects.create(
        conversation=fake_box.conversation, box_id=provider.add_box().id, state="ready"
    )

    with pytest.raises(IdempotencyConflict):
        begin("false", "key")
    with pytest.raises(IdempotencyConflict):
        start_run(other.conversation_id, other.pk, PRINCIPAL, "true", "key")

    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_known_key_answers_also_when_the_box_is_stopped(begin: Begin, fake_box: Box) -> None:
    first = begin("true", "key")
    Box.objects.filter(pk=fake_box.pk).update(stopped_at=timezone.now(), state="archived")

    assert begin("true", "key") == first
    with pytest.raises(BoxStopped):
        begin("true", "another")


@pytest.mark.django_db
def test_a_box_has_one_run_at_a_time(begin: Begin) -> None:
    first = begin("true", "one")

    with pytest.raises(RunInProgress) as refused:
        begin("true", "two")
    assert refused.value.code == "box_run_in_progress"

    finish(first.pk, "completed", 0)
    begin("true", "two")


@pytest.mark.django_db
def test_a_run_that_is_not_known_to_be_dead_keeps_the_box(begin: Begin) -> None:
    first = begin("true", "one")
    Run.objects.filter(pk=first.pk).update(kill_confirmed=False)
    finish(first.pk, "timed_out")

    with pytest.raises(RunInProgress):
        begin("true", "two")
    assert Run.objects.count() == 1

    Run.objects.filter(pk=first.pk).update(kill_confirmed=True)
    begin("true", "two")


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["archived", "archiving", "error", "stopped", "terminated"])
def test_it_never_starts_on_a_box_that_the_provider_has_ended(
    begin: Begin, fake_box: Box, provider: FakeProvider, state: str
) -> None:
    provider.boxes[fake_box.box_id].state = state
    Box.objects.filter(pk=fake_box.pk).update(next_reconciliation_at=timezone.now())

    with pytest.raises(BoxStopped):
        begin("true")

    assert not Run.objects.exists()
    assert Box.objects.get(pk=fake_box.pk).next_reconciliation_at is None  # the next pass looks at once


@pytest.mark.django_db
def test_a_box_that_the_provider_does_not_know_takes_no_run(
    begin: Begin, fake_box: Box, provider: FakeProvider
) -> None:
    provider.next("get", status=404, code="not_found")

    with pytest.raises(BoxStopped):
        begin("true")


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["stopped_at", "stop_requested_at"])
def test_a_box_that_is_stopped_or_stopping_is_not_even_asked_about(
    begin: Begin, fake_box: Box, provider: FakeProvider, field: str
) -> None:
    Box.objects.filter(pk=fake_box.pk).update(**{field: timezone.now(), "state": "archiving"})

    with pytest.raises(BoxStopped):
        begin("true")

    assert provider.count() == 0


@pytest.mark.django_db
def test_a_box_that_is_not_ready_takes_no_run(begin: Begin, fake_box: Box, provider: FakeProvider) -> None:
    reservation = Box.objects.create(conversation=fake_box.conversation, label="reserved")
    provider.boxes[fake_box.box_id].state = "provisioning"

    with pytest.raises(BoxNotReady):
        begin("true")
    with pytest.raises(BoxNotReady):
        start_run(reservation.conversation_id, reservation.pk, PRINCIPAL, "true", "key")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"drop_before": True}, {"status": 429}, {"cut_json": 0.5}]
)
def test_a_provider_that_does_not_answer_is_ignored(
    begin: Begin, provider: FakeProvider, fault: dict[str, Any]
) -> None:
    provider.next("get", **fault)

    assert begin("true").state == "admitted"
    assert provider.count("get") == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("same_key", [True, False])
def test_twenty_starts_at_once_make_one_run(fake_box: Box, same_key: bool) -> None:
    answers: list[Any] = []
    barrier = threading.Barrier(20)

    def start(number: int) -> None:
        try:
            barrier.wait(30)
            key = "same" if same_key else f"key-{number}"
            answers.append(start_run(fake_box.conversation_id, fake_box.pk, PRINCIPAL, "true", key).pk)
        except RunInProgress as refusal:
            answers.append(refusal.code)
        except Exception as error:
            answers.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=start, args=[number]) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    run = Run.objects.get()
    expected = {run.pk} if same_key else {run.pk, "box_run_in_progress"}
    assert set(answers) == expected
    assert len(answers) == 20


@pytest.mark.django_db
def test_runs_are_listed_newest_first_in_one_query(
    begin: Begin, fake_box: Box, django_assert_num_queries: Any
) -> None:
    runs = []
    for number in range(4):
        run = begin("true", f"key-{number}")
        runs.insert(0, finish(run.pk, "completed", 0))

    listed = list_runs(fake_box.conversation_id)
    with django_assert_num_queries(1):
        assert [(run.pk, run.conversation_box.box_id) for run in listed] == [
            (run.pk, fake_box.box_id) for run in runs
        ]
    with django_assert_num_queries(2):
        assert len(list(list_runs(fake_box.conversation_id, fake_box.label))) == 4


@pytest.mark.django_db
def test_a_run_of_another_box_or_conversation_is_not_there(begin: Begin, fake_box: Box) -> None:
    run = begin("true")
    other: Conversation = ensure_conversation("somebody else")
    foreign = Box.objects.create(conversation=other, box_id="bx_other", state="ready")

    with pytest.raises(RunNotFound):
        get_run(other.pk, foreign.box_id, run.pk)
    with pytest.raises(BoxNotFound):
        get_run(other.pk, fake_box.box_id, run.pk)
    with pytest.raises(RunNotFound):
        get_run(fake_box.conversation_id, fake_box.pk, "no-uuid")
