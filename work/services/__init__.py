"""The writers of the ledger of jobs, and its readings.

Every write of a worker names the generation that it claimed. `append_report_delta`, `record_continuation`,
`checkpoint_delegation_session` and `release` answer `"fenced"` where another worker holds the job by now; the others raise
`JobFenced`. Nothing is written then.
"""

from __future__ import annotations

from work.services.admission import create_job, start_job
from work.services.cancelling import cancel_active_delegations, cancel_job, cancel_of_owner
from work.services.claiming import (
    Captured,
    claim_due,
    claim_for_run,
    look_at_held,
    record_failure,
    release,
    renew,
)
from work.services.finishing import finish_job
from work.services.reading import get_job, list_job_steps, list_jobs, seconds_until_due
from work.services.recovery import recover_interrupted_jobs, release_orphans, sweep_ended_leases
from work.services.steps import (
    complete_job_step,
    interrupt_running_steps,
    refuse_job_step,
    request_job_step,
    start_job_step,
)
from work.services.writing import (
    append_report_delta,
    checkpoint_delegation_session,
    record_continuation,
    record_usage,
)

__all__ = [
    "Captured",
    "append_report_delta",
    "cancel_active_delegations",
    "cancel_job",
    "cancel_of_owner",
    "checkpoint_delegation_session",
    "claim_due",
    "claim_for_run",
    "complete_job_step",
    "create_job",
    "finish_job",
    "get_job",
    "interrupt_running_steps",
    "list_job_steps",
    "list_jobs",
    "look_at_held",
    "record_continuation",
    "record_failure",
    "record_usage",
    "recover_interrupted_jobs",
    "refuse_job_step",
    "release",
    "release_orphans",
    "renew",
    "request_job_step",
    "seconds_until_due",
    "start_job",
    "start_job_step",
    "sweep_ended_leases",
]
