"""Starting an attempt. Whoever made it does so at once; if that process dies, a worker does, and finds what is there already."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction

from base.clock import database_now
from base.errors import CodedError
from base.faults import declare, fault_point
from forge.assignments import objective, watching
from forge.assignments.finishing import finish
from forge.errors import AssignmentFinished
from forge.models import Assignment
from forge.states import TERMINAL, AssignmentState, TargetKind
from runs import services as runs
from runs.models import Run
from work import delegations
from work import services as jobs
from work.errors import MachineRevoked
from work.limits import AGENT_ID_BYTES, GOAL_BYTES, LONGEST_DELEGATION_MS, PROMPT_BYTES, REPORT_BYTES
from work.models import Job, Machine
from work.states import JobKind, MachineStatus

log = structlog.get_logger(__name__)

ADMITTED = declare("assignments.admitted", "an attempt is committed; nothing is started")
RUN_ADMITTED = declare(
    "assignments.run_admitted", "the run of an attempt is committed; the attempt does not say so"
)

STARTED = "started"
ALREADY_FINISHED = "already_finished"
SHORTEST_DELEGATION_MS = 1_000

_TERMINAL = ", ".join(f"'{state.value}'" for state in TERMINAL)
_START = f"""
    update forge_assignments set state = 'running', started_at = coalesce(started_at, clock_timestamp()),
        run_id = coalesce(%(run)s, run_id), work_job_id = coalesce(%(job)s, work_job_id), next_step_at = deadline_at,
        lease_owner = null, lease_expires_at = null, step_failures = 0
    where id = %(id)s and state not in ({_TERMINAL})
"""  # noqa: S608 - constants of ours


def start(assignment: Assignment) -> Assignment:
    """Start what was admitted; returns the attempt at work. One that cannot be started has failed with the code that is
    raised. Raises AssignmentFinished for one that ended before. Safe to call again: nothing is started twice."""
    fault_point(ADMITTED)
    try:
        if assignment.target_kind == TargetKind.BOX:
            return _start_on_box(assignment)
        return _start_on_computer(assignment)
    except AssignmentFinished:
        raise
    except CodedError as error:
        finish(assignment, AssignmentState.FAILED, reason=error.code)
        raise


def start_running(
    assignment: Assignment, run_id: UUID | None = None, job_id: UUID | None = None
) -> tuple[str, Assignment]:
    """Mark the attempt as at work unless it has ended: one statement, so that no end can come between look and write.

    Returns `started` or `already_finished`, with the row as it is now. Nothing is written in the second case.
    """
    with connection.cursor() as cursor:
        cursor.execute(_START, {"run": run_id, "job": job_id, "id": assignment.pk})
        won = cursor.rowcount == 1
        if won:
            watching.changed(assignment.pk)
    current = Assignment.objects.get(pk=assignment.pk)
    return (STARTED if won else ALREADY_FINISHED), current


def run_key(assignment_id: Any) -> str:
    """The idempotency key of the attempt's one run."""
    return f"assignment-{assignment_id}"


def run_of(assignment: Assignment) -> Run | None:
    """The attempt's run, also where the attempt does not say so yet."""
    runs_there = Run.objects.filter(conversation_id=assignment.conversation_id)
    return runs_there.filter(idempotency_key=run_key(assignment.pk)).first()


def job_of(assignment: Assignment) -> Job | None:
    """The attempt's job, if it has one."""
    return None if assignment.work_job_id is None else Job.objects.filter(pk=assignment.work_job_id).first()


def _start_on_box(assignment: Assignment) -> Assignment:
    run = run_of(assignment) or runs.start_run(
        assignment.conversation_id,
        assignment.conversation_box_id,  # type: ignore[arg-type]  # a check: an attempt on a box has one
        {"type": "assignment", "id": str(assignment.pk)},
        objective.box_command(assignment),
        run_key(assignment.pk),
    )
    fault_point(RUN_ADMITTED)
    answer, current = start_running(assignment, run.pk)
    if answer == ALREADY_FINISHED:
        runs.cancel(run)  # it ended, or was ended, while its run was being made
        raise AssignmentFinished
    return current


def _start_on_computer(assignment: Assignment) -> Assignment:
    """The job and the mark in one transaction: there is no attempt at work without its job, and never a second job.

    The machine is asked before: what only it can see, as a folder that a link leads out of, is refused without a job.
    """
    _ask_its_machine(assignment)
    with transaction.atomic():
        # The machine first, as whoever revokes it does: two who wait for each other would both lose.
        Machine.objects.select_for_update(no_key=True).filter(assignments=assignment.pk).first()
        row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
        if row.is_terminal:
            raise AssignmentFinished
        if row.work_job_id is not None:
            return row
        job = jobs.start_job(**_job(row))
        _, current = start_running(row, job_id=job.pk)
    return current


def _ask_its_machine(assignment: Assignment) -> None:
    current = Assignment.objects.select_related("machine__channel").get(pk=assignment.pk)
    if current.is_terminal or current.work_job_id is not None:
        return  # what there is to do is decided under the lock
    assert current.machine is not None, "a check: an attempt on a computer has one"
    if current.machine.status != MachineStatus.ACTIVE:
        raise MachineRevoked
    delegations.ask_machine(current.machine, current.agent_id or "", current.cwd or "")


def _job(assignment: Assignment) -> dict[str, Any]:
    machine = assignment.machine
    assert machine is not None, "a check: an attempt on a computer has one"
    left_ms = int((assignment.deadline_at - database_now()).total_seconds() * 1000)
    timeout_ms = max(SHORTEST_DELEGATION_MS, min(LONGEST_DELEGATION_MS, left_ms))
    prompt = assignment.prompt or objective.text_for(
        assignment.issue, assignment.branch, assignment.repository
    )
    agreed = {
        "agent_id": (assignment.agent_id or "")[:AGENT_ID_BYTES],
        "cwd": assignment.cwd,
        "machine_name": machine.name,
    }
    return {
        "conversation_id": assignment.conversation_id,
        "owner_visitor_id": assignment.conversation.visitor_id,
        "kind": JobKind.DELEGATION,
        "goal": f"#{assignment.issue.number} {assignment.issue.title}".encode()[:GOAL_BYTES].decode(
            errors="ignore"
        ),
        "requesting_tool_step_ref": f"assignment:{assignment.pk}",
        "machine_id": machine.pk,
        "delegation": {**agreed, "machine_id": str(machine.pk), "prompt": prompt, "timeout_ms": timeout_ms},
        "authority_snapshot": {**agreed, "machine_tier": machine.tier, "roots": machine.roots},
        "budget_snapshot": {
            "wall_clock_ms": timeout_ms,
            "maximum_prompt_bytes": PROMPT_BYTES,
            "maximum_report_bytes": REPORT_BYTES,
        },
    }
