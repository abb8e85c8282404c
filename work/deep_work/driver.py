"""The driver of deep-work jobs for `base.pump`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from django.db import connection

from base import leases
from base.pump import Holder, Outcome
from work import services, watching
from work.conf import work_settings
from work.deep_work.capture import captured
from work.deep_work.keeper import Keeper
from work.deep_work.ledger import Clerks
from work.deep_work.loop import AGAIN, DeepWork, Left
from work.deep_work.stop import Stop, StopReason
from work.errors import JobFenced
from work.model_client import ModelClient, model_client
from work.models import Job
from work.services import Captured
from work.states import ACTIVE, JobKind
from work.tools import REGISTRY, Registry

log = structlog.get_logger(__name__)

ORPHANS_EVERY_SECONDS = 1.0
UNEXPECTED = "provider_task_exited"


@dataclass(frozen=True)
class Task:
    """A claimed job, and how its thread is told to leave it."""

    job: Job
    stop: Stop = field(default_factory=Stop, repr=False)

    @property
    def id(self) -> UUID:
        return self.job.pk


class JobDriver:
    """Drives deep-work jobs, each in a thread from its claim until it ends or is given back.

    Unlike other drivers' steps that is minutes, so the database is used through a few clerks, the leases are renewed by a
    keeper, and `leave` gives everything back when the process is to end.
    """

    name = watching.DRIVER
    is_long = True

    def __init__(
        self,
        slots: int | None = None,
        *,
        client: ModelClient | None = None,
        registry: Registry | None = None,
        recovers: bool = False,
    ) -> None:
        """`recovers`: whether the first claim takes up every job that nobody holds, as a worker does at its start."""
        self.slots = slots or work_settings().job_concurrency
        self._client, self._registry = client, REGISTRY if registry is None else registry
        self._recovers = recovers
        self._orphans_at = 0.0
        self._is_leaving = False
        self._known: tuple[str, Captured] | None = None
        self._keeper: Keeper | None = None
        self._clerks: Clerks | None = None

    def claim(self, holder: Holder, limit: int) -> Sequence[Task]:
        """At most `limit` due jobs. Whatever woke the worker may be about a job in hand, so those are looked at as well."""
        if self._is_leaving:
            return []
        self._recover()
        if self._keeper is not None:
            self._keeper.wake()
        jobs = services.claim_due(holder, limit, kinds=[JobKind.DEEP_WORK], captured=self._captured())
        tasks = [Task(job) for job in jobs]
        if tasks and self._clerks is None:
            self._clerks = Clerks()  # here, where one thread is: the jobs' own would each make some
        for task in tasks:
            self._kept_by(holder).add(task.id, task.job.generation, task.stop)
        return tasks

    def perform(self, task: Task) -> Left:
        """Drive the job. Raises what nobody expected."""
        assert self._clerks is not None, "who claimed it made them"
        try:
            client = self._client or model_client()
            work = DeepWork(
                task.job, ledger=self._clerks, stop=task.stop, client=client, registry=self._registry
            )
            return work.run()
        finally:
            if self._keeper is not None:
                self._keeper.remove(task.id)

    def settle(self, holder: Holder, outcomes: Sequence[Outcome]) -> None:
        """Everything is written by then, but that a job's thread failed: it is given back, and counted."""
        for outcome in outcomes:
            if outcome.error is not None:
                self._settle_failed(outcome.task, outcome.error)

    def seconds_until_due(self) -> float | None:
        """Until the next job is due, or the lease of one ends; None if no job needs anything."""
        with connection.cursor() as cursor:
            cursor.execute(_NEXT_DUE)
            row = cursor.fetchone()
        return max(0.0, float(row[0])) if row and row[0] is not None else None

    def leave(self) -> None:
        """Claim nothing more and have every job given back as it stands, soon. May be called from any thread."""
        self._is_leaving = True
        if self._keeper is not None:
            self._keeper.stop_all(StopReason.LEAVING)

    def close(self) -> None:
        """End the threads that the driver keeps, once no job is in hand."""
        if self._keeper is not None:
            self._keeper.close()
        if self._clerks is not None:
            self._clerks.close()

    def _captured(self) -> Captured:
        """Composed once for each model: claims are frequent."""
        conf = work_settings()
        if self._known is None or self._known[0] != conf.model:
            self._known = (conf.model, captured(conf, self._registry))
        return self._known[1]

    def _kept_by(self, holder: Holder) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper(holder.lease_seconds)
        return self._keeper

    def _recover(self) -> None:
        if time.monotonic() - self._orphans_at < ORPHANS_EVERY_SECONDS:
            return
        self._orphans_at = time.monotonic()
        if self._recovers:
            services.recover_interrupted_jobs()
        elif count := services.release_orphans():
            log.warning("jobs_taken_over", count=count)
        self._recovers = False

    def _settle_failed(self, task: Task, error: Exception) -> None:
        log.error("job_thread_failed", job=str(task.id), exc_info=error)
        delay = AGAIN.after(task.job.failures + 1).total_seconds()
        try:
            services.record_failure(task.id, task.job.generation, UNEXPECTED, delay_seconds=delay)
        except JobFenced:
            log.info("job_taken_away", job=str(task.id))


_NEXT_DUE = f"""
    select extract(epoch from job.next_step_at - clock_timestamp()) from work_jobs job
    where job.next_step_at is not null and job.kind = '{JobKind.DEEP_WORK.value}' and {leases.free("job")}
      and job.status in ({", ".join(f"'{status.value}'" for status in ACTIVE)})
    order by job.next_step_at limit 1
"""  # noqa: S608 - constants of ours
