"""What a model's events add up to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from work.model_client import CallWritten, Done, Event, Started, Text, Unsupported

LONGEST_ANSWER_BYTES = 1_000_000
"""More text than that in one answer is no answer: a report has 8,000 bytes."""

MOST_CALLS = 64


class ProtocolViolation(Exception):
    """The model did what it may not do. `code` is that of the job's end."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class Unfinished(Exception):
    """The stream ended before the answer did."""

    code = "missing_terminal_event"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: its text and the calls in it."""

    text: str = ""
    calls: tuple[CallWritten, ...] = ()
    response_id: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """All that the model wrote."""
        return [self.text, *(part for call in self.calls for part in (call.name, call.arguments))]


class AnswerReader:
    """Takes the events of one answer in their order."""

    def __init__(self) -> None:
        self._started = False
        self._text: list[str] = []
        self._size = 0
        self._calls: list[CallWritten] = []
        self._done: Done | None = None

    @property
    def is_done(self) -> bool:
        return self._done is not None

    @property
    def has_begun(self) -> bool:
        """Whether the model has said anything: what it says is paid for, also if it does not come to an end."""
        return self._started or bool(self._text or self._calls)

    @property
    def so_far(self) -> Answer:
        """What there is of it, whole or not."""
        done = self._done or Done("")
        return Answer("".join(self._text), tuple(self._calls), done.response_id, done.usage)

    def feed(self, event: Event) -> str:
        """Take one event; the text that it adds. Raises ProtocolViolation."""
        match event:
            case Started():
                self._started = True
            case Text(delta):
                self._text.append(delta)
                self._size += len(delta.encode("utf-8", "replace"))
                if self._size > LONGEST_ANSWER_BYTES:
                    raise ProtocolViolation("provider_answer_too_long")
                return delta
            case CallWritten():
                if not self._started:
                    raise ProtocolViolation("tool_call_before_response_start")
                self._calls.append(event)
                if len(self._calls) > MOST_CALLS:
                    raise ProtocolViolation("parallel_tool_calls_not_supported")
            case Unsupported():
                raise ProtocolViolation("unsupported_tool_call")
            case Done():
                self._done = event
        return ""

    def answer(self) -> Answer:
        """The answer, once its end has come. Raises Unfinished."""
        if self._done is None:
            raise Unfinished
        return self.so_far
