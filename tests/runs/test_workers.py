"""Whole worker processes that share runs, and die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as django_settings
from django.db import connection

from base import leases
from boxes.client import client
from boxes.models import Box
from conversations.models import Conversation
from runs.models import Run
from runs.services import start_run
from tests.fakes.provider import FakeProvider
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
REPOSITORY = Path(__file__).resolve().parents[2]


class Workers:
    """`manage.py run_worker` processes on the test's database."""

    def __init__(self, box_api: dict[str, Any]) -> None:
        self.box_api = box_api
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "run_worker", "--no-passes"],
            cwd=REPOSITORY,
            env=os.environ | self._environment() | environment,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def kill9(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait(30)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                self.kill9(process)

    def _environment(self) -> dict[str, str]:
        known = connection.get_connection_params()
        secret = f":{known['password']}" if known.get("password") else ""
        port = f":{known['port']}" if known.get("port") else ""
        host = quote(str(known.get("host") or "localhost"), safe="")
        return {
            "DATABASE_URL": f"postgres://{known['user']}{secret}@{host}{port}/{known['dbname']}",
            "SECRET_KEY": django_settings.SECRET_KEY,
            "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
            "BOX_API_BASE_URL": self.box_api["base_url"],
            "BOX_API_KEY": self.box_api["api_key"],
            "RUN_POLL_INTERVAL_MS": "200",
        }


@pytest.fixture
def workers(provider_settings: None, settings: Any) -> Iterator[Workers]:
    pool = Workers(settings.BOX_API)
    yield pool
    pool.close()


COUNT = "echo ran >> $HOME/counter"


def count(box: Box) -> int:
    """How often the command that counts has really run in this box."""
    assert box.box_id is not None
    return client().command(box.box_id, "cat $HOME/counter 2>/dev/null", 10).stdout.count("ran\n")


def admitted(box: Box, command: str) -> Run:
    return start_run(
        box.conversation_id, box.pk, {"type": "user", "id": "tester"}, command, str(uuid.uuid4())
    )


def ended(*runs: Run) -> bool:
    ids = [run.pk for run in runs]
    return not Run.objects.filter(pk__in=ids).exclude(state__in=Run.TERMINAL_STATES).exists()


def test_a_worker_is_woken_by_an_admission_and_drives_the_run(box: Box, workers: Workers) -> None:
    workers.start()
    eventually(leases.live_workers)

    run = admitted(box, "echo hello; exit 3")
    eventually(lambda: ended(run))

    run.refresh_from_db()
    assert (run.state, run.exit_status, run.output) == ("failed", 3, "hello\n")


def test_what_a_killed_worker_held_is_taken_over(
    make_box: Callable[..., Box], conversation: Conversation, workers: Workers
) -> None:
    boxes = [make_box(conversation) for _ in range(4)]
    first = workers.start()
    eventually(leases.live_workers)
    until_told = "until [ -e $HOME/go-on ]; do sleep 0.1; done"
    runs = [
        admitted(box, f"echo up; {until_told}; echo done; exit {number}") for number, box in enumerate(boxes)
    ]
    eventually(lambda: Run.objects.filter(state="running", lease_owner__isnull=False).count() == 4)

    workers.kill9(first)  # it waits on four boxes just now
    workers.start()
    for box in boxes:
        client().command(str(box.box_id), "touch $HOME/go-on", 30)
    eventually(lambda: ended(*runs))

    for number, run in enumerate(runs):
        run.refresh_from_db()
        assert (run.exit_status, run.output) == (number, "up\ndone\n")


@pytest.mark.parametrize(
    "point",
    ["runs.claimed", "runs.sending", "runs.answered", "runs.settling", "runs.written", "runs.settled"],
)
def test_a_worker_killed_at_any_point_of_a_dispatch_starts_nothing_twice(
    box: Box, workers: Workers, point: str
) -> None:
    doomed = workers.start(FAULT_POINTS=f"{point}=kill")
    eventually(leases.live_workers)
    run = admitted(box, f"{COUNT}; sleep 1; echo out")
    assert doomed.wait(100) == -signal.SIGKILL

    workers.start()
    eventually(lambda: ended(run))

    run.refresh_from_db()
    if point in ("runs.claimed", "runs.sending"):
        assert (run.state, run.failure_reason, count(box)) == ("lost", "dispatch_ambiguous", 0)
    else:
        assert (run.state, run.output, count(box)) == ("completed", "out\n", 1)


def test_two_workers_share_runs_and_never_start_one_twice(
    make_box: Callable[..., Box], conversation: Conversation, workers: Workers
) -> None:
    boxes = [make_box(conversation) for _ in range(6)]
    for _ in range(2):
        workers.start()
    eventually(lambda: len(leases.live_workers()) == 2)
    runs = []
    for _ in range(4):
        batch = [admitted(box, COUNT) for box in boxes]
        eventually(lambda batch=batch: ended(*batch), seconds=60)
        runs += batch

    assert [count(box) for box in boxes] == [4] * 6
    assert set(Run.objects.values_list("state", flat=True)) == {"completed"}


def test_a_worker_that_is_asked_to_stop_leaves_nothing_held(box: Box, workers: Workers) -> None:
    process = workers.start()
    eventually(leases.live_workers)
    run = admitted(box, "echo up; sleep 60")
    eventually(lambda: Run.objects.filter(pk=run.pk, state="running", lease_owner__isnull=False).exists())

    process.terminate()
    assert process.wait(60) == 0

    eventually(
        lambda: not leases.live_workers()
    )  # the server notices a moment later that its connection is closed
    step_free = Run.objects.get(pk=run.pk)
    assert step_free.lease_owner is None
    assert step_free.state == "running"


def test_a_worker_that_is_asked_to_stop_does_not_wait_for_a_look(
    fake: FakeProvider, begin: Callable[..., Run]
) -> None:
    workers = Workers(fake.settings)
    process = workers.start()
    eventually(leases.live_workers)
    hold = fake.hold("command", when=lambda request: b"wait_for_news 20" in request.body)
    try:
        run = begin("sleep 60")
        hold.wait_until_arrived()
        process.terminate()

        assert process.wait(30) == 0
        assert Run.objects.get(pk=run.pk).lease_owner is None
    finally:
        hold.release()
        workers.close()
