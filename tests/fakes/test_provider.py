"""The fake provider does what its interface says, so that later tests can trust it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import requests

from base.http import DeadlineExceeded, Reply, TransportFailure, call
from tests.fakes.provider import FakeProvider


def ask(fake: FakeProvider, method: str, path: str, seconds: float = 30, **more: Any) -> Reply:
    headers = {"Authorization": f"Bearer {fake.key}", **more.pop("headers", {})}
    return call(method, fake.url + path, deadline_seconds=seconds, headers=headers, **more)


def told(fake: FakeProvider, method: str, path: str, **more: Any) -> Any:
    return json.loads(ask(fake, method, path, **more).body)


def create(fake: FakeProvider, key: str = "key-1", **body: Any) -> Any:
    return told(fake, "POST", "/boxes", headers={"Idempotency-Key": key}, json=body or {"ttlSeconds": 900})


# -- life of a box


def test_a_created_box_starts_becomes_ready_and_is_listed(fake: FakeProvider) -> None:
    created = create(fake)
    box_id = created["box"]["id"]

    assert created["box"]["state"] == "provisioning"
    assert told(fake, "GET", f"/boxes/{box_id}")["box"]["state"] == "ready"
    assert [box["id"] for box in told(fake, "GET", "/boxes")["boxes"]] == [box_id]


def test_the_same_key_gives_the_same_box_and_another_body_is_refused(fake: FakeProvider) -> None:
    first, second = create(fake), create(fake)
    reused = ask(fake, "POST", "/boxes", headers={"Idempotency-Key": "key-1"}, json={"ttlSeconds": 901})

    assert first["box"]["id"] == second["box"]["id"]
    assert (reused.status, json.loads(reused.body)["code"]) == (409, "idempotency_key_reused")
    assert fake.boxes_of_key("key-1") == [first["box"]["id"]]
    assert len(fake.existing()) == 1


def test_a_key_is_forgotten_after_a_day(fake: FakeProvider) -> None:
    create(fake)
    fake.clock.advance(24 * 3600 + 1)
    create(fake)

    assert len(fake.boxes_of_key("key-1")) == 2


def test_a_stopped_box_bills_no_more_and_its_meter_stands_still(fake: FakeProvider) -> None:
    box = fake.add_box(age=1000)
    stopped = ask(fake, "POST", f"/boxes/{box.id}/stop")
    usage = told(fake, "GET", f"/boxes/{box.id}/usage")
    fake.clock.advance(1000)

    assert (stopped.status, json.loads(stopped.body)["box"]["state"]) == (202, "archiving")
    assert fake.billing() == []
    assert usage["dollars"] == usage["seconds"] / usage["secondsPerDollar"] == 0.01
    assert told(fake, "GET", f"/boxes/{box.id}/usage")["seconds"] == 1000
    assert told(fake, "GET", f"/boxes/{box.id}")["box"]["state"] == "archived"


def test_a_stop_can_take_its_time_and_can_come_undone(fake: FakeProvider) -> None:
    slow = fake.add_box(stop_takes=60)
    undone = fake.add_box(undo_stop_after=60)
    for box in (slow, undone):
        ask(fake, "POST", f"/boxes/{box.id}/stop")
    before = [box.state for box in fake.existing()]
    fake.clock.advance(61)

    assert before == ["archiving", "archiving"]
    assert [box.state for box in fake.existing()] == ["archived", "idle"]
    assert fake.billing() == [undone]


def test_a_stop_can_be_refused(fake: FakeProvider) -> None:
    box = fake.add_box(refuse_stop="stop_failed")

    assert ask(fake, "POST", f"/boxes/{box.id}/stop").status == 400
    assert (box.stops, fake.billing()) == (1, [box])


def test_a_box_is_archived_by_itself_when_its_time_is_up(fake: FakeProvider) -> None:
    box_id = create(fake, ttlSeconds=900)["box"]["id"]
    fake.clock.advance(600)
    told(fake, "PATCH", f"/boxes/{box_id}", json={"ttlSeconds": 900})
    fake.clock.advance(600)
    still_up = fake.existing()[0].state
    fake.clock.advance(600)

    assert (still_up, fake.existing()[0].state) == ("ready", "archived")


def test_a_deleted_box_is_gone_and_needs_a_confirmation(fake: FakeProvider) -> None:
    box = fake.add_box()

    assert ask(fake, "DELETE", f"/boxes/{box.id}").status == 409
    assert ask(fake, "DELETE", f"/boxes/{box.id}", headers={"X-Ascii-Confirm-Delete": box.id}).status == 202
    assert ask(fake, "GET", f"/boxes/{box.id}").status == 404
    assert fake.existing() == fake.billing() == []


def test_a_box_in_a_state_nobody_knows_bills(fake: FakeProvider) -> None:
    box = fake.add_box(state="hibernating")

    assert told(fake, "GET", f"/boxes/{box.id}")["box"]["state"] == "hibernating"
    assert fake.billing() == [box]


def test_it_lists_ten_thousand_boxes_page_by_page(fake: FakeProvider) -> None:
    fake.add_boxes(10_000, name="ours")
    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        query = {"limit": "200", **({"cursor": cursor} if cursor else {})}
        page = told(fake, "GET", "/boxes", params=query)
        seen += [box["id"] for box in page["boxes"]]
        cursor = page["pageInfo"]["nextCursor"]

    assert len(seen) == len(set(seen)) == 10_000
    assert fake.count("list") == 50


def test_it_filters_by_state(fake: FakeProvider) -> None:
    fake.add_box("bx_up", state="idle")
    fake.add_box("bx_down", state="archived")
    page = told(fake, "GET", "/boxes", params={"state": "ready,idle"})

    assert [box["id"] for box in page["boxes"]] == ["bx_up"]


def test_it_speaks_the_other_dialect(fake_boat: FakeProvider) -> None:
    created = told(fake_boat, "POST", "/sandboxes", json={})
    page = told(fake_boat, "GET", "/sandboxes")
    starting = fake_boat.add_box(state="provisioning")
    refused = told(fake_boat, "POST", f"/sandboxes/{starting.id}/commands", json={"command": "true"})

    assert created["type"] == "sandbox.created"
    assert page["sandboxes"][0]["id"] == created["sandbox"]["id"]
    assert refused["code"] == refused["error"]["code"] == "sandbox_starting"


def test_a_wrong_key_is_refused_and_does_nothing(fake: FakeProvider) -> None:
    answer = call("POST", f"{fake.url}/boxes", deadline_seconds=30, headers={"Authorization": "Bearer x"})

    assert (answer.status, fake.existing()) == (401, [])


# -- what goes wrong


def test_an_answer_can_be_lost_after_the_box_was_made(fake: FakeProvider) -> None:
    fake.next("POST /boxes", drop_after=True)
    with pytest.raises(TransportFailure):
        create(fake)

    assert (fake.count("create"), len(fake.existing())) == (1, 1)
    assert create(fake)["box"]["id"] == fake.existing()[0].id


def test_a_request_can_be_lost_before_anything_was_done(fake: FakeProvider) -> None:
    fake.next("create", drop_before=True, reset=True)
    with pytest.raises(TransportFailure):
        create(fake)

    assert (fake.count("create"), fake.existing()) == (1, [])


def test_an_error_can_come_instead_of_the_deed_or_after_it(fake: FakeProvider) -> None:
    fake.next("create", status=500, code="internal_error")
    fake.next("create", status=500, code="internal_error", after=True)

    assert [create(fake, key="a")["code"], create(fake, key="b")["code"]] == ["internal_error"] * 2
    assert (fake.boxes_of_key("a"), len(fake.boxes_of_key("b"))) == ([], 1)


def test_a_deed_can_be_done_twice(fake: FakeProvider) -> None:
    fake.next("create", twice=True)
    told(fake, "POST", "/boxes", json={})

    assert len(fake.existing()) == 2


def test_an_answer_can_come_twice(fake: FakeProvider) -> None:
    fake.add_box("bx_one")
    fake.add_box("bx_two")
    fake.next("get", answer_twice=True)

    assert [told(fake, "GET", f"/boxes/{box}")["box"]["id"] for box in ("bx_one", "bx_two")] == [
        "bx_one",
        "bx_two",
    ]


def test_a_call_can_be_held_before_and_after_it_acts(fake: FakeProvider) -> None:
    before, after = fake.hold("create"), fake.hold("create", after=True)
    seen = []
    for number, hold in enumerate((before, after)):
        thread = threading.Thread(target=create, args=(fake, f"key-{number}"))
        thread.start()
        with hold:
            hold.wait_until_arrived()
            seen.append(len(fake.existing()))
        thread.join()

    assert (seen, len(fake.existing())) == ([0, 2], 2)


def test_an_answer_can_be_late(fake: FakeProvider) -> None:
    fake.next("create", late=20)
    with pytest.raises(DeadlineExceeded):
        ask(fake, "POST", "/boxes", seconds=0.3)

    assert len(fake.existing()) == 1


def test_a_page_can_be_broken_in_many_ways(fake: FakeProvider) -> None:
    fake.add_boxes(5)
    second = told(fake, "GET", "/boxes", params={"limit": "2"})["pageInfo"]["nextCursor"]
    query = {"limit": "2", "cursor": second}
    fake.next("list", page=2, status=500)
    fake.next("list", page=2, status=410)
    fake.next("list", page=2, edit=lambda page: {**page, "boxes": []})
    fake.next("list", page=2, cut_json=0.5)
    fake.next("list", page=2, html=True)
    fake.next("list", page=2, cursor=second)
    first = told(fake, "GET", "/boxes", params={"limit": "2"})
    answers = [ask(fake, "GET", "/boxes", params=query) for _ in range(7)]

    assert len(first["boxes"]) == 2
    assert [answer.status for answer in answers] == [500, 410, 200, 200, 200, 200, 200]
    assert json.loads(answers[2].body)["boxes"] == []
    with pytest.raises(ValueError, match="char"):
        json.loads(answers[3].body)
    assert answers[4].headers["Content-Type"] == "text/html"
    assert json.loads(answers[5].body)["pageInfo"]["nextCursor"] == second
    assert json.loads(answers[6].body)["pageInfo"]["nextCursor"] not in (None, second)


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ({"half": 0.5}, TransportFailure),
        ({"drip": 1}, DeadlineExceeded),
        ({"drip": 1, "drip_head": True}, DeadlineExceeded),
    ],
)
def test_an_answer_can_end_early_or_drip(
    fake: FakeProvider, fault: dict[str, Any], failure: type[Exception]
) -> None:
    fake.next("list", **fault)

    with pytest.raises(failure):
        ask(fake, "GET", "/boxes", seconds=0.5)


def test_an_answer_can_be_huge_empty_or_a_redirect(fake: FakeProvider) -> None:
    fake.next("get", huge=10_000_000)
    fake.next("get", empty=True)
    fake.next("get", redirect="http://127.0.0.1:1/")
    url, headers = f"{fake.url}/boxes/bx_x", {"Authorization": f"Bearer {fake.key}"}
    huge, empty, redirect = (
        requests.get(url, headers=headers, timeout=30, allow_redirects=False) for _ in range(3)
    )

    assert (len(huge.content) > 10_000_000, empty.content) == (True, b"")
    assert (redirect.status_code, redirect.headers["Location"]) == (302, "http://127.0.0.1:1/")


def test_a_rate_limit_can_name_a_pause_or_not(fake: FakeProvider) -> None:
    fake.next("list", status=429, code="rate_limited", retry_after=120)
    fake.next("list", status=429, code="rate_limited")
    first, second = ask(fake, "GET", "/boxes"), ask(fake, "GET", "/boxes")

    assert (first.status, first.headers["Retry-After"]) == (429, "120")
    assert (second.status, second.headers.get("Retry-After")) == (429, None)


def test_a_fault_can_be_for_one_box_or_by_any_test(fake: FakeProvider) -> None:
    fake.add_box("bx_a")
    fake.add_box("bx_b")
    fake.always("get", box="bx_a", status=500)
    fake.next("patch", when=lambda request: request.json["name"] == "bad", status=400, code="invalid_name")
    renamed = [ask(fake, "PATCH", "/boxes/bx_b", json={"name": name}).status for name in ("good", "bad")]

    assert [ask(fake, "GET", f"/boxes/{box}").status for box in ("bx_a", "bx_b")] == [500, 200]
    assert (renamed, fake.boxes["bx_b"].name) == ([200, 400], "good")


def test_a_route_that_does_not_exist_cannot_be_faulted(fake: FakeProvider) -> None:
    with pytest.raises(ValueError, match="no route"):
        fake.next("POST /boxen", status=500)


def test_faults_are_forgotten_when_it_heals(fake: FakeProvider) -> None:
    fake.always("*", status=500)
    broken = ask(fake, "GET", "/boxes").status
    fake.heal()

    assert (broken, ask(fake, "GET", "/boxes").status, fake.unused_faults()) == (500, 200, [])


def test_the_date_header_is_the_providers_own_clock(fake: FakeProvider) -> None:
    fake.clock.freeze()
    fake.clock.advance(400 * 86_400)

    assert str(fake.clock.now().year) in ask(fake, "GET", "/me").headers["Date"]


def test_it_counts_and_remembers_every_request(fake: FakeProvider) -> None:
    box = fake.add_box()
    ask(fake, "POST", f"/boxes/{box.id}/stop", json={"force": True})
    ask(fake, "GET", "/boxes", params={"state": "ready"})

    (stop,) = fake.wait_for_calls("POST /boxes/{id}/stop")
    assert (stop.box_id, stop.json, stop.status) == (box.id, {"force": True}, 202)
    assert fake.calls("list")[0].query == {"state": "ready"}
    assert (fake.count(), fake.count("stop", "bx_other")) == (2, 0)


# -- commands


def test_commands_are_answered_by_the_test(fake: FakeProvider) -> None:
    box = fake.add_box()
    fake.on_command(lambda box, command: (3, f"{box.id} {command}"))
    answer = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "whoami", "timeoutSeconds": 5})

    assert (answer["exitCode"], answer["stdout"], answer["success"]) == (3, f"{box.id} whoami", False)


def test_a_detached_command_runs_until_the_test_ends_it(fake: FakeProvider) -> None:
    box = fake.add_box()
    started = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "sleep 9", "detached": True})
    path = f"/boxes/{box.id}/commands/{started['processId']}"
    before = told(fake, "GET", path)
    process = fake.processes[box.id, started["processId"]]
    process.status, process.exit_code, process.stdout = "exited", 4, "the end"
    after = told(fake, "GET", path, params={"tailBytes": "3"})

    assert (before["running"], before["status"]) == (True, "running")
    assert (after["exitCode"], after["stdout"], after["stdoutTruncated"]) == (4, "end", True)


def test_commands_really_run_in_a_folder_of_the_box(fake: FakeProvider) -> None:
    fake.execute_commands()
    box, other = fake.add_box(env={"COLOUR": "blue"}), fake.add_box()
    script = "echo $COLOUR > file; cat file; echo bad >&2; exit 7"
    answer = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": script})
    elsewhere = told(fake, "POST", f"/boxes/{other.id}/commands", json={"command": "ls"})

    assert (answer["exitCode"], answer["stdout"], answer["stderr"]) == (7, "blue\n", "bad\n")
    assert elsewhere["stdout"] == ""


def test_a_command_ends_with_its_shell_or_at_its_timeout(fake: FakeProvider) -> None:
    fake.execute_commands()
    box = fake.add_box()
    child = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "sleep 600 & echo gone"})
    late = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "sleep 600", "timeoutSeconds": 1})

    assert (child["stdout"], child["timedOut"]) == ("gone\n", False)
    assert (late["exitCode"], late["timedOut"]) == (143, True)


def test_stopping_a_box_kills_what_it_runs(fake: FakeProvider) -> None:
    fake.execute_commands()
    box = fake.add_box()
    script = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; sleep 600' & sleep 600"
    started = told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": script, "detached": True})
    told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "until [ -s pid ]; do sleep 0.02; done"})
    ask(fake, "POST", f"/boxes/{box.id}/stop")
    box.state = "ready"

    assert told(fake, "GET", f"/boxes/{box.id}/commands/{started['processId']}")["exitCode"] == 137
    script = "grep -s State /proc/$(cat pid)/status | grep -v zombie"
    assert told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": script})["stdout"] == ""


@pytest.mark.parametrize(
    ("state", "code"), [("provisioning", "box_starting"), ("archived", "machine_not_running")]
)
def test_a_box_that_is_not_up_takes_no_command(fake: FakeProvider, state: str, code: str) -> None:
    box = fake.add_box(state=state)

    assert told(fake, "POST", f"/boxes/{box.id}/commands", json={"command": "true"})["code"] == code
