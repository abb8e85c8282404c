"""The exact requests of each call, and what comes of the usual answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import responses
from responses import matchers

from boxes.client import BoxClient, CommandResult
from boxes.conf import BoxApi
from boxes.errors import ProviderError, Refused, Unknown
from boxes.states import BoxState, SetupStatus
from tests.boxes.client.conftest import BASE

BOX = f"{BASE}/boxes/bx_8bhkse3n"


def sent(stub: responses.RequestsMock, number: int = 0) -> Any:
    return json.loads(stub.calls[number].request.body or "null")


def test_a_create_carries_its_key_and_the_same_bytes_each_time(
    client: BoxClient, stub: responses.RequestsMock
) -> None:
    stub.post(
        f"{BASE}/boxes", status=202, json={"ok": True, "status": "provisioning", "box": {"id": "bx_new"}}
    )
    for env in ({"B": "2", "A": "1"}, {"A": "1", "B": "2"}):
        box = client.create("key-1", ttl_seconds=3600, setup_script="echo hi", env=env)

    first, second = (call.request for call in stub.calls)
    assert (box.id, box.state) == ("bx_new", BoxState.PROVISIONING)
    assert first.headers["Idempotency-Key"] == "key-1"
    assert first.headers["Authorization"] == "Bearer box-client-test"
    assert first.body == second.body
    assert sent(stub) == {
        "ttlSeconds": 3600,
        "noEnv": True,
        "setupScript": "echo hi",
        "env": {"A": "1", "B": "2"},
    }


def test_a_create_sends_no_name_and_nothing_empty(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.post(f"{BASE}/boxes", json={"id": "bx_new"})
    client.create("key-1", ttl_seconds=60)

    assert sent(stub) == {"ttlSeconds": 60, "noEnv": True}


@pytest.mark.parametrize(
    "body",
    [
        {"box": {"id": "bx_new"}},
        {"sandbox": {"id": "bx_new"}},
        {"data": {"id": "bx_new", "status": "provisioning"}},
        {"id": "bx_new"},
        {"boxId": "bx_new"},
        {"sandboxId": "bx_new", "sandbox": {"state": "provisioning"}},
    ],
)
def test_the_id_of_a_new_box_is_found_in_every_form(
    client: BoxClient, stub: responses.RequestsMock, body: dict[str, Any]
) -> None:
    stub.post(f"{BASE}/boxes", json=body)

    assert client.create("key-1", ttl_seconds=60).id == "bx_new"


def test_a_look_reads_the_box(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(
        BOX,
        json={
            "ok": True,
            "box": {
                "id": "bx_8bhkse3n",
                "name": "oab-test",
                "state": "idle",
                "setupStatus": "done",
                "createdAt": "2026-11-30T10:00:00.000Z",
                "archiveAfter": None,
                "settledCostMicrousd": "12345",
                "desktopUrl": "https://desktop.invalid/?token=secret",
            },
        },
    )
    box = client.get("bx_8bhkse3n")

    assert (box.state, box.setup_status, box.is_up, box.is_terminal) == (
        BoxState.IDLE,
        SetupStatus.DONE,
        True,
        False,
    )
    assert box.created_at == datetime(2026, 11, 30, 10, tzinfo=UTC)
    assert (box.archive_after, box.cost_microusd, box.is_named("oab-test")) == (None, 12_345, True)
    assert box.raw["desktopUrl"] == "[REDACTED]"


@pytest.mark.parametrize(
    "body",
    [
        {"box": {"id": "bx_8bhkse3n", "state": "ready"}},
        {"sandbox": {"id": "bx_8bhkse3n", "state": "ready"}},
        {"data": {"id": "bx_8bhkse3n", "status": "ready"}},
        {"id": "bx_8bhkse3n", "status": "ready"},
        {"box": {"state": "ready"}},
    ],
)
def test_a_box_is_read_in_every_form(
    client: BoxClient, stub: responses.RequestsMock, body: dict[str, Any]
) -> None:
    stub.get(BOX, json=body)

    assert client.get("bx_8bhkse3n").state == BoxState.READY


@pytest.mark.parametrize(
    "body", [{"box": {"id": "bx_other123", "state": "archived"}}, {}, {"box": None}, {"box": {}}]
)
def test_an_answer_about_another_box_or_none_is_no_answer(
    client: BoxClient, stub: responses.RequestsMock, body: dict[str, Any]
) -> None:
    stub.get(BOX, json=body)

    with pytest.raises(Unknown) as caught:
        client.get("bx_8bhkse3n")
    assert caught.value.code == "box_response_invalid"


OTHER = {"id": "bx_other123", "state": "archived", "settledCostMicrousd": 5}


@pytest.mark.parametrize(
    ("method", "path", "body", "ask"),
    [
        ("POST", "/stop", {"box": OTHER}, lambda client: client.stop("bx_8bhkse3n")),
        ("POST", "/stop", OTHER, lambda client: client.stop("bx_8bhkse3n")),
        ("PATCH", "", {"sandbox": OTHER}, lambda client: client.patch("bx_8bhkse3n", name="ours")),
        ("GET", "/usage", {"boxId": "bx_other123", "dollars": 1}, lambda client: client.usage("bx_8bhkse3n")),
        ("GET", "/usage", {"sandboxId": "bx_other123", "seconds": 1}, lambda client: client.usage("bx_8bhkse3n")),
    ],
)  # fmt: skip
def test_what_is_said_of_another_box_says_nothing_of_this_one(
    client: BoxClient, stub: responses.RequestsMock, method: str, path: str, body: dict[str, Any], ask: Any
) -> None:
    stub.add(method, BOX + path, json=body)

    with pytest.raises(Unknown) as caught:
        ask(client)
    assert caught.value.code == "box_response_invalid"


def test_the_listing_asks_for_what_is_not_archived(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(
        f"{BASE}/boxes",
        json={"boxes": []},
        match=[
            matchers.query_param_matcher(
                {
                    "limit": "200",
                    "state": "init,provisioning,provisioned,cloning,ready,idle,running,archiving,error",
                }
            )
        ],
    )

    assert client.list_all().boxes == ()


def test_a_patch_sends_only_what_changes(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.patch(BOX, json={"box": {"id": "bx_8bhkse3n", "state": "ready", "name": "marker"}})

    assert client.patch("bx_8bhkse3n", name="marker").name == "marker"
    client.patch("bx_8bhkse3n", ttl_seconds=900)
    assert [sent(stub, 0), sent(stub, 1)] == [{"name": "marker"}, {"ttlSeconds": 900}]


def test_a_stop_answers_the_box_and_its_cost(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.post(
        f"{BOX}/stop",
        status=202,
        json={"box": {"id": "bx_8bhkse3n", "state": "archiving", "costMicrousd": 7}},
    )
    box = client.stop("bx_8bhkse3n")

    assert (box.state, box.cost_microusd) == (BoxState.ARCHIVING, 7)
    assert (stub.calls[0].request.body, stub.calls[0].request.headers["Content-Length"]) == (None, "0")


def test_a_stop_without_a_box_in_its_answer_is_a_stop(
    client: BoxClient, stub: responses.RequestsMock
) -> None:
    stub.post(f"{BOX}/stop", json={"ok": True, "id": "bx_8bhkse3n", "status": "archiving", "box": None})

    assert client.stop("bx_8bhkse3n", force=True).state == BoxState.ARCHIVING
    assert sent(stub) == {"force": True}


@pytest.mark.parametrize(
    ("status", "body", "operation", "gone"),
    [
        (202, '{"operation": {"id": "bdop_1", "status": "pending"}}', "bdop_1", False),
        (200, '{"operationId": "bdop_2"}', "bdop_2", False),
        (200, '{"deletionOperation": {"id": "bdop_3"}}', "bdop_3", False),
        (204, "", None, False),
        (404, "", None, True),
    ],
)
def test_a_delete_is_confirmed_and_a_missing_box_is_deleted(
    client: BoxClient, stub: responses.RequestsMock, status: int, body: str, operation: str | None, gone: bool
) -> None:
    stub.delete(BOX, status=status, body=body)
    deletion = client.delete("bx_8bhkse3n")

    assert (deletion.operation_id, deletion.was_gone) == (operation, gone)
    assert stub.calls[0].request.headers["X-Ascii-Confirm-Delete"] == "bx_8bhkse3n"


def test_a_delete_that_is_refused_says_so(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.delete(BOX, status=409, json={"code": "delete_confirmation_required"})

    with pytest.raises(Refused):
        client.delete("bx_8bhkse3n")


def test_usage_is_read_in_micro_dollars(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.get(f"{BOX}/usage", json={"ok": True, "seconds": 1234, "dollars": 0.01234, "running": False})
    usage = client.usage("bx_8bhkse3n")

    assert (usage.seconds, usage.cost_microusd, usage.running) == (1234, 12_340, False)


def test_a_command_is_sent_with_its_timeout(client: BoxClient, stub: responses.RequestsMock) -> None:
    stub.post(f"{BOX}/commands", json={"stdout": "4242\n"})
    result = client.command("bx_8bhkse3n", "echo 4242", 30)

    assert isinstance(result, CommandResult)
    assert (result.exit_status, result.stdout) == (0, "4242\n")
    assert sent(stub) == {"command": "echo 4242", "timeoutSeconds": 30}


def test_nothing_is_sent_without_a_key() -> None:
    client = BoxClient(BoxApi(base_url=BASE, api_key=""))
    with responses.RequestsMock() as stub, pytest.raises(Refused) as caught:
        client.create("key-1", ttl_seconds=60)

    assert (caught.value.code, len(stub.calls)) == ("box_not_configured", 0)


@pytest.mark.parametrize(
    "box_id", ["", "a/b", "..", ".", "a?b", "a#b", "a b", "a%2fb", "bx_é", "a\n", "x" * 300]
)
def test_an_id_that_is_no_path_segment_is_never_sent_and_never_missing(
    client: BoxClient, box_id: str
) -> None:
    calls = (client.get, client.stop, client.delete, client.usage, lambda box: client.command(box, "true", 5))
    for call in calls:
        with responses.RequestsMock(), pytest.raises(Refused) as caught:
            call(box_id)
        assert (caught.value.code, caught.value.gone_code) == ("box_malformed_id", None)


@pytest.mark.parametrize(
    "box_id", ["bx_run_state", "bx_foreign1", "sbx-01HZX:9", "550e8400-e29b-41d4-a716-446655440000"]
)
def test_an_id_of_another_form_is_sent(client: BoxClient, stub: responses.RequestsMock, box_id: str) -> None:
    stub.get(f"{BASE}/boxes/{box_id}", json={"box": {"id": box_id, "state": "ready"}})

    assert client.get(box_id).id == box_id


def test_the_other_dialect_has_other_paths_and_the_same_meaning(stub: responses.RequestsMock) -> None:
    boat = BoxClient(BoxApi(base_url=f"{BASE}/", api_key="k", dialect="boat", retry_delay_ms=0))
    stub.get(f"{BASE}/sandboxes", json={"sandboxes": [{"id": "bx_1", "state": "cancelled"}]})
    stub.post(f"{BASE}/sandboxes/bx_1/commands", status=409, json={"code": "sandbox_stopped"})
    (box,) = boat.list_all().boxes

    assert (box.state, box.is_terminal) == (BoxState.ERROR, True)
    with pytest.raises(ProviderError) as caught:
        boat.command("bx_1", "true", 5)
    assert caught.value.gone_code == "box_stopped"
