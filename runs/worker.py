"""One step of one run, in this process."""

from __future__ import annotations

from uuid import UUID

from base import pump
from base.pump import Counts, Holder
from runs.driver import RunDriver
from runs.errors import RunNotFound
from runs.models import Run


def step(run_id: UUID) -> Run:
    """Do the one thing that the run needs now, due or not: dispatch, probe, poll or kill it, or end it. Returns the run.

    At most one command is sent. A run that somebody else holds, or that needs nothing, is returned as it is. Raises
    RunNotFound.
    """
    driver, holder, counts = RunDriver(slots=1), Holder(), Counts()
    task = driver.claim_one(run_id, holder)
    if task is not None:
        pump.settle(driver, holder, [pump.perform(driver, task)], counts)
    run = Run.objects.select_related("conversation_box").filter(pk=run_id).first()
    if run is None:
        raise RunNotFound
    return run
