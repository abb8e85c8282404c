"""Jobs from the API to their report: real processes, real boxes, and a model server that nobody here wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from accounts.scopes import Scope
from accounts.services import create_token
from base.embedded_postgres import Connection
from boxes.models import Box
from runs.models import Run
from tests.faults.installation import Api, Installation
from tests.localbox.server import LocalboxServer
from tests.peers import needs
from tests.waiting import eventually
from tests.work.aimock import Aimock
from work.models import Incident

pytestmark = [needs("aimock"), pytest.mark.node, pytest.mark.system, pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]  # fmt: skip


def call(name: str, call_id: str, arguments: str) -> dict[str, str]:
    return {"id": call_id, "name": name, "arguments": arguments}


USE = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "what is six times seven", "hasToolResult": False},
        "response": {"toolCalls": [call("box_new", "call_box", '{"label": "lab"}')], "usage": USE},
    },
    {
        "match": {"toolCallId": "call_box", "toolResultContains": "ready"},
        "response": {
            "toolCalls": [
                call(
                    "box_run", "call_run", '{"box": "lab", "command": "echo $((6 * 7)) > answer; cat answer"}'
                )
            ],
            "usage": USE,
        },
    },
    {
        "match": {"toolCallId": "call_run", "toolResultContains": "42"},
        "response": {"content": "The box says that it is 42.", "usage": USE},
        "chunkSize": 5,
    },
    {
        "match": {"userMessage": "a stream that breaks", "sequenceIndex": 0},
        "response": {"content": "This is half of an answer that never comes to its end."},
        "chunkSize": 5,
        "truncateAfterChunks": 4,
    },
    {
        "match": {"userMessage": "a stream that breaks", "sequenceIndex": 1},
        "response": {"content": "This is whole."},
    },
    {
        "match": {"userMessage": "too many requests", "sequenceIndex": 0},
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "too many requests", "sequenceIndex": 1},
        "response": {"content": "Now you may."},
    },
    {
        "match": {"userMessage": "two calls at once"},
        "response": {
            "toolCalls": [
                call("recall_messages", "call_1", '{"query": "a"}'),
                call("recall_messages", "call_2", '{"query": "b"}'),
            ]
        },
    },
    {
        "match": {"userMessage": "a wrong key"},
        "response": {"error": {"message": "no such key", "type": "invalid_request_error"}, "status": 401},
    },
]


@pytest.fixture
def mock(tmp_path: Path) -> Iterator[Aimock]:
    with Aimock(tmp_path, FIXTURES) as made:
        yield made


@pytest.fixture
def api(mock: Aimock, owner: User) -> Iterator[Api]:
    settings = {"WORK_MODEL": "gpt-5", "WORK_MODEL_API_KEY": "sk-mock", "WORK_MODEL_BASE_URL": mock.base_url}
    settings |= {"WORK_MODEL_PRICES": "gpt-5=1.25:0.125:10", "RUN_POLL_INTERVAL_MS": "200"}
    with LocalboxServer() as provider, Installation(database_of_the_test(), provider, settings) as made:
        made.add_web()
        worker = made.add_worker()
        made.await_web()
        eventually(lambda: "worker_started" in worker.said())
        yield Api(made.url, create_token(owner, scopes=Scope.values)[1])


def database_of_the_test() -> Connection:
    known = connection.get_connection_params()
    return Connection(
        host=known.get("host", "localhost"),
        user=known["user"],
        dbname=known["dbname"],
        port=int(known.get("port") or 5432),
        password=known.get("password", ""),
    )


def ended(api: Api, goal: str, **more: Any) -> dict[str, Any]:
    """The job of this goal once it has ended."""
    job: dict[str, Any] = api.insist("POST", "jobs", json={"goal": goal, **more})
    while not job["is_terminal"]:
        job = api.insist("GET", f"jobs/{job['id']}", params={"wait": 20})
    return job


def test_a_job_runs_a_command_in_a_real_box_and_ends_with_the_models_report(api: Api, mock: Aimock) -> None:
    job = ended(api, "Find out in a box: what is six times seven?")

    assert (job["status"], job["error_code"]) == ("completed", None)
    assert job["report"] == "The box says that it is 42."
    assert (job["model_id"], job["tool_call_count"], job["continuation_count"]) == ("gpt-5", 2, 2)
    assert (job["usage"]["input_tokens"], job["usage"]["cost_microusd"]) == (300, 3 * (125 + 200))
    steps = api.insist("GET", f"jobs/{job['id']}/steps")["results"]
    assert [(step["tool_name"], step["status"]) for step in steps] == [
        ("box_new", "succeeded"),
        ("box_run", "succeeded"),
    ]
    assert (steps[1]["result"]["output"], steps[1]["result"]["exit_status"]) == ("42\n", 0)
    assert Run.objects.get().state == "completed"
    eventually(lambda: Box.objects.get().stopped_at is not None)
    messages = api.insist("GET", f"conversations/{job['conversation']}/messages")["results"]
    assert [message["content"] for message in messages] == [job["report"]]
    body = mock.journal()[0]["body"]
    assert {tool["function"]["name"] if "function" in tool else tool["name"] for tool in body["tools"]} == {
        "box_new", "box_output", "box_run", "box_stop", "recall_messages"
    }  # fmt: skip


def test_what_breaks_on_the_way_is_tried_again_and_no_text_is_doubled(api: Api) -> None:
    assert ended(api, "Read a stream that breaks")["report"] == "This is whole."
    assert ended(api, "Make too many requests")["report"] == "Now you may."
    assert not Incident.objects.exists()


def test_what_will_not_get_better_ends_with_an_honest_report(api: Api) -> None:
    parallel, wrong_key = ended(api, "Make two calls at once"), ended(api, "Come with a wrong key")
    assert (parallel["status"], parallel["error_code"]) == ("failed", "parallel_tool_calls_not_supported")
    assert (wrong_key["status"], wrong_key["error_code"]) == ("failed", "provider_unauthorized")
    assert wrong_key["report"].startswith("Deep work job failed (provider_unauthorized).")
    shown = api.insist("GET", "incidents")["results"]
    assert {incident["code"] for incident in shown} == {
        "provider_unauthorized",
        "parallel_tool_calls_not_supported",
    }
