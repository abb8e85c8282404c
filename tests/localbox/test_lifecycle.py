"""Boxes between their states: what was asked for while something else was under way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.localbox.client import Http, new_key, wait_until
from tests.localbox.server import LocalboxServer


def state(http: Http, box_id: str) -> str:
    return str(http("GET", f"/boxes/{box_id}").json()["box"]["state"])


def create(http: Http, **body: Any) -> str:
    answer = http("POST", "/boxes", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["box"]["id"])


def test_a_box_past_its_time_is_archived(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    box_id = create(http, ttlSeconds=1)

    wait_until(lambda: state(http, box_id) == "archived")

    assert http("GET", f"/boxes/{box_id}").json()["box"]["archiveAfter"] is None
    assert not http("GET", f"/boxes/{box_id}/usage").json()["running"]


def test_a_resume_keeps_the_time_that_the_box_had(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    timed, endless = create(http, ttlSeconds=900), create(http, ttlSeconds=None)
    for box_id in (timed, endless):
        http("POST", f"/boxes/{box_id}/stop")
        wait_until(lambda box_id=box_id: state(http, box_id) == "archived")

    resumed = {box_id: http("POST", f"/boxes/{box_id}/resume").json()["box"] for box_id in (timed, endless)}

    assert resumed[timed]["archiveAfter"] > resumed[timed]["updatedAt"]
    assert resumed[endless]["archiveAfter"] is None


def test_a_fork_survives_the_deletion_of_its_origin(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    origin = create(http)
    wait_until(lambda: state(http, origin) == "ready")
    http(
        "POST",
        f"/boxes/{origin}/commands",
        json={"command": "head -c 20000000 /dev/zero > big; echo kept > file"},
    )

    fork = http("POST", f"/boxes/{origin}/fork").json()["id"]
    http("DELETE", f"/boxes/{origin}", headers={"X-Ascii-Confirm-Delete": origin})
    wait_until(lambda: state(http, fork) == "ready")

    answer = http("POST", f"/boxes/{fork}/commands", json={"command": "cat file; wc -c < big"})
    assert answer.json()["stdout"] == "kept\n20000000\n"


def test_a_box_stopped_while_it_starts_is_archived_and_can_be_resumed(
    localbox_server: LocalboxServer,
) -> None:
    http = Http(localbox_server)
    box_id = create(http)

    stopped = http("POST", f"/boxes/{box_id}/stop")
    wait_until(lambda: state(http, box_id) == "archived")
    http("POST", f"/boxes/{box_id}/resume")
    wait_until(lambda: state(http, box_id) == "ready")

    assert stopped.status_code == 202
    assert http("POST", f"/boxes/{box_id}/commands", json={"command": "true"}).json()["success"]


def test_a_box_deleted_while_it_starts_leaves_nothing(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    box_id = create(http)

    deleted = http("DELETE", f"/boxes/{box_id}", headers={"X-Ascii-Confirm-Delete": box_id}).json()[
        "operation"
    ]
    operation = f"/deletion-operations/{deleted['id']}"
    wait_until(lambda: http("GET", operation).json()["operation"]["status"] == "completed")

    assert not (localbox_server.state_dir / "boxes" / box_id).exists()


def test_a_box_that_cannot_be_started_says_so_and_can_be_deleted(localbox_server: LocalboxServer) -> None:
    http = Http(localbox_server)
    box_id = create(http)
    wait_until(lambda: state(http, box_id) == "ready")
    http("POST", f"/boxes/{box_id}/stop")
    wait_until(lambda: state(http, box_id) == "archived")
    root = localbox_server.state_dir / "boxes" / box_id
    root.rename(localbox_server.state_dir / "aside")
    root.write_text("a file where the box's folder should be")

    http("POST", f"/boxes/{box_id}/resume")
    wait_until(lambda: state(http, box_id) == "error")

    failed = http("GET", f"/boxes/{box_id}").json()["box"]
    assert failed["error"].startswith("It could not be started")
    assert http("GET", f"/boxes/{box_id}/usage").json()["running"] is False
    assert http("DELETE", f"/boxes/{box_id}", headers={"X-Ascii-Confirm-Delete": box_id}).status_code == 202


def test_one_key_makes_one_box_however_many_ask_at_once(localbox_server: LocalboxServer) -> None:
    headers = {"Idempotency-Key": new_key()}

    def ask(_: int) -> str:
        return str(Http(localbox_server)("POST", "/boxes", headers=headers).json()["box"]["id"])

    with ThreadPoolExecutor(16) as clients:
        made = set(clients.map(ask, range(32)))

    assert len(made) == 1
