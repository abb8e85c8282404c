"""The vendor's own SDK drives every served call, against a real server process, in each sandbox."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.box_helpers import read_text, stop_and_remove, stream_events, write_text
from ascii_box_sdk.exceptions import (
    ApiException,
    BadRequestException,
    ConflictException,
    NotFoundException,
    UnauthorizedException,
)
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.command_request import CommandRequest
from ascii_box_sdk.models.create_box_request import CreateBoxRequest
from ascii_box_sdk.models.file_write_request import FileWriteRequest
from ascii_box_sdk.models.fork_request import ForkRequest
from ascii_box_sdk.models.resume_request import ResumeRequest
from ascii_box_sdk.models.stop_request import StopRequest
from ascii_box_sdk.models.update_box_request import UpdateBoxRequest
from ascii_box_sdk.models.webhook_create_request import WebhookCreateRequest
from ascii_box_sdk.models.webhook_update_request import WebhookUpdateRequest

from tests.localbox.client import new_key, ready_box, run, sdk, wait_ready, wait_state, wait_until
from tests.localbox.server import LocalboxServer

MISSING = "bx_22222222"
UP = ("ready", "idle", "running")


@pytest.fixture
def box(api: BoxApi) -> Iterator[Box]:
    made = ready_box(api)
    yield made
    remove(api, made.id)


def remove(api: BoxApi, box_id: str) -> None:
    stop_and_remove(api, box_id, delete=True)


def refusal(kind: type[ApiException], call: Callable[[], Any]) -> Any:
    """The error envelope that the SDK made of a refused call."""
    with pytest.raises(kind) as refused:
        call()
    assert refused.value.data is not None, refused.value.body
    return refused.value.data


def refused_code(kind: type[ApiException], call: Callable[[], Any]) -> str:
    """The code of a refusal, also where the SDK has no model for its status."""
    with pytest.raises(kind) as refused:
        call()
    return str(json.loads(refused.value.body)["code"])


# 1 and 2: the account


def test_it_says_who_the_account_is(api: BoxApi) -> None:
    answer = api.me()

    assert answer.type == "user.info"
    assert answer.user.login == "localbox"


def test_it_says_what_may_still_be_started(api: BoxApi) -> None:
    answer = api.limits()

    assert answer.type == "limits.info"
    assert 0 <= answer.active_boxes <= answer.max_active_boxes
    assert answer.billing_status
    assert answer.can_start


# 3 and 4: refusals


def test_it_refuses_a_wrong_key_with_a_complete_envelope(each_server: LocalboxServer) -> None:
    error = refusal(UnauthorizedException, lambda: sdk(each_server, key="box_not_this_one").boxes())

    assert (error.code, error.status, error.type, error.ok) == ("unauthorized", 401, "box.error", False)
    assert (error.error.code, error.error.status) == ("unauthorized", 401)
    assert error.request_id.startswith("req_")


def test_it_knows_no_box_that_was_never_made(api: BoxApi) -> None:
    assert refusal(NotFoundException, lambda: api.get(MISSING)).code == "not_found"


# 5 to 8: create, and its key


def test_a_create_answers_before_the_box_is_up(api: BoxApi) -> None:
    request = CreateBoxRequest(ttl_seconds=900, no_env=True, env={"GREETING": "hello"})

    answer = api.create(new_key(), create_box_request=request)

    assert (answer.type, answer.status, answer.ttl_seconds) == ("box.created", "provisioning", 900)
    assert answer.box.state == "provisioning"
    remove(api, answer.box.id)


def test_a_repeated_create_is_the_same_box_before_and_after_it_is_up(api: BoxApi) -> None:
    key, request = new_key(), CreateBoxRequest(ttl_seconds=900, no_env=True)
    first, again = (api.create(key, create_box_request=request).box for _ in range(2))

    up = wait_ready(api, first.id)
    later = api.create(key, create_box_request=request)

    assert first.id == again.id == later.box.id
    assert later.status == "provisioning"
    assert (up.setup_status, up.environment) == (None, None)
    assert timedelta(0) < up.archive_after - up.created_at <= timedelta(seconds=905)
    remove(api, first.id)


def test_a_key_is_refused_with_another_body(api: BoxApi) -> None:
    key = new_key()
    made = api.create(key, create_box_request=CreateBoxRequest(ttl_seconds=900)).box

    error = refusal(
        ConflictException, lambda: api.create(key, create_box_request=CreateBoxRequest(ttl_seconds=901))
    )

    assert error.code == "idempotency_key_reused"
    remove(api, made.id)


def test_creates_without_a_key_make_a_box_each(api: BoxApi) -> None:
    first, second = (api.create(create_box_request=CreateBoxRequest(ttl_seconds=900)).box for _ in range(2))

    assert first.id != second.id
    remove(api, first.id)
    remove(api, second.id)


@pytest.mark.parametrize(
    ("size", "vcpu", "memory", "multiplier"), [("small", 2, 4, 0.5), ("large", 8, 16, 2)]
)
def test_a_size_sets_what_the_box_says_of_itself(
    api: BoxApi, size: str, vcpu: int, memory: int, multiplier: float
) -> None:
    made = api.create(new_key(), create_box_request=CreateBoxRequest(type=size, ttl_seconds=900)).box

    assert (made.type, made.vcpu, made.memory_gb, made.billing_multiplier) == (size, vcpu, memory, multiplier)
    remove(api, made.id)


# 9 to 11: update


def test_a_new_name_shows_everywhere(api: BoxApi, box: Box) -> None:
    changed = api.update(box.id, UpdateBoxRequest(name="lathe")).box

    rows = [row for row in api.boxes().boxes if row.id == box.id]
    assert changed.name == "lathe"
    assert [(row.name, row.state in UP) for row in rows] == [("lathe", True)]


def test_a_new_ttl_moves_the_automatic_stop(api: BoxApi, box: Box) -> None:
    later = api.update(box.id, UpdateBoxRequest(ttl_seconds=1800)).box
    never = api.update(box.id, UpdateBoxRequest(ttl_seconds=None)).box

    assert later.archive_after > box.archive_after
    assert never.archive_after is None


def test_an_update_of_nothing_is_refused(api: BoxApi, box: Box) -> None:
    assert refusal(BadRequestException, lambda: api.update(box.id, UpdateBoxRequest())).code == "no_changes"


def test_a_subdomain_belongs_to_one_box(api: BoxApi, box: Box) -> None:
    label, other = f"lathe-{new_key()}", ready_box(api)

    assert api.update(box.id, UpdateBoxRequest(subdomain=label)).box.subdomain == label
    taken = refused_code(ConflictException, lambda: api.update(other.id, UpdateBoxRequest(subdomain=label)))
    assert taken == "subdomain_taken"
    remove(api, other.id)


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


# 20 to 23: files


@pytest.mark.parametrize("name", ["plain.txt", "with a space.txt", "grün/åäö.txt", "/tmp/elsewhere.txt"])
def test_a_text_file_comes_back_as_it_was_written(api: BoxApi, box: Box, name: str) -> None:
    content = "first line\nzweite Zeile: äöü €\n"

    written = api.write_file(box.id, FileWriteRequest(path=name, content=content))
    read = api.read_file(box.id, name)

    assert (written.type, read.type) == ("file.written", "file.read")
    assert written.size == read.size == len(content.encode())
    assert (read.content, read.encoding) == (content, "utf8")
    shell_path = name if not name.startswith("/tmp/") else f"${{TMPDIR:-/tmp}}/{name.removeprefix('/tmp/')}"
    assert run(api, box.id, f'cat "{shell_path}"').stdout == content


def test_bytes_come_back_as_they_were_written(api: BoxApi, box: Box) -> None:
    content = base64.b64encode(bytes(range(256))).decode()

    api.write_file(box.id, FileWriteRequest(path="all.bin", content=content, encoding="base64"))
    read = api.read_file(box.id, "all.bin", encoding="base64")

    assert (read.content, read.size, read.encoding) == (content, 256, "base64")
    assert api.artifact(box.id, "all.bin") == bytes(range(256))


def test_the_helpers_for_text_work(api: BoxApi, box: Box) -> None:
    write_text(api, box.id, "note.txt", "hello")

    assert read_text(api, box.id, "/home/user/note.txt") == "hello"


@pytest.mark.parametrize("path", ["/etc/hosts", "../outside.txt", "/home/user/../../etc/x", "/tmp/../etc/x"])
def test_a_path_outside_the_box_is_refused(api: BoxApi, box: Box, path: str) -> None:
    request = FileWriteRequest(path=path, content="x")

    assert refusal(BadRequestException, lambda: api.write_file(box.id, request)).code == "invalid_path"
    assert refused_code(BadRequestException, lambda: api.read_file(box.id, path)) == "invalid_path"


def test_a_link_out_of_the_box_is_refused(api: BoxApi, box: Box) -> None:
    run(api, box.id, "ln -s /etc exit")

    assert refused_code(BadRequestException, lambda: api.read_file(box.id, "exit/hosts")) == "invalid_path"


def test_a_file_that_is_not_there_is_unknown(api: BoxApi, box: Box) -> None:
    assert refused_code(NotFoundException, lambda: api.read_file(box.id, "nothing.txt")) == "not_found"


def test_bytes_that_are_no_text_are_not_given_as_text(api: BoxApi, box: Box) -> None:
    run(api, box.id, r"printf '\377\376' > raw")

    assert refused_code(BadRequestException, lambda: api.read_file(box.id, "raw")) == "invalid_encoding"


# 24 and 25: listing


@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_pages_hold_every_box_once_in_order_of_creation(api: BoxApi, sort: str) -> None:
    made = [api.create(new_key()).box.id for _ in range(3)]

    seen = [row.id for row in every_row(api, sort) if row.id in made]

    assert seen == (made if sort == "asc" else made[::-1])
    for box_id in made:
        remove(api, box_id)


def every_row(api: BoxApi, sort: str) -> Iterator[Box]:
    """All boxes, one a page."""
    cursor, more = None, True
    while more:
        page = api.boxes(limit=1, sort=sort, cursor=cursor)
        yield from page.boxes
        cursor, more = page.page_info.next_cursor, page.page_info.has_more
        assert more == (cursor is not None)


def test_a_listing_is_filtered_by_state(api: BoxApi, box: Box) -> None:
    up = {row.id for row in api.boxes(state="ready,idle,running").boxes}
    down = {row.id for row in api.boxes(state="archived,error").boxes}

    assert box.id in up
    assert box.id not in down


# 26: events


def test_events_of_a_box_without_an_agent_are_none(api: BoxApi, box: Box) -> None:
    cursor = base64.urlsafe_b64encode(b"1790000000000:evt-1").decode().rstrip("=")

    first = api.events(box.id, sort="asc")
    later = api.events(box.id, sort="asc", cursor=cursor)

    assert (first.type, first.id, first.events, later.events) == ("events.list", box.id, [], [])
    with pytest.raises(TimeoutError):
        next(stream_events(api, box.id, timeout_seconds=0, include_existing=True))


# 27: usage


def test_usage_runs_while_the_box_is_up(api: BoxApi, box: Box) -> None:
    used = api.usage(box.id)

    assert used.running
    assert used.box_id == box.id
    assert used.dollars == used.seconds / used.seconds_per_dollar
    assert used.seconds_per_dollar == 100_000
    assert used.since == box.created_at


def test_usage_of_a_window_before_the_box_is_nothing(api: BoxApi, box: Box) -> None:
    before = api.usage(box.id, since="2020-01-01T00:00:00Z", until="2020-01-02T00:00:00Z")

    assert (before.seconds, before.dollars) == (0, 0)
    assert before.until == datetime.fromisoformat("2020-01-02T00:00:00+00:00")


# 28: setup scripts


def test_a_setup_script_runs_in_the_background(api: BoxApi) -> None:
    made = ready_box(api, setup_script='echo "$WORD" > made-by-setup', env={"WORD": "ready"})

    after = wait_until(lambda: api.get(made.id).box, wanted=lambda seen: seen.setup_status == "done")

    assert after.setup_error is None
    assert run(api, made.id, "cat made-by-setup").stdout == "ready\n"
    remove(api, made.id)


def test_a_setup_script_that_fails_says_why(api: BoxApi) -> None:
    made = ready_box(api, setup_script="echo no such tool >&2\nexit 7")

    after = wait_until(lambda: api.get(made.id).box, wanted=lambda seen: seen.setup_status == "failed")

    assert after.setup_error == "exit code 7: no such tool"
    assert after.state in UP
    remove(api, made.id)


# 29 to 31: stop and resume


def test_a_stop_ends_in_archived_and_the_meter_stands_still(api: BoxApi, box: Box) -> None:
    stopped = api.stop(box.id)
    again = api.stop(box.id, stop_request=StopRequest(force=True)) if is_archiving(api, box.id) else stopped
    archived = wait_state(api, box.id, "archived")

    readings = [api.usage(box.id) for _ in range(2)]
    assert (stopped.type, stopped.status, stopped.box.state) == ("box.stopping", "archiving", "archiving")
    assert (again.type, again.status) == ("box.stopping", "archiving")
    assert archived.snapshot_available
    assert (archived.last_snapshot_status, archived.archive_after) == ("completed", None)
    assert readings[0].seconds == readings[1].seconds
    assert not readings[1].running


def is_archiving(api: BoxApi, box_id: str) -> bool:
    return bool(api.get(box_id).box.state == "archiving")


def test_a_stop_of_a_stopped_box_is_refused(api: BoxApi, box: Box) -> None:
    api.stop(box.id)
    wait_state(api, box.id, "archived")

    assert refusal(BadRequestException, lambda: api.stop(box.id)).code == "machine_not_running"


def test_a_stopped_box_runs_nothing(api: BoxApi, box: Box) -> None:
    api.stop(box.id)
    wait_state(api, box.id, "archived")

    assert refused_code(ConflictException, lambda: run(api, box.id, "true")) == "machine_not_running"
    assert refused_code(ConflictException, lambda: api.read_file(box.id, "x")) == "machine_not_running"


def test_a_resume_brings_the_files_back(api: BoxApi, box: Box) -> None:
    run(api, box.id, "echo kept > file")
    api.stop(box.id)
    wait_state(api, box.id, "archived")

    resumed = api.resume(box.id, resume_request=ResumeRequest(env={"NEW": "value"}, type="large"))
    up = wait_ready(api, box.id)

    assert (resumed.type, resumed.status, resumed.box.state) == ("box.resuming", "resuming", "provisioning")
    assert run(api, box.id, "cat file; echo $NEW").stdout == "kept\nvalue\n"
    assert (up.type, up.billing_multiplier) == ("large", 2)
    assert up.archive_after > box.archive_after


def test_a_second_resume_is_accepted(api: BoxApi, box: Box) -> None:
    assert api.resume(box.id).box.state in UP


# 32: fork


def test_a_fork_is_one_new_box_with_the_files(api: BoxApi, box: Box) -> None:
    run(api, box.id, "echo original > file; mkdir -p deep/er; ln -s file deep/link")
    key, request = new_key(), ForkRequest(ttl_seconds=900)

    first, again = (api.fork(box.id, key, fork_request=request) for _ in range(2))
    wait_ready(api, first.id)
    run(api, first.id, "echo changed > file")

    assert (first.type, first.status) == ("box.forking", "forking")
    assert first.id == again.id != box.id
    assert run(api, first.id, "cat file; readlink deep/link").stdout == "changed\nfile\n"
    assert run(api, box.id, "cat file").stdout == "original\n"
    remove(api, first.id)


def test_a_fork_of_a_stopped_box_has_its_variables(api: BoxApi) -> None:
    origin = ready_box(api, env={"WORD": "inherited"}, no_env=True)
    api.stop(origin.id)
    wait_state(api, origin.id, "archived")

    made = api.fork(origin.id, new_key()).box
    up = wait_ready(api, made.id)

    assert run(api, made.id, "echo $WORD").stdout == "inherited\n"
    assert up.environment is None
    for box_id in (made.id, origin.id):
        remove(api, box_id)


# 33: webhooks


def test_a_webhook_lives_from_create_to_delete(api: BoxApi) -> None:
    request = WebhookCreateRequest(url="https://example.com/hook", events=["box.ready"], name="first")

    created = api.create_webhook(request)
    listed = api.list_webhooks().webhooks
    changed = api.update_webhook(
        created.webhook.id, WebhookUpdateRequest(events=["box.error", "box.archived"])
    )
    rotated = api.rotate_webhook_signing_secret(created.webhook.id)
    read = api.get_webhook(created.webhook.id).webhook
    gone = api.delete_webhook(created.webhook.id)

    assert re.fullmatch(r"whsec_[a-f0-9]{64}", created.secret)
    assert [hook.id for hook in listed] == [created.webhook.id]
    assert [event.value for event in changed.webhook.events] == ["box.error", "box.archived"]
    assert rotated.secret != created.secret
    assert (read.name, read.url) == ("first", "https://example.com/hook")
    assert gone.id == created.webhook.id
    assert refusal(NotFoundException, lambda: api.get_webhook(created.webhook.id)).code == "not_found"


# 34 and 35: delete


def test_a_delete_without_the_right_confirmation_deletes_nothing(api: BoxApi, box: Box) -> None:
    error = refusal(ConflictException, lambda: api.delete_box(MISSING, box.id))

    assert error.code == "delete_confirmation_required"
    assert api.get(box.id).box.state in UP


def test_a_deleted_box_is_gone_and_the_operation_completes(api: BoxApi) -> None:
    made = ready_box(api)

    accepted = api.delete_box(made.id, made.id)
    again = api.delete_box(made.id, made.id)
    operation = wait_until(
        lambda: api.get_deletion_operation(accepted.operation.id).operation,
        wanted=lambda seen: seen.status == "completed",
    )

    assert accepted.type == "box.deleting"
    assert again.operation.id == accepted.operation.id
    assert refusal(NotFoundException, lambda: api.get(made.id)).code == "not_found"
    assert made.id not in {row.id for row in api.boxes().boxes}
    assert (operation.target_id, operation.kind, operation.reason) == (made.id, "box", "explicit")
    assert operation.completed_at >= operation.requested_at


# what is not served


def test_what_is_not_served_says_so(api: BoxApi, box: Box) -> None:
    calls: list[Callable[[], Any]] = [
        api.environments,
        api.api_keys,
        api.list_named_snapshots,
        api.list_snapshots,
        lambda: api.interrupt(box.id),
        lambda: api.get_latest_box_snapshot(box.id),
        lambda: api.conversations(box.id),
    ]

    assert {refused_code(NotFoundException, call) for call in calls} == {"not_supported"}
    assert api.get(box.id).box.state in UP


def test_a_named_snapshot_to_start_from_is_unknown(api: BoxApi) -> None:
    request = CreateBoxRequest(var_from="golden")

    assert (
        refused_code(NotFoundException, lambda: api.create(create_box_request=request))
        == "snapshot_not_found"
    )
