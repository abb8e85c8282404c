"""A state moves only as its table says, whoever writes."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from base.transitions import move_state
from boxes.models import Box
from conversations.services import ensure_conversation
from runs.models import Run
from runs.states import MOVES, RunState

pytestmark = pytest.mark.django_db


def make_run(state: str) -> Run:
    conversation = ensure_conversation("guards")
    box = Box.objects.create(conversation=conversation, box_id="bx_guards", state="ready")
    now = timezone.now()
    return Run.objects.create(
        conversation=conversation,
        conversation_box=box,
        requesting_principal={"type": "user", "id": "guards"},
        command="true",
        state=state,
        idempotency_key="guards",
        run_directory="/tmp/guards",
        admitted_at=now,
        deadline_at=now + timedelta(minutes=1),
    )


@pytest.fixture
def run() -> Run:
    return make_run("admitted")


def write(sql: str, *parameters: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, parameters)


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(RunState.values, 2)))
def test_raw_sql_moves_a_run_only_along_the_table(before, after):
    make_run(before)

    if (before, after) in MOVES:
        write("update box_runs set state = %s", after)
    else:
        with pytest.raises(DatabaseError, match=f"invalid {before} run transition|terminal run is immutable"):
            write("update box_runs set state = %s", after)


def test_the_second_of_two_moves_is_told_that_it_lost(run):
    assert move_state(run, from_states=["admitted"], to="dispatched")
    assert not move_state(run, from_states=["admitted"], to="cancelled")
    run.refresh_from_db()
    assert run.state == "dispatched"


def test_an_older_generation_moves_nothing(run):
    Run.objects.filter(pk=run.pk).update(generation=3)

    assert not move_state(run, from_states=["admitted"], to="running", generation=2)
    assert move_state(run, from_states=["admitted"], to="running", generation=3)
