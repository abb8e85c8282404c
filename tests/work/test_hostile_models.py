"""What a model, a server or a tool may answer that nobody expects: the job still ends as the rules say."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.work.conftest import JobOf
from tests.work.driven import done, registry_of
from tests.work.model_server import CREATED, ModelServer, completed, events, item_done, raw, status, text
from tests.work.scripted import Recaller, ScriptedModel, asks, registry, said, tool
from tests.work.test_responses_client import refused, server, told
from work import following, usage
from work.deep_work import loop
from work.deep_work.answers import LONGEST_ANSWER_BYTES, AnswerReader, ProtocolViolation
from work.deep_work.calling import Problem, checked
from work.deep_work.decide import Commit, End, Refuse, after_answer, next_action
from work.deep_work.dialogue import dialogue
from work.deep_work.stop import Stop, StopReason
from work.deep_work.views import JobView, Policy, StepView
from work.deep_work.waiting import result_of
from work.model_client import (
    Call,
    CallWritten,
    Done,
    Started,
    Text,
    Trouble,
)
from work.reports import Ending, compose
from work.services import (
    cancel_job,
    claim_for_run,
    list_job_steps,
    record_failure,
)
from work.services.finishing import error_code_of
from work.services.writing import summed
from work.states import JobStatus, StepStatus
from work.worker import drive

__all__ = ["server"]

STARTED = datetime(2030, 1, 1, tzinfo=UTC)
VIEW = JobView(goal="g", context_hint="", started_at=STARTED)


def answered(*calls: CallWritten) -> Any:
    reader = AnswerReader()
    for event in said(*calls):
        reader.feed(event)
    return reader.answer()


def taken(call: CallWritten) -> Commit | Refuse | End:
    return after_answer(VIEW, answered(call), Policy())


def step_of(arguments: str, name: str = "recall_messages") -> StepView:
    return StepView("id", "call-1", name, arguments, StepStatus.REQUESTED, exact=arguments)


# --- calls ---


@pytest.mark.parametrize("call_id", ["x" * 300, "half \ud800", "nul \0"], ids=["long", "half", "nul"])
def test_an_id_that_no_row_can_hold_gets_one_of_ours(call_id: str) -> None:
    then = taken(asks("x", call_id))
    assert isinstance(then, Commit)
    assert then.call_id.startswith("call-")
    assert then == taken(asks("x", call_id))


@pytest.mark.parametrize("arguments", ["x" * 262_145, "\0" * 200_000], ids=["long", "nul"])
def test_arguments_longer_than_can_be_kept_are_a_failed_call(arguments: str) -> None:
    then = taken(CallWritten("call-1", "recall_messages", arguments))
    assert isinstance(then, Refuse)
    assert (then.status, then.code) == (StepStatus.FAILED, "invalid_tool_arguments")
    assert json.loads(then.call.arguments) == {
        "dropped_bytes": max(262_145, len(arguments) * (3 if arguments[0] == "\0" else 1))
    }


@pytest.mark.parametrize(
    "arguments",
    ['{"query": "nul \\u0000"}', '{"query": "half \\ud800"}', '{"query": NaN}', '{"query": 1e999}',
     "[" * 900 + "]" * 900, '{"query": ' + "[" * 200 + "]" * 200 + "}", "9" * 5000],
    ids=["nul", "half", "nan", "endless", "deep", "deeper", "digits"],
)  # fmt: skip
def test_arguments_that_no_tool_can_use_are_said(arguments: str) -> None:
    problem = checked(step_of(arguments), registry(), None)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.code) == (StepStatus.FAILED, "invalid_tool_arguments")


def test_a_whole_number_comes_as_one_to_its_tool() -> None:
    counts = tool("recall_messages", lambda call: None, parameters={"properties": {"n": {"type": "integer"}}})
    arguments = checked(step_of('{"n": 5.0}'), registry_of(counts), None)
    assert json.dumps(arguments) == '{"n": 5}'


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("multi_tool_use.parallel", "{}", ("multi_tool_use_parallel", {})),
        ("recall_messages", "{not json", ("recall_messages", {"not_json": "{not json"})),
        ("recall_messages", "", ("recall_messages", {})),
    ],
    ids=["name", "arguments", "none"],
)
def test_a_call_is_shown_again_as_servers_take_it(name: str, arguments: str, shown: Any) -> None:
    step = replace(step_of(arguments, name), status=StepStatus.FAILED, error={"code": "x"})
    call = dialogue(replace(VIEW, steps=[step]), most_bytes=1000)[1]
    assert isinstance(call, Call)
    assert (call.name, json.loads(call.arguments)) == shown


# --- text ---


def test_text_without_end_is_no_answer() -> None:
    reader = AnswerReader()
    reader.feed(Text("x" * LONGEST_ANSWER_BYTES))
    with pytest.raises(ProtocolViolation, match="provider_answer_too_long"):
        reader.feed(Text("x"))


def test_what_was_said_before_an_empty_last_answer_does_not_read_like_the_report() -> None:
    ending = Ending("deep_work", JobStatus.COMPLETED, "goal", text="Let me look.", final_text=" \n")
    assert (
        compose(ending)
        == "Deep work job is completed, but the model's last answer was empty.\n\nLet me look."
    )
    assert compose(replace(ending, final_text=None)) == "Let me look."


# --- use ---


def test_only_counts_are_counted() -> None:
    told = {"input_tokens": -5, "output_tokens": "9", "total_tokens": float("inf"), "cached": True, "x": 10**400,
            "input_tokens_details": {"cached_tokens": 3.0, "deep": {"er": {}}}}  # fmt: skip
    assert usage.counted(told) == {
        "input_tokens": 0,
        "x": 2**53,
        "input_tokens_details": {"cached_tokens": 3},
    }
    assert usage.counted(["input_tokens"]) == {}


def test_no_text_undoes_what_was_counted() -> None:
    assert summed({"input_tokens": 100}, {"input_tokens": "1"}) == {"input_tokens": 100}


def test_a_budget_of_money_needs_a_price_when_the_job_runs() -> None:
    job = replace(VIEW, cost_budget_microusd=5)
    assert next_action(job, STARTED, Policy(has_price=False)) == End(JobStatus.FAILED, "model_price_unknown")


# --- servers ---


@pytest.mark.parametrize(
    "data",
    [b"data: " + b"[" * 100_000 + b"\n\n", b"data: " + b"9" * 5000 + b"\n\n"],
    ids=["deep", "digits"],
)
def test_what_cannot_be_read_ends_the_answer(server: ModelServer, data: bytes) -> None:
    error = refused(server, raw(data))
    assert (error.kind, error.code) == (Trouble.REFUSED, "invalid_provider_event")


def test_a_code_that_is_no_text_is_no_code(server: ModelServer) -> None:
    assert refused(server, status(429, {"code": ["x"]})).code == "rate_limited"
    failed = {"type": "response.failed", "response": {"id": "r", "error": {"code": {"x": 1}}}}
    assert refused(server, events(CREATED, failed)).kind == Trouble.RETRY_LATER


def test_a_text_that_is_none_is_not_left_out_silently(server: ModelServer) -> None:
    assert refused(server, events(CREATED, text("x") | {"delta": 5})).code == "invalid_provider_event"


def test_use_and_ids_that_are_none_are_left_out(server: ModelServer) -> None:
    item = {"type": "function_call", "id": 7, "call_id": "c", "name": "n", "arguments": "{}"}
    end = completed() | {"response": {"id": "r", "usage": ["x"]}}
    assert told(server, events(CREATED, item_done(item), end))[1:] == [
        CallWritten("c", "n", "{}"),
        Done("r", {}),
    ]


# --- tools ---


def test_a_tool_that_ends_the_process_ends_only_its_call() -> None:
    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        result_of(leaves, stop=Stop(), inner=Stop(), until=time.monotonic() + 60, grace_seconds=1)


# --- codes and news ---


def test_a_code_of_half_characters_is_no_code() -> None:
    assert error_code_of("half \ud800") == "work_job_failure"


def test_text_that_is_written_over_is_told_from_the_newest_step_on() -> None:
    assert list(following._text_news("One. Half", "One. Whole", 5)) == [following.Wrote("Whole", anew=True)]


# --- whole jobs ---


@pytest.mark.django_db
def test_a_job_outlives_whatever_its_model_calls(make_job: JobOf) -> None:
    """Each of these made the job's thread fail, and the model be paid five times."""
    recaller = Recaller()
    hostile = (
        CallWritten("x" * 300, "recall_messages", "\0" * 200_000),
        asks("found", "half \ud800"),
        CallWritten("c", "no\ud800 tool", "[" * 900),
    )
    job, model = done(
        make_job(), *[said(call) for call in hostile], said(Text("Done.")), tools=registry(recaller)
    )
    assert (job.status, job.report, len(model.requests)) == ("completed", "Done.", 4)
    assert [step.status for step in list_job_steps(job)] == ["failed", "succeeded", "unavailable"]
    assert recaller.seen == [("found", f"conversation:{job.conversation_id}")]


