"""A deep-work job that is told to end, and its text while it comes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from base.wakeups import wait_until
from tests.work.conftest import JobOf, in_thread
from tests.work.driven import CALL, REPORT, done
from tests.work.scripted import ScriptedModel, one_after_the_other, registry, said
from work.deep_work.stop import Stop, StopReason
from work.model_client import Started, Text
from work.services import cancel_job, get_job, list_job_steps
from work.watching import key_of
from work.worker import drive

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_a_cancel_reaches_a_job_whose_model_is_silent(make_job: JobOf) -> None:
    job, asked, let_go = make_job(), threading.Event(), threading.Event()
    silent = ScriptedModel(lambda _: [Started("r"), Text("So far"), asked.set, lambda: let_go.wait(60)])
    worker = threading.Thread(target=in_thread(lambda: drive(job.pk, client=silent, registry=registry())))
    worker.start()
    assert asked.wait(60)
    assert cancel_job(job.pk).status == "running"
    worker.join(60)
    let_go.set()
    ended = get_job(job.pk)
    assert (ended.status, ended.error_code) == ("cancelled", "cancelled")
    assert ended.report == "Deep work job was cancelled.\n\nSo far"


@pytest.mark.django_db(transaction=True)
def test_a_cancel_reaches_a_job_in_its_tool(make_job: JobOf) -> None:
    job, inside, left = make_job(), threading.Event(), threading.Event()

    def execute(call: Any) -> None:
        inside.set()
        assert call.stop.wait(60)
        left.set()

    model = ScriptedModel(one_after_the_other(CALL, REPORT))
    worker = threading.Thread(
        target=in_thread(lambda: drive(job.pk, client=model, registry=registry(execute)))
    )
    worker.start()
    assert inside.wait(60)
    cancel_job(job.pk)
    worker.join(60)
    assert left.wait(60)
    assert get_job(job.pk).status == "cancelled"
    assert [step.status for step in list_job_steps(job)] == ["cancelled"]


def test_a_process_that_ends_gives_the_job_back_as_it_stands(make_job: JobOf) -> None:
    job, stop = make_job(), Stop()
    tools = registry(lambda _: stop.set(StopReason.LEAVING) or {"matches": []})
    held, _ = done(job, CALL, REPORT, tools=tools, stop=stop)
    assert (held.status, held.lease_expires_at) == ("running", None)
    assert [step.status for step in list_job_steps(job)] == ["succeeded"]
    ended, _ = done(job, REPORT)
    assert (ended.status, ended.tool_call_count) == ("completed", 1)


def test_a_long_text_is_cut_on_a_character(make_job: JobOf) -> None:
    job, _ = done(make_job(), said(*[Text("日本🙂é" * 100) for _ in range(20)]))
    assert 7_990 <= len(job.report.encode()) <= 8_000
    assert "\ufffd" not in job.report


@pytest.mark.django_db(transaction=True)
def test_the_text_can_be_read_while_it_comes(make_job: JobOf) -> None:
    job, asked, let_go = make_job(), threading.Event(), threading.Event()
    model = ScriptedModel(
        lambda _: said(Text("x" * 2000), Text("y"), asked.set, lambda: let_go.wait(60), Text("z"))
    )
    worker = threading.Thread(target=in_thread(lambda: drive(job.pk, client=model, registry=registry())))
    worker.start()
    assert wait_until(key_of(job.pk), lambda: bool(get_job(job.pk).report), seconds=60)
    let_go.set()
    worker.join(60)
    assert get_job(job.pk).report == "x" * 2000 + "yz"
