"""Calls of a deep-work job: carried out, refused, or failed, and how the model hears of it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from base.errors import CodedError
from tests.work.conftest import JobOf
from tests.work.driven import CALL, REPORT, Settings, done, raising, registry_of
from tests.work.scripted import Recaller, ScriptedModel, asks, calls_of, outputs_of, registry, said, tool
from work.model_client import CallWritten
from work.models import Job
from work.services import list_job_steps
from work.tools import ToolFailed, ToolRefused, ToolResult

pytestmark = pytest.mark.django_db


def error_told(model: ScriptedModel) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(outputs_of(model.requests[1])[0])
    return told


@pytest.mark.parametrize("name", ["start_job", "deep_work", "delegate"])
def test_a_job_that_asks_for_another_job_is_refused_and_goes_on(make_job: JobOf, name: str) -> None:
    job, model = done(make_job(), said(asks("more", "call-1", name)), REPORT)
    assert (job.status, job.report, job.tool_call_count) == ("completed", "What I found.", 0)
    assert [step.status for step in list_job_steps(job)] == ["refused"]
    assert error_told(model)["error"]["code"] == "work_recursion_refused"
    assert Job.objects.count() == 1


def test_no_offered_tool_starts_a_job(make_job: JobOf) -> None:
    from work.tools import REGISTRY

    _, model = done(make_job(), REPORT, tools=REGISTRY)
    offered = [offer.name for offer in model.requests[0].offers]
    assert offered == ["box_new", "box_output", "box_run", "box_stop", "recall_messages"]


def test_a_tool_that_is_not_there_is_said_with_those_that_are(make_job: JobOf) -> None:
    job, model = done(make_job(), said(asks("x", "call-1", "web_search")), REPORT)
    assert [(step.status, step.started_at) for step in list_job_steps(job)] == [("unavailable", None)]
    assert error_told(model)["error"] == {
        "code": "unsupported_tool_call",
        "message": "There is no such tool. The tools are: recall_messages.",
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{not json", "The arguments are not JSON"),
        ("[]", "is not of type 'object'"),
        ("{}", "'query' is a required property"),
        ('{"query": 7}', "query: 7 is not of type 'string'"),
        ('{"query": "x", "more": 1}', "'more' was unexpected"),
    ],
    ids=["no-json", "no-object", "missing", "wrong-type", "unknown"],
)
def test_arguments_that_do_not_fit_are_said_and_nothing_is_carried_out(
    make_job: JobOf, arguments: str, told: str
) -> None:
    recaller = Recaller()
    call = CallWritten("call-1", "recall_messages", arguments)
    job, model = done(make_job(), said(call), REPORT, tools=registry(recaller))
    assert recaller.seen == []
    assert [(step.status, step.started_at) for step in list_job_steps(job)] == [("failed", None)]
    assert error_told(model)["error"]["code"] == "invalid_tool_arguments"
    assert told in error_told(model)["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status", "said_of_it"),
    [
        (
            ToolFailed("disk_full", "The disk is full."),
            "failed",
            {"code": "disk_full", "message": "The disk is full."},
        ),
        (ToolRefused(detail="Not here."), "refused", {"code": "tool_refused", "message": "Not here."}),
        (
            CodedError("box_not_found", "No such box."),
            "failed",
            {"code": "box_not_found", "message": "No such box."},
        ),
        (
            RuntimeError("password=hunter2"),
            "failed",
            {"code": "tool_failed", "message": "The tool failed unexpectedly."},
        ),
    ],
    ids=["failed", "refused", "coded", "unexpected"],
)
def test_a_call_that_fails_is_said_to_the_model(
    make_job: JobOf, error: Exception, status: str, said_of_it: dict[str, str]
) -> None:
    job, model = done(make_job(), CALL, REPORT, tools=registry(raising(error)))
    (step,) = list_job_steps(job)
    assert (step.status, step.error) == (status, said_of_it)
    assert error_told(model) == {"status": status, "error": said_of_it}
    assert job.status == "completed"


def test_a_tool_that_takes_too_long_is_left(make_job: JobOf) -> None:
    left = threading.Event()
    slow = tool(
        "recall_messages", lambda call: left.set() if call.stop.wait(60) else None, timeout_seconds=0.05
    )
    job, model = done(make_job(), CALL, REPORT, tools=registry_of(slow))
    assert error_told(model)["error"]["code"] == "tool_timeout"
    assert left.wait(60)
    assert job.status == "completed"


def test_a_tool_whose_authority_the_job_has_not_is_neither_offered_nor_carried_out(make_job: JobOf) -> None:
    recaller = Recaller()
    guarded = registry_of(tool("recall_messages", recaller, authority="box:control"))
    job, model = done(make_job(authority_snapshot={"scopes": ["work:control"]}), CALL, REPORT, tools=guarded)
    assert model.requests[0].offers == ()
    assert recaller.seen == []
    assert [(step.status, step.error["code"]) for step in list_job_steps(job)] == [
        ("refused", "insufficient_authority")
    ]


def test_a_job_that_was_given_the_authority_uses_it(make_job: JobOf) -> None:
    recaller = Recaller()
    guarded = registry_of(tool("recall_messages", recaller, authority="box:control"))
    done(make_job(authority_snapshot={"scopes": ["box:control"]}), CALL, REPORT, tools=guarded)
    assert len(recaller.seen) == 1


def test_a_result_is_bounded_and_without_secrets(make_job: JobOf, work: Settings) -> None:
    work(tool_result_bytes=256)
    big = registry(lambda _: ToolResult({"text": "ä" * 1000}, receipts=["run:7"]))
    secret = registry(lambda _: {"header": "Authorization: Bearer oa_pat_" + "a" * 40})

    (step,) = list_job_steps(done(make_job(), CALL, REPORT, tools=big)[0])
    assert step.result == {"truncated": True, "bytes": 2011, "beginning": '{"text":"' + "ä" * 123}
    assert step.target_receipt_refs == ["run:7"]
    (step,) = list_job_steps(done(make_job(), CALL, REPORT, tools=secret)[0])
    assert "oa_pat_" not in json.dumps(step.result)


@pytest.mark.parametrize("result", [float("nan"), object()], ids=["nan", "object"])
def test_a_result_that_is_no_json_is_a_failed_call(make_job: JobOf, result: Any) -> None:
    job, _ = done(make_job(), CALL, REPORT, tools=registry(lambda _: result))
    assert [step.error["code"] for step in list_job_steps(job)] == ["tool_result_invalid"]


def test_a_nul_in_a_result_is_shown_as_a_mark(make_job: JobOf) -> None:
    job, _ = done(make_job(), CALL, REPORT, tools=registry(lambda _: {"out": "a\0b"}))
    assert list_job_steps(job)[0].result == {"out": "a␀b"}


def test_the_same_call_id_again_is_another_call(make_job: JobOf) -> None:
    recaller = Recaller()
    job, model = done(make_job(), CALL, CALL, REPORT, tools=registry(recaller))
    assert [step.provider_call_id for step in list_job_steps(job)] == ["call-1", "call-1~2"]
    assert [call.call_id for call in calls_of(model.requests[2])] == ["call-1", "call-1~2"]
    assert len(recaller.seen) == 2