@pytest.mark.django_db
def test_a_budget_of_tokens_holds_where_the_server_does_not_count(make_job: JobOf) -> None:
    call = said(asks("x", "call-1"), usage={"input_tokens": -9})
    job, _ = done(make_job(token_budget=10), call, said(Text("Partial."), usage={}))
    assert (job.error_code, job.report) == ("token_budget_reached", "Partial.")
    assert job.usage["estimated_answers"] == 2


@pytest.mark.django_db
def test_a_cancel_does_not_wait_for_the_next_try(make_job: JobOf) -> None:
    job = claim_for_run(make_job().pk)
    cancel_job(job.pk, "owner_changed_mind")
    ended = record_failure(job.pk, job.generation, "rate_limited", delay_seconds=3600)
    assert (ended.status, ended.error_code) == ("cancelled", "owner_changed_mind")


@pytest.mark.django_db
def test_a_call_is_not_begun_once_the_end_was_asked_for(make_job: JobOf) -> None:
    recaller, stop = Recaller(), Stop()
    answer = [Started("r"), asks("x", "call-1"), lambda: stop.set(StopReason.LEAVING), Done("r")]
    job = drive(make_job().pk, client=ScriptedModel(lambda _: answer), registry=registry(recaller), stop=stop)
    assert (job.status, recaller.seen) == ("running", [])
    assert {step.status for step in list_job_steps(job)} <= {"requested"}


@pytest.mark.django_db
def test_a_clock_that_is_set_back_lets_no_call_be_carried_out_twice(
    make_job: JobOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that a job has is measured by the steady clock: the rows would say that there is still time."""
    look, calls = loop.DeepWork._look, list[str]()

    def soon(self: loop.DeepWork) -> loop.Look:
        return replace(look(self), until=time.monotonic() + 4.0)

    def slow(call: Any) -> None:
        calls.append(call.call_id)
        call.stop.wait(60)

    monkeypatch.setattr(loop.DeepWork, "_look", soon)
    job, _ = done(make_job(), said(asks("x", "call-1")), tools=registry_of(tool("recall_messages", slow)))
    assert (job.error_code, calls) == ("wall_clock_exceeded", ["call-1"])


@pytest.mark.django_db
def test_an_incident_outlives_a_context_that_nobody_can_read(db: None) -> None:
    from work.incidents import record

    loop_of_maps: dict[str, Any] = {}
    loop_of_maps["again"] = loop_of_maps
    incident = record(code="x", context=loop_of_maps)
    assert incident is not None
    assert incident.context == {"truncated": True}
