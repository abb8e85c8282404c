"""A worker is killed with -9 at every boundary of every step of a job of ten tool calls, in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection

from conversations.models import Message
from tests.work.conftest import JobOf, found_interrupted
from tests.work.ten_tools import CALLS, CHUNK, REPORT
from work.models import Job
from work.services import get_job, list_job_steps

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).resolve().parents[2]
BOUNDARIES = ["jobs.step_requested", "jobs.step_started", "jobs.step_completed"]
ONCE = ["jobs.claimed", "jobs.finishing", "jobs.finished"]


class Workers:
    """Starts one worker after the other for jobs."""

    def __init__(self, folder: Path) -> None:
        database = connection.settings_dict
        secret = f":{database['PASSWORD']}" if database["PASSWORD"] else ""
        port = f":{database['PORT']}" if database["PORT"] else ""
        host = database["HOST"].replace("/", "%2F")
        url = f"postgres://{database['USER']}{secret}@{host}{port}/{database['NAME']}"
        own = {"DATABASE_URL": url, "SECRET_KEY": django_settings.SECRET_KEY, "PYTHONPATH": "."}
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.work.ten_tools"], cwd=REPOSITORY, text=True,
            env=os.environ | own | {"DJANGO_SETTINGS_MODULE": "openagents_site.settings", "LOG_LEVEL": "ERROR"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, job: Job, point: str = "-", times: int = 0) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{job.pk} {point} {times} {self.effects_of(job)}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def effects_of(self, job: Job) -> Path:
        return self.folder / str(job.pk)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    made = Workers(tmp_path)
    yield made
    made.close()


def ended(workers: Workers, job: Job, point: str, times: int) -> tuple[Job, Counter[str]]:
    """The job after a worker was killed there and another took it up, and how often each call took effect."""
    assert workers.run(job, point, times)["signal"] == 9, (point, times)
    if not get_job(job.pk).is_terminal:
        assert found_interrupted() == 1  # free at once: its sign of life is gone
        assert workers.run(job)["exit"] == 0
    return get_job(job.pk), Counter(workers.effects_of(job).read_text().split())


def wrong(job: Job, done: Counter[str], point: str, times: int) -> list[str]:
    """What is not as it must be, wherever the worker was killed."""
    steps = list_job_steps(job)
    found = []
    if (job.status, job.report) != ("completed", REPORT):
        found.append(f"ended as {job.status} with {job.report!r}")
    if Message.objects.get(work_job_id=job.pk).content != REPORT:
        found.append("another message")
    if any(times > 1 for query, times in done.items() if int(query) % 2 == 0):
        found.append(f"an unsafe call twice: {done}")
    if len(steps) != CALLS or [step.provider_call_id for step in steps] != [
        f"call-{n}" for n in range(CALLS)
    ]:
        found.append(f"{len(steps)} steps")
    interrupted = [step.sequence for step in steps if step.status == "interrupted"]
    is_unsafe = point == "jobs.step_started" and times % 2 == 1
    if interrupted != ([times] if is_unsafe else []):
        found.append(f"interrupted: {interrupted}")
    if sorted(map(int, done)) != [n for n in range(CALLS) if not (is_unsafe and n == times - 1)]:
        found.append(f"took effect: {done}")
    if [step.report_offset for step in steps] != offsets():
        found.append("text doubled or lost")
    if (job.tool_call_count, job.continuation_count) != (CALLS, CALLS):
        found.append(f"counted {job.tool_call_count} calls, {job.continuation_count} answers")
    return found


def offsets() -> list[int]:
    """Where each call stands in the text, if nothing is doubled."""
    ends, end = [], 0
    for n in range(CALLS):
        end += len(CHUNK.format(n))
        ends.append(end)
    return ends


def test_wherever_a_worker_dies_the_job_ends_right_and_nothing_unsafe_is_done_twice(
    make_job: JobOf, workers: Workers
) -> None:
    moments = [(point, times) for point in BOUNDARIES for times in range(1, CALLS + 1)]
    moments += [(point, 1) for point in ONCE]
    failures = {}
    for point, times in moments:
        job, done = ended(workers, make_job(), point, times)
        if problems := wrong(job, done, point, times):
            failures[point, times] = problems
    assert failures == {}
    assert Job.objects.exclude(status="completed").count() == 0


def test_a_worker_that_dies_again_and_again_does_not_lose_the_job(make_job: JobOf, workers: Workers) -> None:
    job = make_job()
    for _ in range(CALLS):
        assert workers.run(job, "jobs.step_completed", 1)["signal"] == 9
        assert found_interrupted() == 1
    assert workers.run(job)["exit"] == 0
    finished = get_job(job.pk)
    assert (finished.status, finished.report, finished.generation) == ("completed", REPORT, CALLS + 1)
    assert [step.status for step in list_job_steps(job)] == ["succeeded"] * CALLS
