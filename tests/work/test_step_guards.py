"""What the database itself refuses of a step, whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from tests.work.conftest import outcome_of
from tests.work.guarded import DIGEST, change, put
from work.models import Job, JobStep
from work.models.step import FROZEN as STEP_FROZEN
from work.models.step import IDENTITY as STEP_IDENTITY
from work.services import complete_job_step
from work.states import STEP_MOVES, StepStatus

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("field", ["id", *STEP_IDENTITY])
def test_what_a_step_is_never_changes(request_step: Callable[..., JobStep], field: str) -> None:
    with pytest.raises(DatabaseError, match="work job step identity is immutable"):
        change(request_step(), field)


@pytest.mark.parametrize("field", STEP_FROZEN)
def test_an_ended_step_is_frozen(running: Job, request_step: Callable[..., JobStep], field: str) -> None:
    step = request_step()
    complete_job_step(running.pk, running.generation, step.pk, outcome_of(step))

    with pytest.raises(DatabaseError, match="terminal work job step is immutable"):
        change(step, field)


def in_shape(status: str) -> dict[str, Any]:
    """The columns that a step of this status has."""
    if status == "requested":
        return {"started_at": None}
    if status == "running":
        return {"started_at": timezone.now()}
    ended = {"completed_at": timezone.now(), "outcome_digest": DIGEST, "executor_id": "host"}
    return ended | ({"result": "{}"} if status == "succeeded" else {"error": "{}"})


@pytest.mark.parametrize("before", StepStatus.values)
@pytest.mark.parametrize("after", StepStatus.values)
def test_only_the_lawful_moves_of_a_step_are_possible(
    request_step: Callable[..., JobStep], before: str, after: str
) -> None:
    step = request_step()
    if before != "requested":
        put(step, status=before, **in_shape(before))
    moves = {str(old): [str(new) for new in news] for old, news in STEP_MOVES.items()}

    if before == after:
        put(step, status=after)
    elif after in moves.get(before, []):
        put(step, status=after, **in_shape(after))
    else:
        kind = (
            f"invalid {before} work job step transition"
            if before in moves
            else "terminal work job step is immutable"
        )
        with pytest.raises(DatabaseError, match=kind):
            put(step, status=after, **in_shape(after))


@pytest.mark.parametrize(
    "values",
    [
        {"started_at": "2030-01-01T00:00:00Z"},
        {"completed_at": "2030-01-01T00:00:00Z"},
        {"status": "running"},
        {"status": "running", "started_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST},
        {"status": "running", "started_at": "2030-01-01T00:00:00Z", "result": "{}"},
        *[
            {"status": "succeeded", "completed_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST,
             "result": "{}", "executor_id": "host"} | wrong
            for wrong in ({"completed_at": None}, {"outcome_digest": None}, {"result": None}, {"error": "{}"},
                          {"executor_id": None}, {"executor_id": ""})
        ],
        *[
            {"status": "refused", "completed_at": "2030-01-01T00:00:00Z", "outcome_digest": DIGEST,
             "error": "{}", "executor_id": "host"} | wrong
            for wrong in ({"completed_at": None}, {"outcome_digest": None}, {"error": None}, {"result": "{}"},
                          {"executor_id": None})
        ],
    ],
)  # fmt: skip
def test_a_step_has_the_shape_of_its_status(
    request_step: Callable[..., JobStep], values: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match="work_job_steps_shape_check"):
        put(request_step(), **values)


@pytest.mark.parametrize(
    "values",
    [
        {"sequence": 0},
        {"sequence": 65},
        {"sequence": 1},
        {"provider_call_id": "call-1"},
        {"provider_call_id": ""},
        {"tool_name": ""},
        {"argument_digest": "abc"},
        {"catalog_digest": "abc"},
        {"arguments": "x" * 262_145},
        {"target_receipt_refs": {}},
    ],
)
def test_values_of_a_step_out_of_bounds_are_refused(
    request_step: Callable[..., JobStep], values: dict[str, Any]
) -> None:
    first = request_step("call-1")
    row = {"work_job": first.work_job, "sequence": 2, "provider_call_id": "call-2", "tool_name": "x"}

    with pytest.raises(IntegrityError), transaction.atomic():
        JobStep.objects.create(**row | {"argument_digest": DIGEST} | values)
