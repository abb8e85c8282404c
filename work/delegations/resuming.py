"""Giving a machine again what it no longer knows of: its folder was lost, or the offer never came to it."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog

from work import progress
from work.delegations.offers import OFFER, send_offer
from work.models import Delegation, Machine, MachineFrame
from work.services import append_report_delta
from work.services.locking import locked
from work.states import JobStatus

log = structlog.get_logger(__name__)


def offer_again(machine: Machine, known: Collection[tuple[str, int]]) -> int:
    """Offer anew, as a further attempt, what runs on this machine and is neither among what it knows (`known`: job and
    attempt) nor on its way to it; returns how many. In the transaction that connects the machine: its news wait."""
    count = 0
    for job_id in _open(machine):
        job = locked(job_id)
        delegation = Delegation.objects.select_for_update(no_key=True).get(pk=job_id)
        if job.status != JobStatus.RUNNING or delegation.closed_at is not None:
            continue
        if (str(job_id), delegation.attempt) in known or _is_on_its_way(delegation):
            continue
        append_report_delta(job.pk, job.generation, progress.settled(job.pk, job.report or ""), offset=0)
        delegation.attempt += 1
        delegation.accepted_at = None
        delegation.save(update_fields=["attempt", "accepted_at"])
        send_offer(delegation)
        count += 1
        log.warning("delegation_offered_again", job=str(job_id), attempt=delegation.attempt)
    return count


def _open(machine: Machine) -> list[UUID]:
    running = Delegation.objects.filter(machine=machine, closed_at=None, job__status=JobStatus.RUNNING)
    return list(running.order_by("offered_at").values_list("job_id", flat=True))


def _is_on_its_way(delegation: Delegation) -> bool:
    wanted = {"job": str(delegation.job_id), "attempt": delegation.attempt}
    return MachineFrame.objects.filter(
        machine_id=delegation.machine_id, kind=OFFER, body__contains=wanted
    ).exists()
