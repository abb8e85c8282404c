"""Models and tools of which a test knows what they do."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

from work.model_client import (
    Call,
    CallOutput,
    CallWritten,
    Done,
    Event,
    ModelRequest,
    Started,
    Text,
    UserText,
)
from work.tools import Invocation, Registry, Tool

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


def said(*events: Event, usage: Any = USAGE, name: str = "resp") -> list[Event]:
    """A whole answer of these events."""
    return [Started(name), *events, Done(name, usage)]


def asks(query: str, call_id: str, tool: str = "recall_messages") -> CallWritten:
    return CallWritten(call_id, tool, json.dumps({"query": query}), f"item-{call_id}")


class ScriptedModel:
    """Answers by the goal, as a real one would by the dialogue: what it says next follows from what it is shown.

    A goal without a script is repeated. `requests` are those it was asked.
    """

    def __init__(self, script: Callable[[ModelRequest], list[Any]] | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._script = script or by_goal

    def stream(self, request: ModelRequest) -> Iterator[Event]:
        self.requests.append(request)
        for event in self._script(request):
            if isinstance(event, Exception):
                raise event
            if callable(event):
                event()
            else:
                yield event


def goal_of(request: ModelRequest) -> str:
    first = request.items[0]
    assert isinstance(first, UserText)
    return first.text


def outputs_of(request: ModelRequest) -> list[str]:
    return [item.output for item in request.items if isinstance(item, CallOutput)]


def calls_of(request: ModelRequest) -> list[Call]:
    return [item for item in request.items if isinstance(item, Call)]


def by_goal(request: ModelRequest) -> list[Any]:
    goal, done = goal_of(request), len(outputs_of(request))
    if "[deep-work-job]" in goal:
        return _two_calls(done)
    if "[deep-work-limit]" in goal:
        return _endless(request, done)
    if "[deep-work-block]" in goal:
        return said(asks("block", "call-deep-work-block")) if not done else said(Text("The block is gone."))
    return said(Text("I hear you. "), Text(f"You said: {goal}"))


def _two_calls(done: int) -> list[Any]:
    if done < 2:
        return said(asks(["dw-alpha", "dw-beta"][done], f"call-deep-work-{done + 1}"))
    return said(Text("Deep work report: both lookarounds succeeded; found dw-alpha and dw-beta."))


def _endless(request: ModelRequest, done: int) -> list[Any]:
    if request.offers:
        return said(asks(f"dw-{done}", f"call-{done + 1}"))
    last = json.loads(outputs_of(request)[-1])
    return said(Text(f"Deep work partial report: the host limit ended the search ({last['status']})."))


def one_after_the_other(*answers: list[Any]) -> Callable[[ModelRequest], list[Any]]:
    """A script that gives these answers in turn, whatever it is asked; the last again and again."""
    turn = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda _: next(turn)


class Recaller:
    """A `recall_messages` that finds whatever it is asked for. `seen` are its calls; a query `block` waits for `released`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.blocked, self.released = threading.Event(), threading.Event()

    def __call__(self, call: Invocation) -> Any:
        query = call.arguments["query"]
        self.seen.append((query, call.scope_ref))
        if query == "block":
            self.blocked.set()
            assert self.released.wait(60)
        return {"matches": [f"Found {query} in this conversation."]}


def tool(name: str, execute: Callable[[Invocation], Any], **changes: Any) -> Tool:
    values: dict[str, Any] = {"version": "1", "description": f"{name}, for tests", "parameters": QUERY}
    return Tool(name=name, execute=execute, **(values | changes))


def registry(recaller: Callable[[Invocation], Any] | None = None, *more: Tool) -> Registry:
    return Registry([tool("recall_messages", recaller or Recaller()), *more])
