"""Accepting a job: one row, committed and due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from conversations.models import Conversation
from conversations.services import ConversationNotFound
from work import validation, watching
from work.errors import JobInvalid, MachineNotFound, MachineRevoked
from work.models import Job, Machine
from work.states import JobKind, MachineStatus, Surface

log = structlog.get_logger(__name__)


def create_job(
    *,
    conversation_id: UUID,
    owner_visitor_id: UUID,
    goal: str,
    surface: str = Surface.TEXT,
    kind: str = JobKind.DEEP_WORK,
    context_hint: str | None = None,
    requesting_tool_step_ref: str | None = None,
    machine_id: UUID | None = None,
    delegation: Mapping[str, Any] | None = None,
    authority_snapshot: Mapping[str, Any] | None = None,
    budget_snapshot: Mapping[str, Any] | None = None,
    token_budget: int | None = None,
    cost_budget_microusd: int | None = None,
    keep_boxes: bool = False,
) -> Job:
    """Accept a job: it is queued and due, and will end with a report.

    A delegation names its machine and carries what was agreed: `delegation` (agent_id, machine_id, machine_name, prompt,
    cwd, timeout_ms), `authority_snapshot` (machine_tier, roots, cwd, agent_id, machine_name) and `budget_snapshot`
    (wall_clock_ms, maximum_prompt_bytes, maximum_report_bytes). Deep work may carry what it is allowed as
    `authority_snapshot` (`scopes`); without it, it may do what its owner may. Raises JobInvalid with what is wrong by field,
    ConversationNotFound, MachineNotFound or MachineRevoked; nothing is written then.
    """
    values = {
        "kind": kind,
        "surface": surface,
        "goal": goal,
        "context_hint": context_hint,
        "requesting_tool_step_ref": requesting_tool_step_ref,
        "machine_id": machine_id,
        "delegation": _plain(delegation),
        "authority_snapshot": _plain(authority_snapshot),
        "budget_snapshot": _plain(budget_snapshot),
        "token_budget": token_budget,
        "cost_budget_microusd": cost_budget_microusd,
        "keep_boxes": keep_boxes,
    }
    validation.check_job(values)
    with transaction.atomic():
        _check_owner(conversation_id, owner_visitor_id)
        if kind == JobKind.DELEGATION:
            _check_machine(values, owner_visitor_id)
        job = Job.objects.create(conversation_id=conversation_id, owner_visitor_id=owner_visitor_id, **values)
    job.refresh_from_db()
    log.info("job_accepted", job=str(job.pk), kind=kind)
    return job


def start_job(**keywords: Any) -> Job:
    """`create_job`, and the workers are woken at commit."""
    with transaction.atomic():
        job = create_job(**keywords)
        watching.wake_workers()
    return job


def _check_owner(conversation_id: UUID, owner_visitor_id: UUID) -> None:
    # The conversation stays locked against its deletion, which cancels the jobs that it sees.
    live = Conversation.objects.filter(pk=conversation_id, deleted_at=None, visitor__user__deleted_at=None)
    conversation = live.select_for_update(of=("self",), no_key=True).first()
    if conversation is None:
        raise ConversationNotFound
    if str(conversation.visitor_id) != str(owner_visitor_id):
        raise JobInvalid({"owner_visitor_id": ["must be the owner of the conversation"]})


def _check_machine(values: Mapping[str, Any], owner_visitor_id: UUID) -> None:
    # Shared: its revocation, which cancels the delegations that it sees, waits for this one.
    machine = (
        Machine.objects.select_for_update(no_key=True)
        .filter(pk=values["machine_id"], user__visitor=owner_visitor_id)
        .first()
    )
    if machine is None:
        raise MachineNotFound
    if machine.status != MachineStatus.ACTIVE:
        raise MachineRevoked
    validation.check_authority(values["authority_snapshot"], machine)


def _plain(value: Any) -> Any:
    """The map with ids as text, since that is what JSON keeps of them."""
    if not isinstance(value, Mapping):
        return value
    return {key: str(item) if isinstance(item, UUID) else item for key, item in value.items()}
