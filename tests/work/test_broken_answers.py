"""What an answer used that broke off counts against the job's budgets: it is paid for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.work.conftest import JobOf
from tests.work.driven import CALL, REPORT, Settings, done
from tests.work.scripted import asks, said
from work.model_client import Done, ModelError, Started, Text, Trouble

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

BROKEN = ModelError(Trouble.UNKNOWN, "transport")
USED = {"input_tokens": 100, "output_tokens": 20}


@pytest.mark.parametrize("end", [[BROKEN], []], ids=["error", "no end"])
def test_it_is_counted_by_its_size_where_there_is_a_budget(make_job: JobOf, end: list[Any]) -> None:
    job, _ = done(make_job(token_budget=1_000_000), [Started("r"), Text("x" * 4_000), *end], REPORT)

    assert job.usage["estimated_answers"] == 1
    assert job.usage["output_tokens"] == 1_000 + 5
    assert job.usage["input_tokens"] > 10


def test_it_uses_up_the_budget(make_job: JobOf) -> None:
    broken = [Started("r"), Text("x" * 4_000), BROKEN]

    job, _ = done(make_job(token_budget=900), broken, CALL, said(Text("Partly.")))

    assert (job.error_code, job.report, job.tool_call_count) == ("token_budget_reached", "Partly.", 0)
    assert job.continuation_count == 1


def test_what_the_server_tells_is_counted_also_without_a_budget(make_job: JobOf) -> None:
    told = ModelError(Trouble.RETRY_LATER, "provider_error", usage=USED)

    job, _ = done(make_job(), [Started("r"), told], REPORT)

    assert (job.usage["input_tokens"], job.usage["output_tokens"]) == (110, 25)


def test_an_answer_that_had_not_begun_costs_nothing(make_job: JobOf) -> None:
    job, _ = done(make_job(token_budget=1_000_000), [BROKEN], REPORT)

    assert (job.usage["input_tokens"], "estimated_answers" in job.usage) == (10, False)


@pytest.mark.parametrize(
    "answer",
    [
        [Started("r"), Text("x" * 400), ModelError(Trouble.REFUSED, "provider_incomplete", usage=USED)],
        [Started("r"), Text("x" * 400), asks("x", "1"), asks("y", "2"), Done("r", USED)],
    ],
    ids=["incomplete", "two calls"],
)
def test_it_is_counted_also_where_it_ends_the_job(make_job: JobOf, answer: list[Any]) -> None:
    job, _ = done(make_job(), answer)

    assert (job.status, job.usage["input_tokens"], job.usage["output_tokens"]) == ("failed", 100, 20)


def test_it_has_its_price(make_job: JobOf, work: Settings) -> None:
    work(model="gpt-x", model_api_key="k", model_prices=("gpt-x=1:0.5:2",))
    told = ModelError(Trouble.RETRY_LATER, "provider_error", usage=USED)

    job, _ = done(make_job(cost_budget_microusd=100), [Started("r"), told], CALL, said(Text("Partly.")))

    assert job.error_code == "cost_budget_reached"
