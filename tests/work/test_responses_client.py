"""The client of the Responses API, against a server that says exactly what a test tells it to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.work.model_server import (
    CREATED,
    USAGE,
    ModelServer,
    call,
    completed,
    events,
    item_done,
    raw,
    status,
    text,
)
from work.model_client import (
    Call,
    CallOutput,
    CallWritten,
    Done,
    ModelError,
    ModelRequest,
    ModelText,
    Offer,
    Started,
    Text,
    Trouble,
    Unsupported,
    UserText,
    model_client,
)
from work.model_client.responses_client import ResponsesClient

REQUEST = ModelRequest("some-model", "Be brief.", (UserText("hello"),))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


def client_of(server: ModelServer, **changes: Any) -> ResponsesClient:
    values: dict[str, Any] = {
        "api_key": "sk-test",
        "base_url": server.base_url,
        "connect_seconds": 5.0,
        "silence_seconds": 30.0,
    }
    return ResponsesClient(**(values | changes))


def told(server: ModelServer, *answers: Any, **changes: Any) -> list[Any]:
    server.answers += answers
    return list(client_of(server, **changes).stream(REQUEST))


def refused(server: ModelServer, *answers: Any, **changes: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        told(server, *answers, **changes)
    return caught.value


def test_text_calls_and_use_are_told_in_order(server: ModelServer) -> None:
    said = told(server, events(CREATED, text("Hel"), text("lo"), call("look", '{"a":1}'), completed()))
    assert said == [
        Started("resp-1"),
        Text("Hel"),
        Text("lo"),
        CallWritten("call-1", "look", '{"a":1}', "fc-1"),
        Done("resp-1", USAGE),
    ]


def test_what_only_says_how_far_the_server_is_says_nothing(server: ModelServer) -> None:
    progress = [
        {"type": "response.in_progress", "response": {"id": "resp-1"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "id": "m", "content": []},
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "delta": "hm",
            "item_id": "r",
            "output_index": 0,
            "summary_index": 0,
        },
        {"type": "response.something.of.tomorrow", "delta": "x"},
        item_done({"type": "reasoning", "id": "r", "summary": []}),
        item_done({"type": "message", "id": "m", "role": "assistant", "content": []}),
    ]
    assert told(server, events(CREATED, *progress, completed())) == [Started("resp-1"), Done("resp-1", USAGE)]


def test_the_whole_dialogue_goes_with_each_request(server: ModelServer) -> None:
    server.answers.append(events(CREATED, completed()))
    schema = {"type": "object", "properties": {}}
    items = (
        UserText("go"),
        ModelText("looking"),
        Call("call-1", "look", "{}"),
        CallOutput("call-1", '{"x":1}'),
    )
    list(client_of(server).stream(ModelRequest("m", "Rules.", items, (Offer("look", "Looks.", schema),))))

    body = server.bodies[0]
    assert (body["model"], body["instructions"], body["stream"], body["store"]) == (
        "m",
        "Rules.",
        True,
        False,
    )
    assert body["input"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "looking"},
        {"type": "function_call", "call_id": "call-1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call-1", "output": '{"x":1}'},
    ]
    assert body["tools"] == [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": schema, "strict": False}
    ]
    assert body["parallel_tool_calls"] is False
    assert server.headers[0]["authorization"] == "Bearer sk-test"


def test_without_tools_none_are_named(server: ModelServer) -> None:
    told(server, events(CREATED, completed()))
    assert "tools" not in server.bodies[0]


def test_a_server_that_wants_no_key_is_asked_without_one_of_ours(server: ModelServer) -> None:
    told(server, events(CREATED, completed()), api_key="")
    assert server.headers[0]["authorization"] == "Bearer no-key"


def test_what_is_no_function_is_said_to_be_unsupported(server: ModelServer) -> None:
    said = told(
        server,
        events(
            CREATED, item_done({"type": "web_search_call", "id": "w", "status": "completed"}), completed()
        ),
    )
    assert said[1] == Unsupported("web_search_call")


def test_a_refusal_is_what_the_model_says(server: ModelServer) -> None:
    refusal = {
        "type": "response.refusal.delta",
        "delta": "I will not.",
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
    }
    assert Text("I will not.") in told(server, events(CREATED, refusal, completed()))


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (status(401), Trouble.REFUSED, "provider_unauthorized"),
        (status(403), Trouble.REFUSED, "provider_unauthorized"),
        (status(400), Trouble.REFUSED, "provider_refused"),
        (status(404), Trouble.REFUSED, "provider_refused"),
        (status(429), Trouble.RETRY_LATER, "rate_limited"),
        (status(429, {"code": "insufficient_quota"}), Trouble.REFUSED, "provider_quota_exhausted"),
        (status(500), Trouble.RETRY_LATER, "provider_failure"),
        (status(503), Trouble.RETRY_LATER, "provider_failure"),
    ],
    ids=["401", "403", "400", "404", "429", "quota", "500", "503"],
)
def test_a_status_says_whether_asking_again_can_help(
    server: ModelServer, answer: Any, kind: Trouble, code: str
) -> None:
    error = refused(server, answer)
    assert (error.kind, error.code) == (kind, code)
    assert len(server.bodies) == 1  # the library does not ask again by itself


def test_the_server_says_when(server: ModelServer) -> None:
    assert refused(server, status(429, Retry_After="7")).retry_after_seconds == 7
    assert refused(server, status(503)).retry_after_seconds is None


@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        ({"type": "response.failed", "response": {"id": "r", "error": {"code": "server_error", "message": "secret"}}}, Trouble.RETRY_LATER, "provider_error"),
        ({"type": "response.failed", "response": {"id": "r", "error": {"code": "rate_limit_exceeded", "message": ""}}}, Trouble.RETRY_LATER, "rate_limited"),
        ({"type": "response.failed", "response": {"id": "r", "error": {"code": "invalid_prompt", "message": ""}}}, Trouble.REFUSED, "provider_error"),
        ({"type": "response.incomplete", "response": {"id": "r", "incomplete_details": {"reason": "max_output_tokens"}}}, Trouble.REFUSED, "provider_incomplete"),
        ({"type": "response.incomplete", "response": {"id": "r", "incomplete_details": {"reason": "content_filter"}}}, Trouble.REFUSED, "provider_content_filter"),
        ({"type": "error", "code": "server_error", "message": "secret", "param": None, "sequence_number": 1}, Trouble.RETRY_LATER, "provider_error"),
        (item_done({"type": "function_call", "id": "fc", "call_id": "", "name": "x", "arguments": "{}"}), Trouble.REFUSED, "invalid_provider_event"),
        (item_done({"type": "function_call", "id": "fc", "call_id": "c", "name": "x"}), Trouble.REFUSED, "invalid_provider_event"),
    ],
    ids=["failed", "failed-rate", "failed-prompt", "incomplete", "filtered", "error", "no-call-id", "no-arguments"],
)  # fmt: skip
def test_what_goes_wrong_in_a_stream_is_said_without_its_text(
    server: ModelServer, event: dict[str, Any], kind: Trouble, code: str
) -> None:
    error = refused(server, events(CREATED, event))
    assert (error.kind, error.code) == (kind, code)
    assert "secret" not in str(error)


@pytest.mark.parametrize("data", [b"data: {not json\n\n", b"data: \xff\xfe\n\n"], ids=["no-json", "no-text"])
def test_what_is_no_event_ends_the_answer(server: ModelServer, data: bytes) -> None:
    error = refused(server, raw(data))
    assert (error.kind, error.code) == (Trouble.REFUSED, "invalid_provider_event")


def test_a_stream_that_just_ends_says_no_more(server: ModelServer) -> None:
    assert told(server, events(CREATED, text("half"))) == [Started("resp-1"), Text("half")]


def test_silence_ends_the_answer(server: ModelServer) -> None:
    let_go = threading.Event()
    error = refused(server, events(CREATED, then=lambda: let_go.wait(60)), silence_seconds=0.2)
    let_go.set()
    assert (error.kind, error.code) == (Trouble.UNKNOWN, "provider_timeout")


def test_a_server_that_is_not_there_is_a_matter_of_transport() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        client = ResponsesClient(api_key="k", base_url=url, connect_seconds=1.0, silence_seconds=1.0)
        with pytest.raises(ModelError) as caught:
            list(client.stream(REQUEST))
    assert (caught.value.kind, caught.value.code) == (Trouble.UNKNOWN, "transport")


def test_leaving_early_ends_the_request(server: ModelServer) -> None:
    gone = threading.Event()

    def go_on(handler: Any) -> None:
        events(CREATED)(handler)
        try:
            while True:
                events(text("x" * 1000))(handler)
        except OSError:
            gone.set()

    server.answers.append(go_on)
    stream = client_of(server).stream(REQUEST)
    assert next(stream) == Started("resp-1")
    stream.close()  # type: ignore[attr-defined]
    assert gone.wait(60)


def test_without_settings_the_built_in_model_answers_and_says_what_it_is() -> None:
    said = list(model_client().stream(ModelRequest("echo", "", (UserText("just summarize the plan"),))))
    answer = "".join(event.delta for event in said if isinstance(event, Text))
    assert answer.startswith(
        "I hear you. You said: just summarize the plan\n\n(This is the built-in echo model"
    )
    assert isinstance(said[-1], Done)
    assert said[-1].usage["input_tokens"] == 4


def test_the_settings_name_the_server(server: ModelServer, settings: Any) -> None:
    settings.WORK = {"model": "m", "model_base_url": server.base_url}
    server.answers.append(events(CREATED, completed()))
    assert list(model_client().stream(REQUEST))[:1] == [Started("resp-1")]
    assert model_client() is model_client()
