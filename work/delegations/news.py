"""What a machine tells of its delegations. Each is taken in one transaction with the job that it is about.

Only the machine that a job was given to is heard on it, and only on the newest attempt: what a lost attempt still says
changes nothing. The job is locked, so whoever drives it and whoever hears of it write one after the other.
"""

from __future__ import annotations

import json
from typing import Any

from base.clock import database_now
from base.redaction import redact
from work import progress as progress_of_agent
from work import watching
from work.channel import limits
from work.channel.errors import DelegationNotFound
from work.channel.fields import Fields
from work.delegations import reports
from work.errors import JobNotFound
from work.models import Delegation, Job, Machine
from work.services import append_report_delta, checkpoint_delegation_session, finish_job
from work.services.finishing import error_code_of
from work.services.locking import locked
from work.states import JobStatus

RESULTS = ("completed", "refused", "cancelled", "timeout", "unavailable", "failed")
DECISIONS = ("allowed", "refused")


def accepted(machine: Machine, body: Any) -> None:
    """`{"job", "attempt"}`: the machine keeps the delegation now, and will tell its end."""
    delegation = _current(machine, Fields(body))
    if delegation is None or delegation.accepted_at is not None:
        return
    delegation.accepted_at = database_now()
    _save(delegation, "accepted_at")


def session(machine: Machine, body: Any) -> None:
    """`{"job", "attempt", "session_id", "model"?, "reasoning"?, "mode"?}`: by which the work can be gone on with."""
    fields = Fields(body)
    delegation = _current(machine, fields)
    if delegation is None:
        return
    job = delegation.job
    session_id = fields.exact_text("session_id", limits.SESSION_ID_CHARACTERS)
    if len(session_id.encode()) <= limits.SESSION_ID_CHARACTERS:
        checkpoint_delegation_session(job.pk, job.generation, session_id)
    delegation.session_id = session_id
    _note_names(delegation, fields)
    _save(delegation, "session_id", "model", "reasoning", "mode")


def progress(machine: Machine, body: Any) -> None:
    """`{"job", "attempt", "text"?, "tool_calls"?}`: what the agent has said since, and how often it used a tool in all."""
    fields = Fields(body)
    delegation = _current(machine, fields)
    if delegation is None:
        return
    job, text = delegation.job, fields.text("text", limits.PROGRESS_BYTES)
    if text:
        report = progress_of_agent.heard(delegation, job.report or "", text)
        append_report_delta(job.pk, job.generation, report, offset=0)
    delegation.tool_calls = max(delegation.tool_calls, _tool_calls(fields))
    _save(delegation, "tool_calls", "progress_state")


def permission(machine: Machine, body: Any) -> None:
    """`{"job", "attempt", "title", "tool"?, "decision", "reason"?}`: what the agent asked for, and how the machine's policy
    answered. The last 20 are kept, as many as fit."""
    fields = Fields(body)
    delegation = _current(machine, fields)
    if delegation is None:
        return
    asked = {
        "title": redact(fields.text("title", 200)),
        "tool": fields.text("tool", 40),
        "decision": fields.one_of("decision", DECISIONS),
        "reason": fields.text("reason", 200),
        "at": database_now().isoformat(),
    }
    delegation.permissions = _newest([*delegation.permissions, asked])
    delegation.refused_permissions += asked["decision"] == "refused"
    _save(delegation, "permissions", "refused_permissions")


def _newest(permissions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last of them that there is room for: a character may be four bytes."""
    kept = permissions[-limits.PERMISSIONS_KEPT :]
    while len(json.dumps(kept, ensure_ascii=False).encode()) > limits.PERMISSIONS_BYTES:
        kept = kept[1:]
    return kept


def result(machine: Machine, body: Any) -> None:
    """`{"job", "attempt", "status", "prose"?, "detail"?, "failed_tools"?, "tool_calls"?, "commit"?, ...}`: the end."""
    fields = Fields(body)
    delegation = _current(machine, fields)
    if delegation is None:
        return
    status = fields.one_of("status", RESULTS)
    delegation.tool_calls = max(delegation.tool_calls, _tool_calls(fields))
    _note_names(delegation, fields)
    delegation.commit = fields.text("commit", limits.COMMIT_CHARACTERS)
    delegation.closed_at = database_now()
    _save(delegation, "tool_calls", "model", "reasoning", "mode", "commit", "closed_at")
    _finish(delegation, status, fields)


def _finish(delegation: Delegation, status: str, fields: Fields) -> None:
    job = delegation.job
    if status != "completed" and job.cancel_requested_at is not None:
        finish_job(job.pk, JobStatus.CANCELLED, error_code=job.cancel_code)
        return
    final = JobStatus.COMPLETED if status == "completed" else JobStatus.FAILED
    code = fields.text("code", 128) if status == "failed" else status
    finish_job(
        job.pk,
        final,
        error_code=None if final == JobStatus.COMPLETED else error_code_of(code or "delegation_failed"),
        final_text=reports.compose(_told(delegation, status, fields)),
        counts={"tool_call_count": delegation.tool_calls},
    )


def _told(delegation: Delegation, status: str, fields: Fields) -> reports.Result:
    wanted = delegation.job.delegation or {}
    failed = [tool[:200] for tool in fields.list_of("failed_tools", 20) if isinstance(tool, str)]
    return reports.Result(
        agent=str(wanted.get("agent_id", "")),
        machine=str(wanted.get("machine_name", "")),
        status=status,
        prose=fields.text("prose", limits.PROGRESS_BYTES),
        detail=fields.text("detail", limits.DETAIL_CHARACTERS),
        session_id=delegation.session_id,
        model=delegation.model,
        reasoning=delegation.reasoning,
        mode=delegation.mode,
        tool_calls=delegation.tool_calls,
        refused=delegation.refused_permissions,
        failed_tools=failed,
    )


def _current(machine: Machine, fields: Fields) -> Delegation | None:
    """The delegation, its job locked; None if its job has ended or this is an older attempt. Raises DelegationNotFound for
    one of another machine as for none."""
    job_id, attempt = fields.uuid("job"), fields.whole("attempt", least=1)
    job = _locked_job(job_id, machine)
    delegation = Delegation.objects.select_for_update(no_key=True).filter(pk=job.pk).first()
    if delegation is None:
        raise DelegationNotFound
    delegation.job = job
    return delegation if delegation.attempt == attempt and job.status == JobStatus.RUNNING else None


def _locked_job(job_id: Any, machine: Machine) -> Job:
    if not Job.objects.filter(pk=job_id, machine=machine).exists():
        raise DelegationNotFound
    try:
        return locked(job_id)
    except JobNotFound:
        raise DelegationNotFound from None


def _note_names(delegation: Delegation, fields: Fields) -> None:
    for name in ("model", "reasoning", "mode"):
        setattr(delegation, name, fields.text(name, limits.NAME_CHARACTERS) or getattr(delegation, name))


def _tool_calls(fields: Fields) -> int:
    return fields.whole("tool_calls", most=1_000_000, default=0)


def _save(delegation: Delegation, *names: str) -> None:
    delegation.save(update_fields=list(names))
    watching.wake_watchers(delegation.job_id)
