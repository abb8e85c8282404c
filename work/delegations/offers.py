"""What a machine is told of a delegation. An offer is composed as it is handed out, so that a Git credential in it is as old
as its delivery and is never stored."""

from __future__ import annotations

from typing import Any

from base import hooks
from work.channel.sending import enqueue
from work.models import Delegation, Job, MachineFrame
from work.states import JobStatus

OFFER = "offer"
CANCEL = "cancel"
_TOLD = ("agent_id", "prompt", "cwd", "timeout_ms", "resume_session_id")


def send_offer(delegation: Delegation) -> None:
    """Offer the newest attempt to the machine, at commit."""
    enqueue(delegation.machine_id, OFFER, {"job": str(delegation.job_id), "attempt": delegation.attempt})


def send_cancel(delegation: Delegation, reason: str) -> None:
    """Tell the machine, at commit, that nobody wants this any more."""
    body = {"job": str(delegation.job_id), "attempt": delegation.attempt, "reason": reason}
    enqueue(delegation.machine_id, CANCEL, body)


def compose_offer(frame: MachineFrame) -> dict[str, Any] | None:
    """The offer as the machine gets it; None if it is not wanted any more."""
    known = {"job_id": frame.body["job"], "attempt": frame.body["attempt"], "machine_id": frame.machine_id}
    delegation = Delegation.objects.select_related("job").filter(**known).first()
    if delegation is None or delegation.job.status != JobStatus.RUNNING:
        return None
    attempt: dict[str, Any] = frame.body
    return offer_of(delegation.job) | attempt | _credential(delegation.job)


def offer_of(job: Job) -> dict[str, Any]:
    """What the job wants of the machine. What it may do is what it was allowed when the job was made."""
    wanted, authority = job.delegation or {}, job.authority_snapshot or {}
    told = {name: wanted[name] for name in _TOLD if wanted.get(name) is not None}
    return told | {
        "agent_id": authority.get("agent_id"),
        "cwd": authority.get("cwd"),
        "authority": {"tier": authority.get("machine_tier"), "roots": authority.get("roots")},
    }


def _credential(job: Job) -> dict[str, Any]:
    """The Git credential that was minted for this delivery, if the job is to have one. It is nowhere else."""
    minted = [answer for answer in hooks.job_credential(job) if answer]
    return {"assignment_credential": minted[0]} if minted else {}
