"""The worker's driver of deep-work jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from base import leases, notify, pump
from base.clock import database_now
from base.pump import Holder, Pump
from base.wakeups import wait_until
from openagents_site.registry import drivers
from tests.waiting import eventually
from tests.work.conftest import DEAD_WORKER, JobOf, in_thread
from tests.work.scripted import Recaller, ScriptedModel, asks, one_after_the_other, registry, said
from work.deep_work.driver import JobDriver
from work.model_client import Started, Text
from work.models import Incident, Job
from work.services import cancel_job, claim_for_run, get_job, list_job_steps
from work.watching import key_of

pytestmark = pytest.mark.django_db(transaction=True)


class Working:
    """A worker with one driver, in a thread."""

    def __init__(self, driver: JobDriver, lease_seconds: int = 30) -> None:
        self.driver = driver
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=in_thread(lambda: self._work(lease_seconds)))
        self.left: int | None = None

    def _work(self, lease_seconds: int) -> None:
        with notify.own_connection() as link:
            holder = Holder(leases.new_worker(link), lease_seconds)
            notify.listen(link, [notify.DUE])
            works = Pump([self.driver], holder, link)
            while not self.stopping.is_set():
                if not works.step():
                    works.wait()
            self.left = works.drain(30)

    def __enter__(self) -> Working:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join(60)
        connections.close_all()


def ended(job: Job) -> Job:
    assert wait_until(key_of(job.pk), lambda: get_job(job.pk).is_terminal, seconds=60)
    return get_job(job.pk)


@pytest.fixture
def recaller() -> Iterator[Recaller]:
    made = Recaller()
    yield made
    made.released.set()


def test_the_worker_drives_jobs_by_their_driver() -> None:
    found = [driver for driver in drivers() if driver.name == "jobs"]
    assert [type(driver) for driver in found] == [JobDriver]
    assert found[0] not in pump.quick(found)


def test_due_jobs_are_driven_at_once(make_job: JobOf) -> None:
    jobs = [make_job(f"goal {n}") for n in range(5)]
    together = threading.Barrier(5)
    model = ScriptedModel(lambda _: [together.wait, *said(Text("Together."))])

    with Working(JobDriver(slots=5, client=model, registry=registry())) as working:
        reports = [ended(job).report for job in jobs]

    assert reports == ["Together."] * 5
    assert working.left == 0


def test_no_more_jobs_are_driven_at_once_than_there_are_slots(make_job: JobOf) -> None:
    jobs = [make_job(f"goal {n}") for n in range(6)]
    inside, most, lock = [0], [0], threading.Lock()

    def enter() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])

    def leave() -> None:
        with lock:
            inside[0] -= 1

    model = ScriptedModel(lambda _: [enter, Started("r"), leave, *said(Text("Done."))])
    with Working(JobDriver(slots=2, client=model, registry=registry())):
        assert {ended(job).status for job in jobs} == {"completed"}
    assert most[0] <= 2


def test_it_takes_up_at_its_start_what_nobody_holds(make_job: JobOf) -> None:
    job = make_job()
    held = claim_for_run(job.pk, Holder(owner=DEAD_WORKER))
    with Working(JobDriver(client=ScriptedModel(), registry=registry(), recovers=True)):
        finished = ended(job)
    assert (finished.status, finished.generation > held.generation) == ("completed", True)
    assert Incident.objects.filter(code="runtime_restarted").count() == 1


def test_a_job_of_many_leases_stays_with_its_worker(make_job: JobOf, recaller: Recaller) -> None:
    job = make_job("[deep-work-block]")
    with Working(JobDriver(client=ScriptedModel(), registry=registry(recaller)), lease_seconds=4):
        assert recaller.blocked.wait(60)
        first = get_job(job.pk)
        eventually(lambda: is_beyond_its_lease(first))
        recaller.released.set()
        assert (ended(job).status, ended(job).generation) == ("completed", first.generation)


def is_beyond_its_lease(first: Job) -> bool:
    assert first.lease_expires_at is not None
    return database_now() > first.lease_expires_at


def test_a_cancel_reaches_a_job_that_is_driven(make_job: JobOf, recaller: Recaller) -> None:
    job = make_job("[deep-work-block]")
    with Working(JobDriver(slots=1, client=ScriptedModel(), registry=registry(recaller))):
        assert recaller.blocked.wait(60)
        assert cancel_job(job.pk).status == "running"
        assert ended(job).status == "cancelled"
    assert [step.status for step in list_job_steps(job)] == ["cancelled"]


def test_a_worker_that_ends_gives_its_jobs_back_as_they_stand(make_job: JobOf) -> None:
    job, asked, let_go = make_job(), threading.Event(), threading.Event()
    silent = ScriptedModel(lambda _: [Started("r"), Text("So far"), asked.set, lambda: let_go.wait(60)])
    with Working(JobDriver(client=silent, registry=registry())) as working:
        assert asked.wait(60)
    let_go.set()
    left = get_job(job.pk)
    assert (working.left, left.status, left.lease_expires_at) == (0, "running", None)

    with Working(JobDriver(client=ScriptedModel(), registry=registry())):
        assert ended(job).report == "I hear you. You said: summarize the plan"
    assert not Incident.objects.exists()


def test_a_job_whose_thread_fails_is_given_back_and_ends_after_five_times(
    make_job: JobOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from work.deep_work import driver

    monkeypatch.setattr(driver, "AGAIN", driver.AGAIN.__class__(driver.AGAIN.first * 0, driver.AGAIN.cap * 0))
    model = ScriptedModel(lambda _: [RuntimeError("a bug")])
    job = make_job()
    with Working(JobDriver(client=model, registry=registry())):
        finished = ended(job)
    assert (finished.status, finished.error_code, len(model.requests)) == (
        "failed",
        "provider_task_exited",
        5,
    )


def test_jobs_that_wait_for_their_model_hold_no_connection(make_job: JobOf) -> None:
    jobs, everybody, let_go = (
        [make_job(f"goal {n}") for n in range(20)],
        threading.Barrier(21),
        threading.Event(),
    )
    model = ScriptedModel(lambda _: [everybody.wait, lambda: let_go.wait(100), *said(Text("Done."))])
    with Working(JobDriver(slots=20, client=model, registry=registry())):
        everybody.wait(60)
        # The worker's three, four clerks, and the test's. One that was closed is there a moment longer.
        eventually(lambda: connections_in_use() <= 10)
        assert not let_go.is_set()
        let_go.set()
        assert {ended(job).status for job in jobs} == {"completed"}


def connections_in_use() -> int:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def test_one_pass_by_hand_drives_what_is_due(make_job: JobOf) -> None:
    job = make_job()
    driver = JobDriver(
        client=ScriptedModel(one_after_the_other(said(asks("x", "1")), said(Text("Done.")))),
        registry=registry(),
    )
    counts: Any = pump.run_once([driver])
    driver.close()
    assert (counts.claimed, counts.settled, get_job(job.pk).report) == (1, 1, "Done.")
