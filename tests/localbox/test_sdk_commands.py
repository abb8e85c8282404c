"""The vendor's own SDK carries out commands, synchronous and detached, against a real server process, in each sandbox."""

from __future__ import annotations

import base64
from datetime import timedelta

from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.exceptions import BadRequestException, NotFoundException
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.command_request import CommandRequest

from tests.localbox.client import ready_box, run, wait_until
from tests.localbox.conformance import refusal, refused_code, remove

# 12 to 15: synchronous commands


def test_a_command_gives_its_exit_code_and_both_streams(api: BoxApi, box: Box) -> None:
    failed = run(api, box.id, "printf out; printf err >&2; exit 3")
    worked = run(api, box.id, "true")

    assert (failed.exit_code, failed.stdout, failed.stderr, failed.timed_out) == (3, "out", "err", False)
    assert (failed.type, failed.success, worked.success) == ("command.finished", False, True)
    assert failed.finished_at >= failed.started_at


def test_a_command_sees_the_variables_of_the_box_and_its_folder(api: BoxApi) -> None:
    made = ready_box(api, env={"GREETING": "hel lo"})

    run(api, made.id, "mkdir sub")
    assert run(api, made.id, 'printf "$GREETING"').stdout == "hel lo"
    assert run(api, made.id, "basename $PWD", cwd="sub").stdout == "sub\n"
    remove(api, made.id)


def test_a_folder_that_is_not_there_is_refused(api: BoxApi, box: Box) -> None:
    assert refused_code(BadRequestException, lambda: run(api, box.id, "true", cwd="nowhere")) == "invalid_cwd"


def test_a_command_past_its_time_is_ended(api: BoxApi, box: Box) -> None:
    ended = run(api, box.id, "sleep 30", timeout_seconds=1)

    assert ended.timed_out
    assert ended.exit_code != 0
    assert ended.success is False
    assert ended.finished_at - ended.started_at < timedelta(seconds=15)


def test_a_timeout_beyond_the_limit_is_refused(api: BoxApi, box: Box) -> None:
    past_the_model = CommandRequest.model_construct(command="true", timeout_seconds=601, detached=False)

    assert refusal(BadRequestException, lambda: api.command(box.id, past_the_model)).code == "invalid_timeout"


# 16 to 19: detached commands


def test_a_detached_command_is_followed_to_its_end(api: BoxApi, box: Box) -> None:
    script = "echo begun; read line < gate; echo over; echo oops >&2; exit 4"
    run(api, box.id, "mkfifo gate")
    started = run(api, box.id, script, detached=True)
    wait_until(lambda: api.command_status(box.id, started.process_id).stdout == "begun\n")

    running = api.command_status(box.id, started.process_id)
    run(api, box.id, "echo go > gate")
    ended = wait_until(
        lambda: api.command_status(box.id, started.process_id), wanted=lambda seen: not seen.running
    )

    assert started.type == "command.started"
    assert started.pid > 0
    assert started.log_path
    assert (running.status, running.running, running.exit_code) == ("running", True, None)
    assert (ended.status, ended.exit_code, ended.stdout, ended.stderr) == (
        "exited",
        4,
        "begun\nover\n",
        "oops\n",
    )


def test_a_tail_is_exactly_the_last_bytes(api: BoxApi, box: Box) -> None:
    started = run(api, box.id, "printf 0123456789", detached=True)
    wait_until(lambda: not api.command_status(box.id, started.process_id).running)

    tail = api.command_status(box.id, started.process_id, tail_bytes=5)

    assert (tail.stdout, tail.stdout_truncated, tail.stderr_truncated) == ("56789", True, False)


def test_a_detached_command_is_ended_by_a_second_command(api: BoxApi, box: Box) -> None:
    started = run(api, box.id, "sleep 300", detached=True)

    killed = run(api, box.id, f"kill -- -{started.pid} || kill {started.pid}")
    ended = wait_until(
        lambda: api.command_status(box.id, started.process_id), wanted=lambda seen: not seen.running
    )

    assert killed.exit_code == 0
    assert ended.exit_code != 0


def test_a_process_that_never_was_is_unknown(api: BoxApi, box: Box) -> None:
    assert refusal(NotFoundException, lambda: api.command_status(box.id, 2147483000)).code == "not_found"


def test_a_log_can_be_read_from_an_offset_by_a_second_command(api: BoxApi, box: Box) -> None:
    started = run(api, box.id, "printf 'first\\nsecond\\n'", detached=True)
    wait_until(lambda: not api.command_status(box.id, started.process_id).running)

    rest = run(api, box.id, f"tail -c +7 {started.log_path} | base64 -w0; kill -0 {started.pid}")

    assert base64.b64decode(rest.stdout) == b"second\n"
    assert rest.exit_code != 0
