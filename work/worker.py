"""One job, driven to its end in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

from base import connections
from base.pump import Holder
from work import services
from work.conf import work_settings
from work.deep_work.capture import captured
from work.deep_work.keeper import Keeper
from work.deep_work.ledger import Clerks, InThisThread, Ledger
from work.deep_work.loop import DeepWork
from work.deep_work.stop import Stop
from work.errors import JobFenced, JobTerminal, NotDriven
from work.model_client import ModelClient, model_client
from work.models import Job
from work.states import JobKind
from work.tools import REGISTRY, Registry


def drive(
    job_id: UUID,
    *,
    client: ModelClient | None = None,
    registry: Registry | None = None,
    holder: Holder | None = None,
    take_over: bool = False,
    stop: Stop | None = None,
) -> Job:
    """Do a deep-work job until it has ended; returns it. One that has ended already is returned as it is.

    Where the model is to be asked again later, this waits. By default a job that somebody is at work on is left alone
    (JobHeld); with `take_over` it is taken away. `stop` ends the waiting early, and the job is given back. Raises
    JobNotFound, JobHeld, NotDriven for a delegation, JobFenced where somebody else took the job away.
    """
    client, registry, stop = (
        client or model_client(),
        REGISTRY if registry is None else registry,
        stop or Stop(),
    )
    if services.get_job(job_id).kind != JobKind.DEEP_WORK:
        raise NotDriven
    while not stop.is_set:
        job = _claimed(job_id, holder or Holder(), registry, take_over=take_over)
        if job is None:
            break
        with _in_hand(job, holder or Holder(), stop) as ledger:
            DeepWork(job, ledger=ledger, stop=stop, client=client, registry=registry).run()
        if _is_over(job, stop):
            break
    return services.get_job(job_id)


def _claimed(job_id: UUID, holder: Holder, registry: Registry, *, take_over: bool) -> Job | None:
    try:
        return services.claim_for_run(
            job_id, holder, captured=captured(work_settings(), registry), only_if_free=not take_over
        )
    except JobTerminal:
        return None


def _is_over(job: Job, stop: Stop) -> bool:
    """Whether nothing is left to do here; else it is time to go on. Raises JobFenced for a job that was taken away."""
    left = services.get_job(job.pk)
    if left.is_terminal:
        return True
    if left.generation != job.generation:
        raise JobFenced
    seconds = services.seconds_until_due(job.pk)
    connections.release()
    return stop.wait(seconds)


@contextmanager
def _in_hand(job: Job, holder: Holder, stop: Stop) -> Iterator[Ledger]:
    """Keep the job while it is driven, and how the database is used for it. Inside a transaction of the caller's nobody else
    sees the claim, nor could: there is this thread's connection only."""
    if connection.in_atomic_block:
        yield InThisThread()
        return
    connections.release()
    keeper, clerk = Keeper(holder.lease_seconds), Clerks(1)
    keeper.add(job.pk, job.generation, stop)
    try:
        yield clerk
    finally:
        keeper.close()
        clerk.close()
