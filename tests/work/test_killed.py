"""Workers that are killed at every point of a job's life."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from conversations.models import Message
from tests.work.conftest import JobOf, found_interrupted
from work.models import Incident, Job
from work.services import get_job, list_job_steps

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]
REPOSITORY = Path(__file__).resolve().parents[2]
POINTS = [
    "jobs.claimed",
    "jobs.step_requested",
    "jobs.step_started",
    "jobs.step_completed",
    "jobs.finishing",
    "jobs.finished",
]


def worker(job: Job, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that works on the job, to its end or until it is killed."""
    database = connection.settings_dict
    host = database["HOST"].replace("/", "%2F")
    secret = f":{database['PASSWORD']}" if database["PASSWORD"] else ""
    port = f":{database['PORT']}" if database["PORT"] else ""
    url = f"postgres://{database['USER']}{secret}@{host}{port}/{database['NAME']}"
    assert make_conninfo(url)
    return subprocess.run(
        [sys.executable, "-m", "tests.work.killed", str(job.pk)],
        cwd=REPOSITORY,
        env=os.environ
        | {"DATABASE_URL": url, "SECRET_KEY": django_settings.SECRET_KEY, "PYTHONPATH": "."}
        | {"DJANGO_SETTINGS_MODULE": "openagents_site.settings"}
        | environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize("point", POINTS)
def test_wherever_a_worker_is_killed_the_job_ends_right_and_nothing_is_done_twice(
    make_job: JobOf, point: str
) -> None:
    job = make_job()
    killed = worker(job, FAULT_POINTS=f"{point}=kill")
    assert killed.returncode == -9, killed.stderr
    left = get_job(job.pk)
    assert left.is_terminal == (point == "jobs.finished")
    assert found_interrupted() == (0 if left.is_terminal else 1)  # free at once: its sign of life is gone

    done = killed.stdout.split()
    if not left.is_terminal:
        second = worker(job)
        assert second.returncode == 0, second.stderr
        done += second.stdout.split()

    ended = get_job(job.pk)
    assert (ended.status, ended.report) == ("completed", "all three")
    assert Message.objects.get(work_job_id=job.pk).content == "all three"
    assert max(Counter(done).values()) == 1
    expected = ["interrupted" if point == "jobs.step_started" else "succeeded", "succeeded", "succeeded"]
    assert [step.status for step in list_job_steps(ended)] == expected
    assert Incident.objects.filter(code="runtime_restarted").count() == (0 if left.is_terminal else 1)
