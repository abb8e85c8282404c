"""The life of a run against a provider whose every answer is given here, byte for byte."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import requests
import responses
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from boxes.models import Box
from conversations.services import ensure_conversation
from runs.errors import IdempotencyConflict
from runs.models import Run
from runs.services import cancel, finish, get_run, read_output, record_poll, recover, start_run
from runs.worker import step

BASE = "https://box-api.internal"
COMMANDS = f"{BASE}/boxes/bx_8bhkse3n/commands"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def box_api(settings: Any) -> None:
    settings.BOX_API = {
        "base_url": BASE,
        "api_key": "box-runs-test-key",
        "run_poll_interval_ms": 60_000,
        "retry_delay_ms": 0,
    }


@pytest.fixture
def wire() -> Iterator[responses.RequestsMock]:
    """Every registered answer must be asked for, in the order of registration, and nothing else."""
    with responses.RequestsMock(registry=responses.registries.OrderedRegistry) as mock:
        yield mock


def answers(
    wire: responses.RequestsMock, stdout: str = "", *, status: int = 200, sends: str = "", **body: Any
) -> None:
    """The next command is answered with this; its text must contain `sends`."""
    wire.add_callback("POST", COMMANDS, _answer(status, body or {"stdout": stdout}, (sends,)))


def breaks(wire: responses.RequestsMock, *sends: str) -> None:
    """The next command meets a connection error."""

    def callback(request: requests.PreparedRequest) -> Any:
        command = json.loads(request.body or b"{}")["command"]
        assert all(text in command for text in sends)
        raise requests.exceptions.ConnectionError("refused")

    wire.add_callback("POST", COMMANDS, callback)


def _answer(status: int, body: dict[str, Any], sends: tuple[str, ...]) -> Callable[..., Any]:
    def callback(request: requests.PreparedRequest) -> tuple[int, dict[str, str], str]:
        command = json.loads(request.body or b"{}")["command"]
        assert all(text in command for text in sends)
        return status, {}, json.dumps(body)

    return callback


def test_run_states_and_bounded_offset_reads_are_durable() -> None:
    conversation = ensure_conversation("box-runs-state")
    box = insert_box(conversation.id, "bx_run_state")
    run = insert_run(conversation.id, box.id, "state-key", command="printf hello")

    run = record_poll(run.id, {"present": True, "log_size": 5, "output": "hello"})
    assert run.state == "running"
    assert run.last_output_offset == 5

    run = finish(run.id, "completed", 0)
    assert run.state == "completed"
    assert run.is_terminal

    output = read_output(run, 0)
    assert output["output"] == "hello"
    assert output["next_offset"] == 5
    assert output["truncated"] is False


def test_one_active_run_is_allowed_per_box() -> None:
    conversation = ensure_conversation("box-runs-lane")
    box = insert_box(conversation.id, "bx_run_lane")
    insert_run(conversation.id, box.id, "lane-one")
    second = Run(**attributes(conversation.id, box.id, "lane-two"))

    with pytest.raises(ValidationError) as refused:
        second.full_clean()
    assert refused.value.message_dict == {"conversation_box": ["has already been taken"]}
    with pytest.raises(IntegrityError, match="box_runs_one_active_per_box_index"), transaction.atomic():
        second.save()


def test_every_terminal_state_is_durable() -> None:
    conversation = ensure_conversation("box-runs-terminal")
    box = insert_box(conversation.id, "bx_run_terminal")

    for state in Run.TERMINAL_STATES:
        run = insert_run(conversation.id, box.id, f"terminal-{state}")
        exit_status = 17 if state == "failed" else None
        reason = "test_reason" if state in ["lost", "timed_out"] else None

        finished = finish(run.id, state, exit_status, reason)

        assert finished.state == state
        assert finished.is_terminal
        assert finished.finished_at
        assert finished.timed_out == (state == "timed_out")


def test_poll_output_is_bounded__redacted__and_does_not_duplicate() -> None:
    conversation = ensure_conversation("box-runs-output")
    box = insert_box(conversation.id, "bx_run_output")
    run = insert_run(conversation.id, box.id, "output-key")
    payload = "x" * 30_000 + " https://openagents.com/clone"
    poll = {"present": True, "log_size": len(payload), "output": payload}

    first = record_poll(run.id, poll)
    second = record_poll(run.id, poll)

    assert second.output == first.output
    assert len(second.output.encode()) <= 24 * 1_024
    assert "https://openagents.com/clone" in second.output
    assert second.last_output_offset == len(payload)


def test_worker_drives_a_detached_run_to_completed(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-completed", state="admitted")
    answers(wire, "4242\n", sends=run.run_directory)
    answers(wire, "OA_PRESENT=1\nOA_SIZE=0\nOA_DATA=\nOA_EXIT=0\nOA_ALIVE=0\n", sends="OA_EXIT")

    step(run.id)
    step(run.id)

    assert Run.objects.get(pk=run.id).state == "completed"


def test_worker_records_a_nonzero_exit_as_failed(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-failed", state="admitted")
    answers(wire, "4242\n")
    answers(wire, "OA_PRESENT=1\nOA_SIZE=0\nOA_DATA=\nOA_EXIT=17\nOA_ALIVE=0\n", sends="OA_EXIT")

    step(run.id)
    step(run.id)

    failed = Run.objects.get(pk=run.id)
    assert failed.state == "failed"
    assert failed.exit_status == 17


def test_ambiguous_dispatch_probes_once_and_becomes_lost_without_redispatch(
    wire: responses.RequestsMock,
) -> None:
    run = insert_worker_run("worker-ambiguous", state="admitted")
    breaks(wire, "mkdir")
    answers(wire, "OA_PRESENT=0\n", sends="OA_PRESENT")

    step(run.id)
    step(run.id)

    lost = Run.objects.get(pk=run.id)
    assert lost.state == "lost"
    assert lost.failure_reason == "dispatch_ambiguous"


def test_a_present_directory_after_ambiguous_dispatch_recovers_without_a_fake_pid(
    wire: responses.RequestsMock,
) -> None:
    run = insert_worker_run("worker-probe", state="admitted")
    breaks(wire)
    answers(wire, "OA_PRESENT=1\n", sends="OA_PID")
    answers(wire, "OA_PRESENT=1\nOA_SIZE=0\nOA_DATA=\nOA_ALIVE=1\n")

    step(run.id)
    step(run.id)
    step(run.id)

    recovered = Run.objects.get(pk=run.id)
    assert recovered.state == "running"
    assert recovered.pid is None


def test_cancellation_retries_the_kill_and_remains_terminal_on_later_read(
    wire: responses.RequestsMock,
) -> None:
    run = insert_worker_run("worker-cancel", state="running", pid=4242)

    requested = cancel(run)
    assert requested.cancellation_requested_at
    # Every caller shows the box that the run belongs to.
    assert requested._state.fields_cache["conversation_box"].box_id == "bx_8bhkse3n"

    breaks(wire, "forge-credential", "gitconfig")
    step(run.id)
    for text in ("kill", "rm -f", "forge-credential"):
        assert text in last_command(wire)
    answers(wire, "OA_CANCELLED=1\n", sends="gitconfig")
    step(run.id)

    cancelled = Run.objects.get(pk=run.id)
    assert cancelled.state == "cancelled"
    assert cancelled.cancellation_requested_at
    assert cancelled.cancellation_effective_at
    assert cancelled.cancellation_effective_at >= cancelled.cancellation_requested_at
    later = get_run(run.conversation_id, "bx_8bhkse3n", run.id)
    assert later.state == "cancelled"


def test_deadline_expiration_kills_the_run_and_reaches_timed_out(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-timeout", state="running", pid=4343, deadline_at=past())
    answers(wire, "OA_CANCELLED=1\n", sends="kill")

    step(run.id)

    for text in ("rm -f", "forge-credential", "gitconfig"):
        assert text in last_command(wire)
    timed_out = Run.objects.get(pk=run.id)
    assert timed_out.state == "timed_out"
    assert timed_out.timed_out


def test_a_missing_run_directory_becomes_lost_with_a_reason(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-missing", state="running", pid=4444)
    answers(wire, "OA_PRESENT=0\n")

    step(run.id)

    lost = Run.objects.get(pk=run.id)
    assert lost.state == "lost"
    assert lost.failure_reason == "run_directory_missing"


def test_a_stopped_box_becomes_lost_with_the_provider_reason(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-stopped", state="running", pid=4646)
    answers(wire, status=409, code="box_stopped")

    step(run.id)

    lost = Run.objects.get(pk=run.id)
    assert lost.state == "lost"
    assert lost.failure_reason == "box_stopped"


def test_startup_reconciliation_restarts_a_persisted_nonterminal_run(wire: responses.RequestsMock) -> None:
    run = insert_worker_run("worker-recovery", state="running", pid=4545, next_step_at=None)
    answers(wire, "OA_PRESENT=1\nOA_SIZE=0\nOA_DATA=\nOA_EXIT=0\nOA_ALIVE=0\n")

    assert recover() == 1
    assert Run.objects.get(pk=run.id).next_step_at <= timezone.now()
    step(run.id)

    assert Run.objects.get(pk=run.id).state == "completed"


def test_idempotency_conflicts_refuse_a_different_command(wire: responses.RequestsMock) -> None:
    conversation = ensure_conversation("worker-idempotency")
    insert_box(conversation.id, "bx_8bhkse3n")
    principal = {"type": "user", "id": "worker-idempotency"}
    shown = {"box": {"id": "bx_8bhkse3n", "state": "ready", "setupStatus": "done"}}
    wire.get(f"{BASE}/boxes/bx_8bhkse3n", json=shown)
    answers(wire, "4242\n", sends="mkdir")
    wire.get(f"{BASE}/boxes/bx_8bhkse3n", json=shown)

    first = start_run(conversation.id, "bx_8bhkse3n", principal, "echo one", "same-key")
    step(first.id)
    with pytest.raises(IdempotencyConflict) as conflict:
        start_run(conversation.id, "bx_8bhkse3n", principal, "echo two", "same-key")

    assert conflict.value.code == "box_run_idempotency_conflict"
    assert Run.objects.count() == 1
    assert first.command == "echo one"


def attributes(conversation_id: uuid.UUID, box_id: uuid.UUID, key: str, **changes: Any) -> dict[str, Any]:
    now = timezone.now()
    return {
        "conversation_id": conversation_id,
        "conversation_box_id": box_id,
        "requesting_principal": {"type": "user", "id": "user"},
        "command": "true",
        "idempotency_key": key,
        "run_directory": f"/tmp/openagents-box-runs/{uuid.uuid4()}",
        "admitted_at": now,
        "deadline_at": now + timedelta(seconds=60),
        **changes,
    }


def insert_run(conversation_id: uuid.UUID, box_id: uuid.UUID, key: str, **changes: Any) -> Run:
    return Run.objects.create(**attributes(conversation_id, box_id, key, **changes))


def insert_worker_run(key: str, **changes: Any) -> Run:
    conversation = ensure_conversation("worker-" + key)
    box = insert_box(conversation.id, "bx_8bhkse3n")
    run_id, state = uuid.uuid4(), changes.pop("state", "running")
    return insert_run(
        conversation.id,
        box.id,
        key,
        id=run_id,
        command="echo worker",
        state=state,
        run_directory=f"$HOME/.openagents/box-runs/users/{key}/{run_id}",
        dispatch_attempted_at=None if state == "admitted" else timezone.now(),
        **changes,
    )


def insert_box(conversation_id: uuid.UUID, box_id: str) -> Box:
    return Box.objects.create(
        conversation_id=conversation_id, box_id=box_id, state="ready", setup_status="done"
    )


def last_command(wire: responses.RequestsMock) -> str:
    command: str = json.loads(wire.calls[-1].request.body)["command"]
    return command


def past() -> datetime:
    return timezone.now() - timedelta(seconds=60)
