"""What a model's events add up to."""

from __future__ import annotations

import pytest

from tests.work.scripted import asks
from work.deep_work.answers import AnswerReader, ProtocolViolation, Unfinished
from work.model_client import Done, Event, Started, Text, Unsupported


def read(*events: Event) -> AnswerReader:
    reader = AnswerReader()
    for event in events:
        reader.feed(event)
    return reader


def test_text_comes_as_it_is_said_and_adds_up() -> None:
    reader = AnswerReader()
    pieces = [
        reader.feed(event) for event in (Started("r"), Text("a"), Text("b"), Done("r", {"input_tokens": 1}))
    ]
    assert pieces == ["", "a", "b", ""]
    assert (reader.answer().text, reader.answer().usage, reader.is_done) == ("ab", {"input_tokens": 1}, True)


def test_a_call_is_part_of_the_answer() -> None:
    answer = read(Started("r"), asks("x", "call-1"), Done("r")).answer()
    assert answer.calls == (asks("x", "call-1"),)


def test_a_call_before_the_answer_has_begun_is_no_call() -> None:
    with pytest.raises(ProtocolViolation, match="tool_call_before_response_start"):
        read(asks("x", "call-1"))


def test_what_is_no_function_of_ours_is_not_carried_out() -> None:
    with pytest.raises(ProtocolViolation, match="unsupported_tool_call"):
        read(Started("r"), Unsupported("web_search_call"))


def test_an_answer_without_its_end_is_none() -> None:
    with pytest.raises(Unfinished) as caught:
        read(Started("r"), Text("half of")).answer()
    assert caught.value.code == "missing_terminal_event"
