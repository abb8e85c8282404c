"""What a deep-work job needs next, by its rows alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work.scripted import asks
from work.deep_work.answers import Answer
from work.deep_work.decide import (
    LIMITS,
    RECURSIVE_TOOLS,
    Ask,
    CarryOut,
    Commit,
    End,
    Refuse,
    after_answer,
    next_action,
    unused,
)
from work.deep_work.views import HOST, JobView, Policy, StepView
from work.states import JobStatus, StepStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = Policy()
JOB = JobView(goal="look", context_hint="", started_at=NOW)


def step(status: str = "succeeded", **changes: Any) -> StepView:
    return StepView("id", "call-1", "recall_messages", "{}", StepStatus(status), **changes)


def limited(code: str = "tool_call_limit_reached") -> JobView:
    return replace(JOB, steps=[step("failed", error_code=code, is_hosts=True)])


CALL = Answer("", (asks("x", "call-9"),))


def test_a_job_without_steps_is_asked_with_its_tools() -> None:
    assert next_action(JOB, NOW, POLICY) == Ask(offers_tools=True)


@pytest.mark.parametrize("status", ["requested", "running"])
def test_an_open_step_is_carried_out_before_anything_is_asked(status: str) -> None:
    job = replace(JOB, steps=[step(), step(status)])
    assert next_action(job, NOW, POLICY) == CarryOut(job.steps[-1])


@pytest.mark.parametrize("code", sorted(LIMITS))
def test_after_a_call_that_met_a_limit_only_the_report_is_asked_for(code: str) -> None:
    assert next_action(limited(code), NOW, POLICY) == Ask(offers_tools=False, limit_code=code)


def test_a_tool_that_fails_with_the_code_of_a_limit_is_no_limit() -> None:
    job = replace(JOB, steps=[step("failed", error_code="tool_call_limit_reached")])
    assert next_action(job, NOW, POLICY) == Ask(offers_tools=True)


def test_time_is_up_to_the_second() -> None:
    assert isinstance(next_action(JOB, NOW + timedelta(seconds=599), POLICY), Ask)
    ended = next_action(JOB, NOW + timedelta(seconds=600), POLICY)
    assert ended == End(JobStatus.BUDGET_EXHAUSTED, "wall_clock_exceeded")


def test_a_wish_to_end_goes_before_everything() -> None:
    job = replace(JOB, cancel_code="owner_deleted", steps=[step("running")])
    assert next_action(job, NOW + timedelta(days=1), POLICY) == End(JobStatus.CANCELLED, "owner_deleted")


def test_an_answer_without_a_call_is_the_report() -> None:
    assert after_answer(JOB, Answer("done"), POLICY) == End(JobStatus.COMPLETED, None, "done")


def test_a_call_is_committed_under_its_id() -> None:
    assert after_answer(JOB, CALL, POLICY) == Commit(CALL.calls[0], "call-9")


def test_a_server_that_counts_its_calls_anew_gets_ids_of_our_own() -> None:
    job = replace(JOB, steps=[replace(step(), call_id="call-9"), replace(step(), call_id="call-9~2")])
    assert after_answer(job, CALL, POLICY) == Commit(CALL.calls[0], "call-9~3")


@pytest.mark.parametrize(
    ("code", "job"),
    [
        ("tool_call_limit_reached", replace(JOB, tool_call_count=32)),
        ("continuation_limit_reached", replace(JOB, tool_call_count=3, continuation_count=32)),
        ("token_budget_reached", replace(JOB, tokens_used=100, token_budget=100)),
        ("cost_budget_reached", replace(JOB, cost_microusd=7, cost_budget_microusd=7)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_at_a_limit_fails(code: str, job: JobView) -> None:
    then = after_answer(job, CALL, POLICY)
    assert then == Refuse(CALL.calls[0], "call-9", StepStatus.FAILED, code)


def test_the_thirty_second_call_is_still_made() -> None:
    job = replace(JOB, tool_call_count=31, continuation_count=31)
    assert isinstance(after_answer(job, CALL, POLICY), Commit)


def test_no_budget_is_no_limit() -> None:
    job = replace(JOB, tokens_used=10**9, cost_microusd=10**9)
    assert isinstance(after_answer(job, CALL, POLICY), Commit)


@pytest.mark.parametrize("name", sorted(RECURSIVE_TOOLS))
def test_a_job_starts_no_job(name: str) -> None:
    call = asks("x", "call-9", name)
    then = after_answer(JOB, Answer("", (call,)), POLICY)
    assert then == Refuse(call, "call-9", StepStatus.REFUSED, "work_recursion_refused")


def test_two_calls_in_one_answer_are_not_taken() -> None:
    answer = Answer("", (asks("x", "1"), asks("y", "2")))
    assert after_answer(JOB, answer, POLICY) == End(JobStatus.FAILED, "parallel_tool_calls_not_supported")


def test_the_report_after_a_limit_ends_the_job_with_the_limit() -> None:
    then = after_answer(limited(), Answer("what I have"), POLICY)
    assert then == End(JobStatus.BUDGET_EXHAUSTED, "tool_call_limit_reached", "what I have")


def test_a_call_where_the_report_was_asked_for_ends_the_job() -> None:
    assert after_answer(limited(), CALL, POLICY) == End(JobStatus.FAILED, "tool_call_after_report_request")


def test_new_text_begins_after_all_that_came_before_the_newest_call() -> None:
    assert JOB.offset == 0
    assert replace(JOB, steps=[step(report_offset=3), step(report_offset=9)]).offset == 9


statuses = st.sampled_from(StepStatus)
steps = st.lists(
    st.builds(
        StepView,
        id=st.none(),
        call_id=st.text(max_size=3),
        tool_name=st.just("recall_messages"),
        arguments=st.just("{}"),
        status=statuses,
        error_code=st.sampled_from([None, "tool_failed", *sorted(LIMITS)]),
        is_hosts=st.booleans(),
    ),
    max_size=5,
)
jobs = st.builds(
    JobView,
    goal=st.just("g"),
    context_hint=st.just(""),
    started_at=st.just(NOW),
    tool_call_count=st.integers(0, 40),
    continuation_count=st.integers(0, 40),
    tokens_used=st.integers(0, 100),
    token_budget=st.none() | st.integers(1, 100),
    cancel_code=st.none() | st.just("cancelled"),
    steps=steps,
)
answers = st.builds(
    Answer,
    st.text(max_size=3),
    st.lists(st.builds(asks, st.text(max_size=2), st.text(max_size=3)), max_size=2).map(tuple),
)


@given(jobs, st.integers(0, 1200))
def test_whatever_the_rows_say_there_is_one_thing_to_do(job: JobView, seconds: int) -> None:
    action = next_action(job, NOW + timedelta(seconds=seconds), POLICY)
    if job.cancel_code or seconds >= 600:
        assert isinstance(action, End)
    elif isinstance(action, CarryOut):
        assert action.step.is_open
    else:
        assert isinstance(action, Ask)
        assert action.offers_tools == (action.limit_code is None)


@given(jobs, answers)
def test_no_call_passes_a_limit(job: JobView, answer: Answer) -> None:
    then = after_answer(job, answer, POLICY)
    if isinstance(then, Commit):
        assert job.tool_call_count < 32
        assert job.continuation_count < 32
        assert job.token_budget is None or job.tokens_used < job.token_budget
        assert then.call_id not in {known.call_id for known in job.steps}


@given(st.text(max_size=260), st.sets(st.text(max_size=5)))
def test_an_id_that_was_made_is_new_and_fits(call_id: str, known: set[str]) -> None:
    made = unused(call_id, known | {call_id})
    assert made not in known
    assert len(made) <= 256


def test_the_host_is_told_from_tools_by_name() -> None:
    assert HOST == "job_server"
