"""What a server refuses to start, and what stops by itself."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.localbox.client import Http, new_key, wait_until
from tests.localbox.server import LocalboxServer


def state(http: Http, box_id: str) -> str:
    return str(http("GET", f"/boxes/{box_id}").json()["box"]["state"])


def create(http: Http, **body: Any) -> str:
    answer = http("POST", "/boxes", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["box"]["id"])


def test_no_more_boxes_than_allowed_are_up_at_once(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(max_active_boxes="1"))
    first = create(http)

    refused = http("POST", "/boxes")
    limits = http("GET", "/limits").json()

    assert (refused.status_code, refused.json()["code"]) == (429, "limit_reached")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (limits["canStart"], limits["startBlockedReason"]) == (False, "limit_reached")
    assert (limits["activeBoxes"], limits["maxActiveBoxes"]) == (1, 1)
    http("POST", f"/boxes/{first}/stop")
    create(http)


def test_a_resume_and_a_fork_count_as_boxes_too(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(max_active_boxes="1"))
    first = create(http)
    http("POST", f"/boxes/{first}/stop")
    wait_until(lambda: state(http, first) == "archived")
    create(http)

    refusals = [http("POST", f"/boxes/{first}/{action}").json()["code"] for action in ("resume", "fork")]

    assert refusals == ["limit_reached", "limit_reached"]
    assert state(http, first) == "archived"


def test_a_key_is_replayed_even_where_nothing_more_may_be_started(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(max_active_boxes="1"))
    headers = {"Idempotency-Key": new_key()}

    first, again = (http("POST", "/boxes", headers=headers) for _ in range(2))

    assert (again.status_code, again.json()["box"]["id"]) == (202, first.json()["box"]["id"])


def test_a_refused_create_leaves_its_key_free(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(max_active_boxes="1"))
    first, headers = create(http), {"Idempotency-Key": new_key()}
    assert http("POST", "/boxes", headers=headers).status_code == 429

    http("POST", f"/boxes/{first}/stop")

    assert http("POST", "/boxes", headers=headers).status_code == 202


@pytest.mark.parametrize("window", ["minute", "hour", "day"])
def test_no_more_starts_than_allowed_in_a_window(own_server: LocalboxServer, window: str) -> None:
    http = Http(own_server.start(**{f"starts_per_{window}": "2"}))
    first = create(http)
    create(http)

    refused = http("POST", "/boxes")
    limits = http("GET", "/limits").json()

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert window in refused.json()["message"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert limits["starts"][window] == {"limit": 2, "used": 2, "remaining": 0}
    assert (limits["canStart"], limits["startBlockedReason"]) == (False, "rate_limited")
    assert http("POST", f"/boxes/{first}/fork").json()["code"] in ("rate_limited", "box_starting")


def test_without_limits_starts_are_unlimited(localbox_server: LocalboxServer) -> None:
    limits = Http(localbox_server)("GET", "/limits").json()

    assert limits["starts"] == {"unlimited": True, "minute": None, "hour": None, "day": None}
    assert limits["startLimits"] is None


def test_start_limits_outlive_a_killed_provider(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(starts_per_day="1"))
    create(http)

    own_server.restart()

    assert http("POST", "/boxes").json()["code"] == "rate_limited"


def test_a_box_that_ran_out_while_the_provider_was_dead_is_archived_at_the_next_start(
    own_server: LocalboxServer,
) -> None:
    http = Http(own_server.start())
    box_id = create(http)
    wait_until(lambda: state(http, box_id) == "ready")
    assert http("PATCH", f"/boxes/{box_id}", json={"ttlSeconds": 2}).status_code == 200

    own_server.kill9()
    time.sleep(2.1)  # the time that runs out
    own_server.start()

    wait_until(lambda: state(http, box_id) == "archived")


def test_the_files_of_a_box_that_was_down_for_long_are_deleted(own_server: LocalboxServer) -> None:
    http = Http(own_server.start(prune_after_seconds="0"))
    box_id = create(http)
    http("POST", f"/boxes/{box_id}/stop")
    wait_until(lambda: state(http, box_id) == "archived")

    own_server.restart()  # housekeeping is the first thing a provider does
    wait_until(lambda: not (own_server.state_dir / "boxes" / box_id).exists())

    assert http("GET", f"/boxes/{box_id}").json()["box"]["snapshotAvailable"] is False
    assert http("POST", f"/boxes/{box_id}/resume").json()["code"] == "resume_failed"
    assert http("POST", f"/boxes/{box_id}/fork").json()["code"] == "fork_failed"
    assert http("GET", f"/boxes/{box_id}/usage").status_code == 200
    deleted = http("DELETE", f"/boxes/{box_id}", headers={"X-Ascii-Confirm-Delete": box_id}).json()[
        "operation"
    ]
    operation = f"/deletion-operations/{deleted['id']}"
    wait_until(lambda: http("GET", operation).json()["operation"]["status"] == "completed")
