"""A worker that does a whole job by its script, taking up whatever an earlier one left; for tests that kill it.

`python -m tests.work.killed JOB_ID`, with the product's settings in the environment.
"""

from __future__ import annotations

import sys
from uuid import UUID

import django

CALLS = ("first", "second", "third")


def main(job_id: UUID) -> None:
    from base import leases, notify
    from base.pump import Holder
    from work.services import claim_for_run

    link = notify.own_connection()
    job = claim_for_run(job_id, Holder(owner=leases.new_worker(link)))
    work(job.pk, job.generation)


def work(job_id: UUID, generation: int) -> None:
    from work import services

    services.interrupt_running_steps(job_id, generation)
    known = {step.provider_call_id: step for step in services.list_job_steps(job_id)}
    for call in CALLS:
        step = known.get(call) or services.request_job_step(
            job_id, generation, provider_call_id=call, tool_name="append", arguments="{}"
        )
        if step.is_terminal:
            continue
        assert services.start_job_step(job_id, generation, step.pk) == "started"
        print(call, flush=True)  # the effect that must not happen twice
        services.complete_job_step(
            job_id,
            generation,
            step.pk,
            {
                "call_id": call,
                "tool_name": "append",
                "status": "succeeded",
                "result": {},
                "executor": {"id": "host"},
                "target_receipt_refs": [],
                "attribution_refs": [],
            },
        )
    services.finish_job(job_id, "completed", final_text="all three", generation=generation)


if __name__ == "__main__":
    django.setup()
    main(UUID(sys.argv[1]))
