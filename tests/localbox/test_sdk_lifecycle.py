"""The vendor's own SDK takes boxes from setup over stop, resume and fork to their deletion, against a real server process, in each sandbox."""

from __future__ import annotations

from datetime import datetime

from ascii_box_sdk.api.box_api import BoxApi
from ascii_box_sdk.exceptions import BadRequestException, ConflictException, NotFoundException
from ascii_box_sdk.models.box import Box
from ascii_box_sdk.models.fork_request import ForkRequest
from ascii_box_sdk.models.resume_request import ResumeRequest
from ascii_box_sdk.models.stop_request import StopRequest

from tests.localbox.client import new_key, ready_box, run, wait_ready, wait_state, wait_until
from tests.localbox.conformance import MISSING, UP, refusal, refused_code, remove

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
