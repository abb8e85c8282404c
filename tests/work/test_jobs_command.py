"""`manage.py jobs`."""

from __future__ import annotations

import io
import json
import threading

import pytest
from django.core.management import CommandError, call_command

from tests.work.conftest import JobOf, in_thread
from tests.work.scripted import Recaller, ScriptedModel, asks, one_after_the_other, registry, said
from work.model_client import Text
from work.models import Job
from work.services import cancel_job, claim_for_run, get_job
from work.worker import drive

pytestmark = pytest.mark.django_db
ANSWERS = (said(asks("[b]x[/b]", "call-1")), said(Text("All \x1b[2Jdone.")))


def told(*arguments: str) -> str:
    out = io.StringIO()
    call_command("jobs", *arguments, stdout=out)
    return out.getvalue()


def done(job: Job) -> Job:
    return drive(job.pk, client=ScriptedModel(one_after_the_other(*ANSWERS)), registry=registry())


def test_it_lists_the_newest_jobs(make_job: JobOf) -> None:
    first, second = make_job("first\nthing"), make_job("second")
    done(first)
    assert [line.split()[0] for line in told("list").splitlines()[1:]] == [str(second.pk), str(first.pk)]
    assert str(first.pk) not in told("list", "--alive")
    assert str(second.pk) not in told("list", "--status", "completed")
    assert told("list", "--kind", "delegation").strip() == "no jobs"
    assert json.loads(told("list", "--json", "--limit", "1"))["id"] == str(second.pk)
    assert str(first.pk) in told("list", "--limit", "9" * 30)


def test_it_shows_a_job_with_its_steps_and_report(make_job: JobOf) -> None:
    job = done(make_job("look"))
    text = told("show", str(job.pk)[:8])
    assert "recall_messages" in text
    assert "[b]x[/b]" in text
    assert "All ␛" in text or "All done." in text
    assert "\x1b[2J" not in text
    assert json.loads(told("show", str(job.pk), "--json"))["report"] == job.report


@pytest.mark.parametrize(
    "text", ["ab", "00000000-0000-0000-0000-000000000000", "abc\udcff"], ids=["short", "missing", "no text"]
)
def test_a_job_that_is_not_there_is_said(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        told("show", text)
    assert caught.value.returncode == 3


def test_it_cancels_a_job(make_job: JobOf) -> None:
    job = make_job()
    assert told("cancel", str(job.pk)).strip() == f"{job.pk}: cancelled"
    held = claim_for_run(make_job().pk)
    assert told("cancel", str(held.pk)).strip() == f"{held.pk}: is to be ended"


def test_the_tail_of_a_job_that_did_not_complete_ends_with_1(make_job: JobOf) -> None:
    job = cancel_job(make_job().pk)
    with pytest.raises(SystemExit) as caught:
        told("tail", str(job.pk))
    assert caught.value.code == 1


@pytest.mark.django_db(transaction=True)
def test_it_follows_a_job_to_its_report(make_job: JobOf) -> None:
    job, recaller = make_job("[deep-work-block]"), Recaller()
    worker = threading.Thread(
        target=in_thread(lambda: drive(job.pk, client=ScriptedModel(), registry=registry(recaller)))
    )
    worker.start()
    assert recaller.blocked.wait(60)
    texts: list[str] = []
    tail = threading.Thread(target=in_thread(lambda: texts.append(told("tail", str(job.pk)))))
    tail.start()
    recaller.released.set()
    worker.join(60)
    tail.join(60)
    assert texts[0].strip().endswith("The block is gone.")
    assert get_job(job.pk).status == "completed"
