"""What the worker does for jobs of kind `delegation`: offers them to their machines, and ends those that nobody will.

A delegation needs no process while its machine is at work: the worker looks at it, decides, and gives it back until the next
time that something could be due. What the machine tells is taken by whichever web process hears it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from base import leases
from base.clock import database_now
from base.faults import declare, fault_point
from base.pump import Holder, Outcome
from work.channel import limits
from work.delegations import offers
from work.delegations.closing import close_ended
from work.delegations.decide import Action, Facts, Fail, Offer, Policy, Wait, decide
from work.machines.presence import is_online
from work.machines_conf import machine_settings
from work.models import Delegation, Job, Machine, MachineChannel
from work.services import claim_due, finish_job, record_failure, release
from work.services.locking import locked
from work.states import JobKind, JobStatus

log = structlog.get_logger(__name__)

OFFERED = declare("delegations.offered", "an offer is committed; the machine has not got it")

SLOTS = 64
AFTER_FAILURE_SECONDS = 5.0
SHORTEST_WAIT_SECONDS = 0.05


class DelegationDriver:
    """See `base.pump.Driver`."""

    name = "delegations"
    slots = SLOTS

    def claim(self, holder: Holder, limit: int) -> Sequence[Job]:
        close_ended()
        return claim_due(holder, limit, kinds=[JobKind.DELEGATION])

    def perform(self, task: Job) -> None:
        """Nothing: the machine is told by rows, which it fetches."""

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            _drive(outcome.task)

    def seconds_until_due(self) -> float | None:
        with connection.cursor() as cursor:
            cursor.execute(_NEXT)
            row = cursor.fetchone()
        return None if row is None or row[0] is None else max(0.0, float(row[0]))


_NEXT = f"""
    select extract(epoch from min(job.next_step_at) - clock_timestamp()) from work_jobs job
    where job.kind = 'delegation' and job.next_step_at is not null and {leases.free("job")}
"""  # noqa: S608 - constants of ours


def _drive(job: Job) -> None:
    """One decision about a claimed job; one that fails costs only itself."""
    try:
        with transaction.atomic():
            offered = _step(job)
        if offered:
            fault_point(OFFERED)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("delegation_not_driven", job=str(job.pk))
        record_failure(job.pk, job.generation, "delegation_not_driven", delay_seconds=AFTER_FAILURE_SECONDS)


def _step(claimed: Job) -> bool:
    """Decide and carry out, the job's row locked; whether it was offered. Somebody else's job by now is left alone."""
    job = locked(claimed.pk)
    if job.generation != claimed.generation or job.status != JobStatus.RUNNING:
        return False
    delegation = Delegation.objects.select_for_update(no_key=True).filter(pk=job.pk).first()
    now = database_now()
    facts = _facts(job, delegation, now)
    action = decide(facts, Policy(reconnect=timedelta(seconds=machine_settings().reconnect_seconds)))
    _carry_out(action, job, delegation, facts)
    return isinstance(action, Offer)


def _facts(job: Job, delegation: Delegation | None, now: datetime) -> Facts:
    assert job.machine_id is not None, "the database lets no delegation be without"
    machine = Machine.objects.select_related("channel").get(pk=job.machine_id)
    channel: MachineChannel | None = getattr(machine, "channel", None)
    wanted: dict[str, Any] = job.delegation or {}
    silent_at = machine.last_seen_at and machine.last_seen_at + timedelta(seconds=limits.ONLINE_SECONDS)
    return Facts(
        now=now,
        started_at=job.started_at or now,
        timeout=timedelta(milliseconds=wanted["timeout_ms"]),
        online=is_online(machine, now),
        offline_at=silent_at,
        connected_at=channel.connected_at if channel else None,
        resumes=bool(wanted.get("resume_session_id")),
        offered_at=delegation.offered_at if delegation else None,
        accepted_at=delegation.accepted_at if delegation else None,
        absent_until=delegation.absent_until if delegation else None,
    )


def _carry_out(action: Action, job: Job, delegation: Delegation | None, facts: Facts) -> None:
    match action:
        case Offer():
            assert job.machine_id is not None
            made = Delegation.objects.create(job=job, machine_id=job.machine_id, offered_at=facts.now)
            offers.send_offer(made)
            _give_back(job, 1.0)
        case Wait(until, absent_until):
            if delegation is not None and delegation.absent_until != absent_until:
                delegation.absent_until = absent_until
                delegation.save(update_fields=["absent_until"])
            _give_back(job, (until - facts.now).total_seconds())
        case Fail(code):
            log.info("delegation_given_up", job=str(job.pk), code=code)
            finish_job(job.pk, JobStatus.FAILED, error_code=code, generation=job.generation)


def _give_back(job: Job, seconds: float) -> None:
    release(job.pk, job.generation, delay_seconds=max(SHORTEST_WAIT_SECONDS, seconds))
