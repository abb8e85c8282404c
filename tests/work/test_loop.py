"""A deep-work job from its claim to its report, with a model and tools of which the test knows what they do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from base.errors import CodedError
from base.pump import Holder
from base.wakeups import wait_until
from conversations.models import Message
from tests.work.conftest import DEAD_WORKER, JobOf, in_thread
from tests.work.scripted import (
    USAGE,
    Recaller,
    ScriptedModel,
    asks,
    calls_of,
    one_after_the_other,
    outputs_of,
    registry,
    said,
    tool,
)
from work.deep_work import loop
from work.deep_work.stop import Stop, StopReason
from work.deep_work.waiting import TookTooLong, events_of
from work.errors import JobFenced, JobHeld, NotDriven
from work.model_client import (
    CallWritten,
    Done,
    ModelError,
    ModelText,
    Started,
    Text,
    Trouble,
    Unsupported,
)
from work.models import Incident, Job
from work.services import (
    append_report_delta,
    cancel_job,
    claim_for_run,
    complete_job_step,
    get_job,
    list_job_steps,
    request_job_step,
    start_job_step,
)
from work.tools import ToolFailed, ToolRefused, ToolResult
from work.watching import key_of
from work.worker import drive

pytestmark = pytest.mark.django_db
Settings = Callable[..., None]


@pytest.fixture
def work(settings: Any) -> Settings:
    """`work(wall_clock_ms=1)` changes settings of jobs for this test."""

    def change(**values: Any) -> None:
        settings.WORK = settings.WORK | values

    return change


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr(loop, "AGAIN", loop.Backoff(first=loop.timedelta(0), cap=loop.timedelta(0)))


def done(job: Job, *answers: list[Any], tools: Any = None, **keywords: Any) -> tuple[Job, ScriptedModel]:
    """The job, driven with a model that gives these answers."""
    model = ScriptedModel(one_after_the_other(*answers))
    return drive(job.pk, client=model, registry=tools or registry(), **keywords), model


REPORT = said(Text("What I found."))
CALL = said(asks("x", "call-1"))


# --- what the model is told, and what is kept ---


def test_what_the_model_said_before_a_call_is_shown_to_it_again_and_is_not_the_report(
    make_job: JobOf,
) -> None:
    job, model = done(make_job(), said(Text("Let me look."), asks("x", "call-1")), REPORT)

    assert job.report == "What I found."
    assert [item for item in model.requests[1].items if isinstance(item, ModelText)] == [
        ModelText("Let me look.")
    ]
    assert [call.call_id for call in calls_of(model.requests[1])] == ["call-1"]
    assert outputs_of(model.requests[1]) == ['{"matches":["Found x in this conversation."]}']


def test_answers_and_their_use_are_counted(make_job: JobOf) -> None:
    job, _ = done(make_job(), CALL, said(asks("y", "call-2")), REPORT)
    assert (job.tool_call_count, job.continuation_count) == (2, 2)
    assert job.usage == {name: 3 * number for name, number in USAGE.items()} | {"cost_microusd": 0}


def test_a_step_keeps_what_asked_for_it(make_job: JobOf) -> None:
    job, _ = done(make_job(), CALL, REPORT)
    (step,) = list_job_steps(job)
    assert (step.provider_item_id, step.provider_response_id) == ("item-call-1", "resp")
    assert (step.tool_version, step.catalog_digest) == ("1", job.tool_catalog_digest)
    assert (step.executor_id, step.executor_disclosure) == ("host", {"where": "server"})


def test_the_memory_that_a_job_has_is_named(make_job: JobOf) -> None:
    job, _ = done(make_job(), REPORT)
    assert job.memory_snapshot_ref.startswith(f"conversation:{job.conversation_id}@20")


def test_a_job_that_says_nothing_still_ends_with_a_report(make_job: JobOf) -> None:
    job, _ = done(make_job("count the boxes"), CALL, said())
    assert job.status == "completed"
    assert "recall_messages:succeeded" in job.report
    assert "count the boxes" in job.report


def test_a_job_that_has_ended_is_answered_as_it_is(make_job: JobOf) -> None:
    job, _ = done(make_job(), REPORT)
    again, model = done(job, CALL)
    assert (again.report, model.requests) == ("What I found.", [])


def test_a_job_that_somebody_is_at_work_on_is_left_alone(running: Job) -> None:
    with pytest.raises(JobHeld):
        done(running, REPORT)


def test_a_delegation_is_not_driven_here(make_delegation: JobOf) -> None:
    with pytest.raises(NotDriven):
        done(make_delegation("elsewhere"), REPORT)


# --- calls that are not carried out, or fail ---


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


def raising(error: Exception) -> Callable[[Any], Any]:
    def execute(call: Any) -> Any:
        raise error

    return execute


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


def registry_of(*tools: Any) -> Any:
    from work.tools import Registry

    return Registry(tools)


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


# --- limits ---


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


# --- when the model does not answer ---


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (said(asks("x", "1"), asks("y", "2")), "parallel_tool_calls_not_supported"),
        ([asks("x", "1"), Done("r")], "tool_call_before_response_start"),
        (said(Unsupported("computer_call")), "unsupported_tool_call"),
        ([ModelError(Trouble.REFUSED, "invalid_provider_event")], "invalid_provider_event"),
        ([ModelError(Trouble.REFUSED, "provider_unauthorized")], "provider_unauthorized"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_will_not_get_better_fails_the_job_at_once(
    make_job: JobOf, answer: list[Any], code: str
) -> None:
    job, model = done(make_job(), answer)
    assert (job.status, job.error_code, len(model.requests)) == ("failed", code, 1)
    assert job.report.startswith(f"Deep work job failed ({code}).")
    incident = Incident.objects.get(code=code)
    assert (incident.surface, incident.origin, incident.correlation_ref) == ("job", "job_server", str(job.pk))
    assert Message.objects.get(work_job_id=job.pk).content == job.report


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ([ModelError(Trouble.RETRY_LATER, "rate_limited", retry_after_seconds=0.0)], "rate_limited"),
        ([Started("r"), Text("Half"), ModelError(Trouble.UNKNOWN, "transport")], "transport"),
        ([Started("r"), Text("Half")], "missing_terminal_event"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_may_get_better_is_tried_five_times(make_job: JobOf, answer: list[Any], code: str) -> None:
    job, model = done(make_job(), answer)
    assert (job.status, job.error_code, len(model.requests)) == ("failed", code, 5)
    assert job.report.count("Half") == ("Half" in repr(answer))
    assert Incident.objects.filter(code=code).count() == 1


@pytest.mark.usefixtures("at_once")
def test_a_job_goes_on_after_a_while_and_no_text_is_doubled(make_job: JobOf) -> None:
    broken = [Started("r"), Text("The answ"), ModelError(Trouble.UNKNOWN, "transport")]
    whole = said(Text("The answer."), asks("x", "call-1"))
    job, model = done(make_job(), broken, whole, broken, said())
    assert (job.status, job.failures, len(model.requests)) == ("completed", 0, 4)
    assert job.report.endswith("last answer was empty.\n\nThe answer.")


# --- taking over ---


def left_by_the_dead(job: Job, *, started: bool = True) -> Job:
    """The job as a worker left it that died while it carried out its first call."""
    held = claim_for_run(job.pk, Holder(owner=DEAD_WORKER))
    append_report_delta(job.pk, held.generation, "Looking. ")
    step = request_job_step(
        job.pk,
        held.generation,
        provider_call_id="call-1",
        tool_name="recall_messages",
        arguments='{"query": "x"}',
    )
    if started:
        start_job_step(job.pk, held.generation, step.pk)
    return held


def test_a_call_that_was_interrupted_is_told_and_not_repeated(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    held = left_by_the_dead(job)
    ended, model = done(job, REPORT, tools=registry(recaller))
    assert recaller.seen == []
    assert [step.status for step in list_job_steps(job)] == ["interrupted"]
    assert json.loads(outputs_of(model.requests[0])[0])["error"]["code"] == "interrupted"
    assert (ended.started_at, ended.tool_call_count) == (held.started_at, 1)


def test_a_call_that_had_not_begun_is_carried_out(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    left_by_the_dead(job, started=False)
    done(job, REPORT, tools=registry(recaller))
    assert len(recaller.seen) == 1


def test_a_call_that_may_be_repeated_is_repeated(make_job: JobOf) -> None:
    recaller, job = Recaller(), make_job()
    left_by_the_dead(job)
    done(job, REPORT, tools=registry_of(tool("recall_messages", recaller, safe_to_repeat=True)))
    assert len(recaller.seen) == 1
    assert [step.status for step in list_job_steps(job)] == ["succeeded"]


def test_half_an_answer_of_the_dead_is_written_over(make_job: JobOf) -> None:
    job = make_job()
    held = left_by_the_dead(job, started=False)
    (step,) = list_job_steps(job)
    start_job_step(job.pk, held.generation, step.pk)
    complete_job_step(job.pk, held.generation, step.pk, succeeded(step))
    append_report_delta(job.pk, held.generation, "Now I know tha")
    ended, model = done(job, said(Text("Now I know that."), asks("y", "call-2")), said())
    told = "Deep work job is completed, but the model's last answer was empty.\n\nLooking. Now I know that."
    assert ended.report == told
    assert [item.text for item in model.requests[0].items if isinstance(item, ModelText)] == ["Looking."]


def succeeded(step: Any) -> dict[str, Any]:
    from tests.work.conftest import outcome_of

    return outcome_of(step)


def test_whoever_holds_an_older_generation_asks_nobody_and_writes_nothing(make_job: JobOf) -> None:
    held = claim_for_run(make_job().pk)
    claim_for_run(held.pk)
    model = ScriptedModel()
    old = loop.DeepWork(held, ledger=lambda work: work(), stop=Stop(), client=model, registry=registry())
    assert old.run() == loop.Left.LOST
    assert (get_job(held.pk).report, model.requests) == (None, [])


@pytest.mark.django_db(transaction=True)
def test_whoever_lost_the_job_leaves_it_to_the_other(make_job: JobOf) -> None:
    job, recaller, gone = make_job("[deep-work-block]"), Recaller(), threading.Event()
    let_go = threading.Event()

    def old() -> None:
        with pytest.raises(JobFenced):
            drive(job.pk, client=ScriptedModel(), registry=registry(recaller))
        gone.set()

    worker = threading.Thread(target=in_thread(old))
    worker.start()
    assert recaller.blocked.wait(60)
    slow = ScriptedModel(lambda _: [lambda: let_go.wait(60), *said(Text("Taken over."))])
    other = threading.Thread(
        target=in_thread(lambda: drive(job.pk, client=slow, registry=registry(), take_over=True))
    )
    other.start()
    assert gone.wait(60)
    recaller.released.set()
    let_go.set()
    other.join(60)
    assert get_job(job.pk).report == "Taken over."
    assert [step.status for step in list_job_steps(job)] == ["interrupted"]


# --- being told to end ---


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
