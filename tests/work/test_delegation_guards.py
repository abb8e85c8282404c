"""What the database itself refuses of a delegation, whoever writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from conversations.services import ensure_conversation
from tests.work.conftest import JobOf, delegation_attributes
from tests.work.guarded import WRONG_DELEGATIONS, change, put
from work.models import Job, Machine
from work.services import finish_job

pytestmark = pytest.mark.django_db


def test_a_job_cannot_become_a_delegation(make_job: JobOf) -> None:
    with pytest.raises(DatabaseError, match="work job machine owner mismatch"):
        change(make_job(), "kind")


def test_a_visitor_without_an_account_delegates_to_no_machine(make_delegation: JobOf) -> None:
    admitted, visitor = make_delegation("theirs"), ensure_conversation("a browser")
    machine = Machine.objects.get(pk=admitted.machine_id)

    with pytest.raises(DatabaseError, match="work job machine owner mismatch"), transaction.atomic():
        Job.objects.create(**delegation_attributes(visitor, machine, "x"))


def test_a_delegation_without_a_machine_is_refused(make_delegation: JobOf) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x") | {"machine_id": None}

    with pytest.raises(DatabaseError, match="work job machine owner mismatch"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("false", [{"machine_tier": "shell"}, {"machine_name": "another"}, {"roots": ["/"]}])
def test_a_delegation_carries_the_authority_of_its_machine(
    make_delegation: JobOf, false: dict[str, Any]
) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x")
    values["authority_snapshot"] |= false

    with (
        pytest.raises(DatabaseError, match="work job machine authority snapshot mismatch"),
        transaction.atomic(),
    ):
        Job.objects.create(**values)


@pytest.mark.parametrize(("field", "wrong"), WRONG_DELEGATIONS)
def test_the_shape_of_a_delegation_is_checked(
    make_delegation: JobOf, field: str, wrong: dict[str, Any]
) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x")
    values[field] |= wrong
    if field == "budget_snapshot" and "wall_clock_ms" in wrong:
        values["delegation"]["timeout_ms"] = wrong["wall_clock_ms"]
    if field == "authority_snapshot":
        values["delegation"] |= wrong

    with pytest.raises(IntegrityError, match="work_jobs_delegation_identity"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("field", ["delegation", "budget_snapshot"])
@pytest.mark.parametrize("wrong", [None, [], 5, "text"])
def test_the_snapshots_of_a_delegation_are_maps(make_delegation: JobOf, field: str, wrong: Any) -> None:
    admitted = make_delegation("theirs")
    values = delegation_attributes(admitted.conversation, admitted.machine, "x") | {field: wrong}

    with pytest.raises(IntegrityError, match="work_jobs_delegation_identity"), transaction.atomic():
        Job.objects.create(**values)


@pytest.mark.parametrize("value", ["null", "5", '"text"', "[]"])
def test_a_delegation_cannot_lose_its_map(make_delegation: JobOf, value: str) -> None:
    with pytest.raises(DatabaseError, match="work job identity is immutable"):
        put(make_delegation("theirs"), delegation=value)


def test_an_ended_delegation_takes_no_session(make_delegation: JobOf) -> None:
    job = finish_job(make_delegation("theirs").pk, "cancelled")

    with pytest.raises(DatabaseError, match="terminal work job is immutable"):
        put(job, delegation=json.dumps(job.delegation | {"resume_session_id": "late"}))
