"""Agent jobs: how near their number in a second comes to what the model's own time allows, and what they cost meanwhile.

A hundred jobs are accepted at once; each asks a model that takes two seconds for every answer, calls two tools, and reports.
The baseline is `benchmarks.baseline.plain_loop`: as many threads, the same model, nothing kept. `BENCH_JOBS` and
`BENCH_AT_ONCE` change the number of jobs (100) and how many the worker drives at once (50).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from benchmarks.house import house, say
from benchmarks.observing import cost_of
from benchmarks.results import Row, quantile, report
from benchmarks.streaming import Connections
from tests.faults.installation import REPOSITORY, Installation
from tests.waiting import eventually

JOBS = int(os.environ.get("BENCH_JOBS", "100"))
AT_ONCE = int(os.environ.get("BENCH_AT_ONCE", "50"))
CALLS = 2
MODEL_SECONDS = 2.0
SECONDS_EACH = (CALLS + 1) * MODEL_SECONDS


def main(*, json: bool) -> None:
    with slow_model(CALLS, MODEL_SECONDS) as base_url:
        settings = {
            "WORK_MODEL": "slow",
            "WORK_MODEL_BASE_URL": base_url,
            "WORK_JOB_CONCURRENCY": str(AT_ONCE),
        }
        with house(settings=settings) as made:
            rows = measured(made, base_url)
    report("jobs", rows, as_json=json)


@contextmanager
def slow_model(calls: int, seconds: float) -> Iterator[str]:
    """The base URL of a model that calls so many tools and then reports, each answer after so many seconds."""
    command = [sys.executable, "-m", "benchmarks.slow_model", str(calls), str(seconds)]
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def measured(made: Installation, base_url: str) -> list[Row]:
    worker = made.add_worker()
    eventually(lambda: "worker_started" in worker.said())
    say("warming up")
    driven(1)
    say(f"{JOBS} jobs")
    with cost_of(worker.pid) as cost, Connections(made.database) as held:
        took = driven(JOBS)
    worker.stop()
    say("baseline")
    plain = float(
        subprocess.check_output(
            [sys.executable, "-m", "benchmarks.baseline.plain_loop", str(JOBS), str(AT_ONCE), base_url],
            cwd=REPOSITORY,
            text=True,
        )
    )
    return rows_of(took, plain, cost.cpu, cost.rss, held.most)


def rows_of(took: list[float], plain: float, cpu: float, rss: float, connections: int) -> list[Row]:
    """`took`: seconds from the first acceptance to each job's report."""
    limit = -(-JOBS // AT_ONCE) * SECONDS_EACH
    what = f"{JOBS} jobs, {AT_ONCE} at once, {CALLS + 1} answers of {MODEL_SECONDS:g} s each"
    return [
        Row(f"{what}: all have reported", max(took), "s", plain, f"at most {limit / 0.8:g} s"),
        Row(
            f"{what}: share of what the model allows",
            100 * limit / max(took),
            "%",
            100 * limit / plain,
            "80 %",
        ),
        Row(f"{what}: accepted to report, p50", quantile(took, 0.5), "s"),
        Row(f"{what}: worker CPU of one core", cpu, "%"),
        Row(f"{what}: worker memory", rss, "MiB"),
        Row(f"{what}: database connections, this measurement's included", connections, ""),
    ]


def driven(number: int) -> list[float]:
    """Accept so many jobs at once and wait until all have reported."""
    from django.db import transaction

    from conversations.services import ensure_conversation
    from work.models import Job
    from work.services import create_job
    from work.watching import wake_workers

    conversation = ensure_conversation("bench")
    with transaction.atomic():
        ids = [
            create_job(
                conversation_id=conversation.pk,
                owner_visitor_id=conversation.visitor_id,
                goal="look through the plan",
            ).pk
            for _ in range(number)
        ]
        wake_workers()
    accepted = now()
    jobs = Job.objects.filter(pk__in=ids)
    eventually(lambda: not jobs.filter(completed_at=None).exists(), seconds=600)
    assert set(jobs.values_list("status", flat=True)) == {"completed"}, list(
        jobs.values_list("error_code", flat=True)
    )
    return [
        (ended - accepted).total_seconds() for ended in jobs.values_list("completed_at", flat=True) if ended
    ]


def now() -> datetime:
    from base.clock import database_now

    return database_now()
