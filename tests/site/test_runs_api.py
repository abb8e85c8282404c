"""Runs over HTTP, with commands that are really executed."""

from __future__ import annotations

import json
import threading
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base import pump
from boxes.provisioning import ProvisioningDriver
from runs.models import Run
from runs.pump import run_once
from runs.worker import step

pytestmark = pytest.mark.django_db
API = "/api/v1"


def code(response) -> str:
    return response.json()["error"]["code"]


@pytest.fixture
def client(owner, api_of):
    return api_of(owner)


@pytest.fixture
def box(client, provider):
    provider.execute_commands()
    made = client.post(f"{API}/boxes", {}).json()
    pump.run_once([ProvisioningDriver()])
    return made


def start(client, box, command: str, key: str | None = None):
    body = {"box": box["id"], "command": command, "idempotency_key": key or str(uuid4())}
    return client.post(f"{API}/runs", body)


def drive(run_id: str) -> Run:
    for _ in range(200):
        run = step(run_id)
        if run.is_terminal:
            return run
    raise AssertionError("the run does not end")


def test_a_run_goes_from_202_to_its_exit_status_and_output(client, box):
    admitted = start(client, box, "echo one; echo two; exit 3")
    drive(admitted.json()["id"])

    run = client.get(f"{API}/runs/{admitted.json()['id']}").json()
    output = client.get(f"{API}/runs/{run['id']}/output").json()

    assert admitted.status_code == 202
    assert (run["state"], run["exit_status"], run["is_terminal"]) == ("failed", 3, True)
    assert output == {
        "output": "one\ntwo\n",
        "offset": 0,
        "next_offset": 8,
        "output_base_offset": 0,
        "truncated": False,
    }


def test_reading_from_an_offset_repeats_nothing(client, box):
    run = start(client, box, "printf hello").json()
    drive(run["id"])

    answer = client.get(f"{API}/runs/{run['id']}/output?offset=2").json()

    assert (answer["output"], answer["next_offset"]) == ("llo", 5)
    for bad in ("-1", "x", "1e3", "9" * 30):
        assert code(client.get(f"{API}/runs/{run['id']}/output?offset={bad}")) == "invalid_output_offset"


def test_the_whole_log_is_read_and_downloaded(client, box):
    run = start(client, box, "for n in 1 2 3; do echo line $n; done").json()
    drive(run["id"])

    log = client.get(f"{API}/runs/{run['id']}/log").json()
    file = client.get(f"{API}/runs/{run['id']}/log/download")

    assert (log["output"], log["dropped_bytes"]) == ("line 1\nline 2\nline 3\n", 0)
    assert b"".join(file.streaming_content) == b"line 1\nline 2\nline 3\n"
    assert "attachment" in file["Content-Disposition"]
    for bad in ("0", "-1", "x", str(2**20 + 1)):
        assert code(client.get(f"{API}/runs/{run['id']}/log?limit={bad}")) == "invalid_request"


def test_the_stream_tells_output_state_and_end_and_resumes(client, box):
    run = start(client, box, "echo one; echo two").json()
    drive(run["id"])

    whole = b"".join(client.get(f"{API}/runs/{run['id']}/stream").streaming_content).decode()
    rest = b"".join(
        client.get(f"{API}/runs/{run['id']}/stream", headers={"Last-Event-ID": "4"}).streaming_content
    ).decode()

    assert [line.removeprefix("event: ") for line in whole.splitlines() if line.startswith("event: ")] == [
        "state",
        "output",
        "end",
    ]
    data = [
        json.loads(line.removeprefix("data: ")) for line in rest.splitlines() if line.startswith("data: ")
    ]
    assert "".join(piece.get("output", "") for piece in data) == "two\n"


def test_the_same_key_is_the_same_run_and_another_command_is_a_conflict(client, box):
    first, again = start(client, box, "true", "k"), start(client, box, "true", "k")
    other = start(client, box, "false", "k")

    assert first.json()["id"] == again.json()["id"]
    assert (other.status_code, code(other)) == (409, "box_run_idempotency_conflict")


def test_the_key_may_come_as_a_header_and_must_come(client, box):
    body = {"box": box["id"], "command": "true"}

    assert client.post(f"{API}/runs", body, headers={"Idempotency-Key": "h"}).json()["idempotency_key"] == "h"
    without = client.post(f"{API}/runs", body)
    assert (without.status_code, code(without)) == (422, "invalid_idempotency_key")


def test_a_box_does_one_thing_at_a_time(client, box):
    start(client, box, "sleep 60")

    second = start(client, box, "true")

    assert (second.status_code, code(second)) == (409, "box_run_in_progress")


@pytest.mark.parametrize("command", ["", "  ", "x" * 8001, "é" * 4001])
def test_a_bad_command_is_named(client, box, command):
    response = start(client, box, command)

    assert (response.status_code, code(response)) == (422, "invalid_command")
    assert not Run.objects.exists()


def test_cancelling_is_durable_and_ends_the_processes(client, box):
    run = start(client, box, "sleep 600").json()
    step(run["id"])

    asked = client.post(f"{API}/runs/{run['id']}/cancel")
    ended = drive(run["id"])

    assert (asked.status_code, asked.json()["cancellation_requested_at"] is not None) == (202, True)
    assert (ended.state, ended.kill_confirmed) == ("cancelled", True)
    assert client.post(f"{API}/runs/{run['id']}/cancel").json()["state"] == "cancelled"


def test_a_stranger_finds_no_run_whatever_is_asked(client, box, stranger, api_of, provider):
    run = start(client, box, "true").json()
    other = api_of(stranger)
    provider.forget_calls()

    for path in ("", "/output", "/log", "/log/download", "/stream"):
        response = other.get(f"{API}/runs/{run['id']}{path}")
        assert (response.status_code, code(response)) == (404, "box_run_not_found"), path
    assert other.post(f"{API}/runs/{run['id']}/cancel").status_code == 404
    assert code(start(other, box, "true")) == "box_not_found"
    assert other.get(f"{API}/runs").json()["results"] == []
    assert provider.calls() == []


def test_lists_are_filtered_and_cost_the_same_however_long(client, box):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"{API}/runs?page_size=200").status_code == 200
        return len(captured)

    def add(number: int) -> None:
        for _ in range(number):
            drive(start_quietly().json()["id"])

    def start_quietly():
        return start(client, box, "true")

    add(1)
    queries()
    few = queries()
    add(4)

    assert queries() == few
    assert len(client.get(f"{API}/runs?state=completed").json()["results"]) == 5
    assert client.get(f"{API}/runs?state=running").json()["results"] == []
    assert client.get(f"{API}/runs?box={uuid4()}").json()["results"] == []


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_there_is_news(client, box):
    run = start(client, box, "echo here").json()

    def work() -> None:
        try:
            for _ in range(50):
                run_once()
                if Run.objects.get(pk=run["id"]).is_terminal:
                    return
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    answer = client.get(f"{API}/runs/{run['id']}/output?offset=0&wait=25").json()
    worker.join()

    assert answer["output"] in {"here\n", ""}
    assert client.get(f"{API}/runs/{run['id']}?wait=25").json()["state"] == "completed"
    assert client.get(f"{API}/runs/{run['id']}?wait=26").status_code == 422
