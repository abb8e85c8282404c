"""The client and the embedded provider understand each other, in both dialects and over real HTTP."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

import pytest

from boxes.client import BoxClient, ProviderBox
from boxes.conf import BoxApi
from boxes.errors import ProviderError, Refused
from tests.localbox.server import LocalboxServer

PREFIXES = {"box": "/api/box/v1", "boat": "/api/v1"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalboxServer]:
    with LocalboxServer() as localbox:
        yield localbox


@pytest.fixture(params=["box", "boat"])
def localbox(request: pytest.FixtureRequest, server: LocalboxServer) -> BoxClient:
    base_url = server.origin + PREFIXES[request.param]
    return BoxClient(BoxApi(base_url=base_url, api_key=server.key, dialect=request.param, retry_delay_ms=50))


def until(client: BoxClient, box_id: str, state: str) -> ProviderBox:
    deadline = time.monotonic() + 60
    while (box := client.get(box_id, tries=3)).state != state:
        assert time.monotonic() < deadline, f"still {box.raw_state}"
        time.sleep(0.05)
    return box


@pytest.fixture
def box(localbox: BoxClient) -> Iterator[ProviderBox]:
    made = localbox.create(secrets.token_hex(8), ttl_seconds=900)
    yield until(localbox, made.id, "ready")
    localbox.delete(made.id)


def test_a_key_makes_one_box_and_refuses_another_body(localbox: BoxClient) -> None:
    key = secrets.token_hex(8)
    first, second = (localbox.create(key, ttl_seconds=900, env={"A": "1"}) for _ in range(2))
    with pytest.raises(ProviderError) as caught:
        localbox.create(key, ttl_seconds=901)
    localbox.delete(first.id)

    assert (first.id, caught.value.provider_code) == (second.id, "idempotency_key_reused")


def test_a_box_is_marked_listed_and_given_more_time(localbox: BoxClient, box: ProviderBox) -> None:
    localbox.patch(box.id, name="oab-test-1234")
    longer = localbox.patch(box.id, ttl_seconds=1800)
    listed = {entry.id: entry for entry in localbox.list_all().boxes}

    assert listed[box.id].is_named("oab-test-1234")
    assert listed[box.id].is_up
    assert listed[box.id].is_setup_ended
    assert box.archive_after is not None
    assert longer.archive_after is not None
    assert longer.archive_after > box.archive_after


def test_commands_run_short_and_long(localbox: BoxClient, box: ProviderBox) -> None:
    short = localbox.command(box.id, "printf out; printf err >&2; exit 3", 30)
    late = localbox.command(box.id, "sleep 600", 1)
    long = localbox.command(box.id, "echo long; exit 4", 60)

    assert (short.exit_status, short.stdout, short.stderr) == (3, "out", "err")
    assert late.timed_out
    assert (long.exit_status, long.stdout, long.timed_out) == (4, "long\n", False)


def test_a_detached_command_is_seen_running_and_ended(localbox: BoxClient, box: ProviderBox) -> None:
    process = localbox.start_command(box.id, "echo begun; sleep 600", 600)
    seen = localbox.command_status(box.id, process.process_id)
    localbox.command(box.id, f"kill -KILL -- -{process.pid} || kill -KILL {process.pid}", 30)
    deadline = time.monotonic() + 30
    while (ended := localbox.command_status(box.id, process.process_id)).state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert (seen.state, seen.result.exit_status) == ("running", None)
    assert ended.result.exit_status not in (0, None)


def test_a_stopped_box_is_archived_metered_and_takes_no_commands(
    localbox: BoxClient, box: ProviderBox
) -> None:
    stopped = localbox.stop(box.id)
    until(localbox, box.id, "archived")
    usage = localbox.usage(box.id)
    with pytest.raises(Refused) as caught:
        localbox.command(box.id, "true", 5)

    assert stopped.state == "archiving"
    assert usage.running is False
    assert usage.cost_microusd is not None
    assert caught.value.gone_code == "machine_not_running"
    assert box.id not in {entry.id for entry in localbox.list_all().boxes}


def test_what_does_not_exist_is_not_found(localbox: BoxClient) -> None:
    for look in (localbox.get, localbox.stop, localbox.usage):
        with pytest.raises(Refused) as caught:
            look("bx_22222222")
        assert caught.value.code == "box_not_found"
    assert localbox.delete("bx_22222222").was_gone


def test_a_wrong_key_is_unauthorized(server: LocalboxServer) -> None:
    with pytest.raises(Refused) as caught:
        BoxClient(BoxApi(base_url=server.base_url, api_key="wrong")).list_all()

    assert caught.value.code == "box_unauthorized"
