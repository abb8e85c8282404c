"""The dialogue with the model, made from the rows."""

from __future__ import annotations

from dataclasses import replace

from tests.work.test_decide import JOB, step
from work.deep_work.dialogue import dialogue
from work.model_client import Call, CallOutput, ModelText, UserText


def test_it_begins_with_the_goal_and_its_context() -> None:
    job = replace(JOB, context_hint="in the docs")
    assert dialogue(job, most_bytes=1000) == (UserText("look\n\nContext: in the docs"),)


def test_what_was_said_before_each_call_stands_before_it() -> None:
    text = "Zuerst schaue ich. Äh, noch einmal."
    first = step(report_offset=len(b"Zuerst schaue ich. "), result={"matches": []})
    second = replace(first, call_id="call-2", report_offset=len(text.encode()))
    job = replace(JOB, text=text, steps=[first, second])

    items = dialogue(job, most_bytes=1000)

    assert items[1:] == (
        ModelText("Zuerst schaue ich."),
        Call("call-1", "recall_messages", "{}"),
        CallOutput("call-1", '{"matches":[]}'),
        ModelText("Äh, noch einmal."),
        Call("call-2", "recall_messages", "{}"),
        CallOutput("call-2", '{"matches":[]}'),
    )


def test_text_after_the_newest_call_is_of_an_unfinished_answer_and_not_shown() -> None:
    job = replace(JOB, text="before. half an answ", steps=[step(report_offset=8, result={})])
    assert [item.text for item in dialogue(job, most_bytes=1000) if isinstance(item, ModelText)] == [
        "before."
    ]


def test_a_failed_call_says_why() -> None:
    failed = step(
        "failed", error_code="box_not_found", error={"code": "box_not_found", "message": "no such box"}
    )
    output = dialogue(replace(JOB, steps=[failed]), most_bytes=1000)[-1]
    assert output == CallOutput(
        "call-1", '{"error":{"code":"box_not_found","message":"no such box"},"status":"failed"}'
    )


def test_the_oldest_results_are_shortened_first() -> None:
    big = step(result={"output": "x" * 3000})
    items = dialogue(replace(JOB, steps=[big, replace(big, call_id="call-2")]), most_bytes=4000)
    outputs = [len(item.output) for item in items if isinstance(item, CallOutput)]
    assert outputs[0] < 600
    assert outputs[1] > 3000


def test_at_a_limit_the_report_is_asked_for_last() -> None:
    last = dialogue(JOB, most_bytes=1000, limit_code="token_budget_reached")[-1]
    assert isinstance(last, UserText)
    assert "the budget of tokens is used up" in last.text
