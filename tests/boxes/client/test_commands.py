"""Commands: every form of a result, and long ones that are started detached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import responses
from hypothesis import given
from hypothesis import strategies as st

from boxes.client import BoxClient
from boxes.client.commands import parse_process, parse_result
from boxes.client.detached import KILL_SCRIPT, run_detached
from boxes.errors import ProviderError, Refused, RetryLater, Unknown
from tests.boxes.client.conftest import BASE
from tests.boxes.client.properties import unhurried
from tests.fakes.commands import FakeProcess
from tests.fakes.provider import FakeProvider


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"stdout": "x", "exitCode": 3}, 3),
        ({"stdout": "x", "returnCode": 3}, 3),
        ({"stdout": "x", "exit_status": "3"}, 3),
        ({"result": {"stdout": "x", "exit_code": 3}}, 3),
        ({"stdout": "x"}, 0),
        ({"stdout": "x", "ok": True}, 0),
        ({"stdout": "x", "ok": False}, None),
        ({"stdout": "x", "success": False}, None),
        ({"result": {"stdout": "x"}, "ok": False}, None),
        ({"stdout": "x", "exitCode": None, "signal": "SIGTERM"}, 143),
        ({"stdout": "x", "exitCode": None, "signal": "KILL"}, 137),
        ({"stdout": "x", "exitCode": None, "signal": 9}, 137),
        ({"stdout": "x", "exitCode": None, "signal": "9"}, 137),
        ({"stdout": "x", "exitCode": None, "signal": "SIGNONSENSE"}, None),
        ({"stdout": "x", "exitCode": None, "timedOut": True}, 124),
        ({"stdout": "x", "exitCode": 143, "timedOut": True}, 143),
        ({"stdout": "x", "exitCode": None}, None),
        ({"stdout": "x", "exitCode": True}, None),
        ({"pid": 4242}, None),
    ],
)
def test_the_exit_status_is_read_in_every_form(body: dict[str, Any], status: int | None) -> None:
    result = parse_result(body)

    assert result is not None
    assert result.exit_status == status


def test_the_flags_and_the_pid_are_read() -> None:
    result = parse_result(
        {"stdout": None, "stderr": "bad", "timed_out": True, "stderrTruncated": True, "pid": "42"}
    )

    assert result is not None
    assert (result.stdout, result.stderr, result.timed_out, result.truncated, result.pid) == (
        "",
        "bad",
        True,
        True,
        42,
    )


@pytest.mark.parametrize("body", [{}, {"ok": True}, {"message": "hello"}, {"result": {}}])
def test_an_answer_without_anything_of_a_command_is_no_result(
    client: BoxClient, stub: responses.RequestsMock, body: dict[str, Any]
) -> None:
    stub.post(f"{BASE}/boxes/bx_1/commands", json=body)
    with pytest.raises(Unknown) as caught:
        client.command("bx_1", "true", 5)

    assert caught.value.code == "box_response_invalid"


def test_a_failure_that_is_told_with_200_may_have_run(
    client: BoxClient, stub: responses.RequestsMock
) -> None:
    stub.post(f"{BASE}/boxes/bx_1/commands", json={"ok": False, "code": "box_direct_failed"})
    with pytest.raises(Unknown) as caught:
        client.command("bx_1", "true", 5)

    assert caught.value.provider_code == "box_direct_failed"


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)
NAMES = st.sampled_from(
    [
        "stdout",
        "stderr",
        "exitCode",
        "returnCode",
        "signal",
        "timedOut",
        "pid",
        "processId",
        "status",
        "ok",
        "result",
    ]
)


@unhurried
@given(st.dictionaries(NAMES, ODD | st.dictionaries(NAMES, ODD, max_size=3)))
def test_any_answer_is_a_result_or_none(body: dict[str, Any]) -> None:
    result, process = parse_result(body), parse_process(body)

    assert result is None or (isinstance(result.stdout, str) and not isinstance(result.exit_status, bool))
    assert process is None or process.process_id > 0


@pytest.mark.parametrize(
    ("body", "state", "status"),
    [
        ({"processId": 1, "status": "running", "stdout": ""}, "running", None),
        ({"processId": 1, "status": "exited", "exitCode": 4, "stdout": ""}, "exited", 4),
        ({"processId": 1, "status": "lost", "exitCode": 0, "stdout": ""}, "lost", 0),
        ({"processId": 1, "running": False, "exitCode": 4, "stdout": ""}, "exited", 4),
        ({"processId": 1, "running": True, "stdout": ""}, "running", None),
    ],
)
def test_a_process_that_runs_has_no_exit_status(body: dict[str, Any], state: str, status: int | None) -> None:
    process = parse_process(body)

    assert process is not None
    assert (process.state, process.result.exit_status) == (state, status)


# -- over real sockets


def test_a_command_really_runs(fake: FakeProvider, live: BoxClient) -> None:
    fake.execute_commands()
    box = fake.add_box()
    result = live.command(box.id, "printf out; printf err >&2; exit 7", 30)

    assert (result.exit_status, result.stdout, result.stderr, result.timed_out) == (7, "out", "err", False)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"drop_before": True}, Unknown),
        ({"drop_after": True}, Unknown),
        ({"half": 0.5}, Unknown),
        ({"html": True}, Unknown),
        ({"status": 502, "code": "box_direct_failed", "after": True}, Unknown),
        ({"status": 504, "code": "request_timeout"}, Unknown),
        ({"status": 409, "code": "box_restoring"}, RetryLater),
        ({"status": 429, "retry_after": 9}, RetryLater),
        ({"status": 404, "code": "not_found"}, Refused),
    ],
)
def test_a_command_that_goes_wrong_is_sent_once(
    fake: FakeProvider, live: BoxClient, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    box = fake.add_box()
    fake.next("command", **fault)
    with pytest.raises(ProviderError) as caught:
        live.command(box.id, "true", 5)

    assert (type(caught.value), fake.count("command")) == (kind, 1)


class Time:
    """A clock that moves only when somebody sleeps; `then` does something at each sleep."""

    def __init__(self, then: Callable[[float], object] = lambda _now: None) -> None:
        self.now = 0.0
        self._then = then

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._then(self.now)

    def monotonic(self) -> float:
        return self.now


def run(live: BoxClient, box_id: str, seconds: int, time: Time) -> Any:
    return run_detached(live, box_id, "long", seconds, time.sleep, time.monotonic)


def end(fake: FakeProvider, *, status: str = "exited", code: int | None = 0, stdout: str = "") -> FakeProcess:
    (process,) = fake.processes.values()
    process.status, process.exit_code, process.stdout = status, code, stdout
    return process


def test_a_long_command_is_started_detached_and_polled(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    time = Time(then=lambda now: end(fake, code=5, stdout="done") if now > 100 else None)
    result = run(live, box.id, 500, time)

    assert (result.exit_status, result.stdout, result.timed_out) == (5, "done", False)
    assert fake.calls("command")[0].json == {"command": "long", "timeoutSeconds": 500, "detached": True}
    assert fake.count("command") == 1
    assert 100 < time.now < 110


def test_a_command_of_more_than_fifty_seconds_takes_that_way(fake: FakeProvider, live: BoxClient) -> None:
    fake.execute_commands()
    box = fake.add_box()

    assert live.command(box.id, "echo hello", 51).stdout == "hello\n"
    assert fake.count("command_status") >= 1


def test_a_look_that_fails_is_repeated(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    for fault in ({"status": 503}, {"drop_before": True}, {"html": True}, {"status": 429, "retry_after": 5}):
        fake.next("command_status", **fault)
    time = Time(then=lambda now: end(fake, code=0, stdout="done") if now > 30 else None)

    assert run(live, box.id, 500, time).stdout == "done"


def test_a_command_is_ended_at_its_timeout(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    scripts: list[str] = []

    def respond(_box: Any, command: str) -> str | None:
        if command == "long":
            return None
        scripts.append(command)
        end(fake, code=143, stdout="so far")
        return "signalled\nended\n"

    fake.on_command(respond)
    time = Time()
    result = run(live, box.id, 60, time)

    assert (result.exit_status, result.stdout, result.timed_out, result.still_running) == (
        143,
        "so far",
        True,
        False,
    )
    assert scripts == [KILL_SCRIPT.format(pid=next(iter(fake.processes.values())).pid)]
    assert time.now == 60


def test_a_command_that_cannot_be_ended_is_said_to_run_on(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.next("command", when=lambda request: not request.json.get("detached"), status=502)
    result = run(live, box.id, 60, Time())

    assert (result.exit_status, result.timed_out, result.still_running) == (124, True, True)


def test_a_command_that_ended_just_before_is_not_timed_out(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()

    def respond(_box: Any, command: str) -> str | None:
        if command == "long":
            return None
        end(fake, code=0, stdout="in time")
        return "ended\n"

    fake.on_command(respond)
    result = run(live, box.id, 60, Time())

    assert (result.exit_status, result.stdout, result.timed_out) == (0, "in time", False)


def test_the_kill_script_ends_a_stubborn_process(fake: FakeProvider, live: BoxClient) -> None:
    fake.execute_commands()
    box = fake.add_box()
    script = "trap '' TERM; echo ready > ready; while :; do sleep 600 & wait; done"
    process = live.start_command(box.id, script, 600)
    live.command(box.id, "until [ -s ready ]; do sleep 0.02; done", 30)
    words = live.command(box.id, KILL_SCRIPT.format(pid=process.pid), 30).stdout.split()

    assert words[0] == "signalled"
    assert live.command_status(box.id, process.process_id).result.exit_status == 137


def test_a_lost_command_is_unknown(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    with pytest.raises(Unknown) as caught:
        run(live, box.id, 500, Time(then=lambda _now: end(fake, status="lost")))

    assert caught.value.provider_code == "command_lost"


def test_a_box_that_goes_while_it_runs_makes_it_unknown_and_says_why(
    fake: FakeProvider, live: BoxClient
) -> None:
    box = fake.add_box()
    with pytest.raises(Unknown) as caught:
        run(live, box.id, 500, Time(then=lambda _now: fake.world.delete(box)))

    assert caught.value.gone_code == "box_not_found"


def test_an_old_server_is_asked_with_its_longest_timeout(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.next("command", when=lambda request: request.json["timeoutSeconds"] > 60, code="invalid_timeout")
    live.start_command(box.id, "long", 500)

    assert [call.json["timeoutSeconds"] for call in fake.calls("command")] == [500, 60]


def test_a_start_that_may_have_happened_is_not_repeated(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    fake.next("command", drop_after=True)
    with pytest.raises(Unknown):
        live.command(box.id, "long", 500)

    assert (fake.count("command"), len(fake.processes)) == (1, 1)


def test_only_the_end_of_the_output_can_be_asked_for(fake: FakeProvider, live: BoxClient) -> None:
    box = fake.add_box()
    process = live.start_command(box.id, "long", 500)
    end(fake, stdout="0123456789")
    seen = live.command_status(box.id, process.process_id, tail_bytes=4)

    assert (seen.result.stdout, seen.result.truncated) == ("6789", True)
