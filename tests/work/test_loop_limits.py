"""The limits of a deep-work job, and the report that it ends with at one."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from tests.work.conftest import JobOf
from tests.work.driven import CALL, REPORT, Settings, done, raising, registry_of
from tests.work.scripted import ScriptedModel, asks, said, tool
from work.deep_work import loop
from work.deep_work.stop import Stop
from work.deep_work.waiting import TookTooLong, events_of
from work.model_client import Started, Text
from work.models import Incident
from work.services import list_job_steps

pytestmark = pytest.mark.django_db


def test_the_continuations_are_limited_as_well(make_job: JobOf, work: Settings) -> None:
    work(maximum_continuations=1)
    job, model = done(make_job(), CALL, said(asks("y", "call-2")), said(Text("Partly.")))
    assert (job.status, job.error_code, job.report) == (
        "budget_exhausted",
        "continuation_limit_reached",
        "Partly.",
    )
    assert model.requests[2].offers == ()


def test_a_budget_of_tokens_ends_the_job_with_its_report(make_job: JobOf) -> None:
    job, model = done(make_job(token_budget=30), CALL, said(asks("y", "call-2")), said(Text("Partly.")))
    assert (job.status, job.error_code, job.report) == ("budget_exhausted", "token_budget_reached", "Partly.")
    assert [step.status for step in list_job_steps(job)] == ["succeeded", "failed"]
    assert "the budget of tokens is used up" in model.requests[2].items[-1].text


def test_a_budget_of_money_counts_by_the_price_of_the_model(make_job: JobOf, work: Settings) -> None:
    work(model="gpt-x", model_api_key="k", model_prices=("gpt-x=1:0.5:2",))
    job, _ = done(make_job(cost_budget_microusd=40), CALL, said(asks("y", "call-2")), said(Text("Partly.")))
    assert (job.error_code, job.usage["cost_microusd"]) == ("cost_budget_reached", 60)


def test_a_call_where_the_report_was_asked_for_fails_the_job(make_job: JobOf) -> None:
    job, _ = done(make_job(token_budget=1), CALL, said(asks("y", "call-2")))
    assert (job.status, job.error_code) == ("failed", "tool_call_after_report_request")
    assert Incident.objects.filter(code="tool_call_after_report_request").count() == 1


def test_without_an_answer_to_the_last_request_the_report_says_how_it_ended(make_job: JobOf) -> None:
    job, _ = done(make_job(token_budget=1), said(Text("Looking."), asks("y", "call-1")), said())
    assert job.report == "Deep work job was stopped at a limit (token_budget_reached).\n\nLooking."


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at the job is in time, every later one is an hour after it."""
    look, looks = loop.DeepWork._look, []

    def looked(self: loop.DeepWork) -> loop.Look:
        looks.append(look(self))
        return replace(looks[-1], now=looks[-1].now + loop.timedelta(hours=1)) if looks[1:] else looks[-1]

    monkeypatch.setattr(loop.DeepWork, "_look", looked)


@pytest.mark.usefixtures("late")
def test_time_that_is_up_while_the_model_speaks_ends_the_job_with_what_it_said(make_job: JobOf) -> None:
    job, _ = done(make_job(), [Started("r"), Text("Half of a sent"), TookTooLong()])
    assert (job.status, job.error_code) == ("budget_exhausted", "wall_clock_exceeded")
    assert job.report == "Deep work job was stopped at a limit (wall_clock_exceeded).\n\nHalf of a sent"


@pytest.mark.usefixtures("late")
def test_time_that_is_up_in_a_tool_ends_the_job_and_the_step(make_job: JobOf) -> None:
    longer = tool("recall_messages", raising(TookTooLong()), timeout_seconds=7200)
    job, _ = done(make_job(), CALL, REPORT, tools=registry_of(longer))
    assert job.error_code == "wall_clock_exceeded"
    assert [step.status for step in list_job_steps(job)] == ["cancelled"]


def test_what_is_waited_for_is_left_when_the_time_is_up() -> None:
    let_go = threading.Event()
    silent = ScriptedModel(lambda _: [Started("r"), lambda: let_go.wait(60)])
    told = events_of(lambda: silent.stream(None), stop=Stop(), until=time.monotonic() + 0.2)
    with pytest.raises(TookTooLong):
        list(told)
    let_go.set()
