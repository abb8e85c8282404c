"""The channel of a machine: who is let in, and that nothing is lost, doubled or out of order in either direction."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.db import connections, transaction
from rest_framework.test import APIClient

from accounts.models import User
from tests.conftest import ApiOf
from tests.machines.conftest import AGENTS, Wire, delegate, drive, paired, some_id
from work.channel import sending
from work.machines import revoke_machine
from work.models import Delegation, Machine, MachineChannel, MachineFrame
from work.services import get_job

pytestmark = pytest.mark.django_db
ADDRESSES = ("connect", "frames", "disconnect", "unpair")


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer smct_wrong", "Bearer a b", "Basic eDp5", "smct_x"]
)
def test_nobody_is_let_in_without_the_token_of_a_machine(wire: Wire, header: str | None) -> None:
    client = APIClient()
    if header:
        client.credentials(HTTP_AUTHORIZATION=header)

    for address in ADDRESSES:
        assert refusal(client.post(f"/machine/v1/{address}", {})) == (401, "machine_not_found")
    assert refusal(client.get("/machine/v1/poll")) == (401, "machine_not_found")


def test_a_token_of_a_user_is_none_of_a_machine_and_the_other_way_round(
    wire: Wire, owner: User, api_of: ApiOf
) -> None:
    assert refusal(api_of(owner).post("/machine/v1/connect", {})) == (401, "machine_not_found")
    for address in ("/api/v1/machines", "/api/v1/pairings/approve"):
        answer = (
            wire.client.get(address)
            if address.endswith("machines")
            else wire.client.post(address, {"code": "x"})
        )
        assert refusal(answer) == (401, "invalid_api_token")


def test_a_signed_in_session_is_not_let_in(owner: User) -> None:
    client = APIClient()
    client.force_login(owner)

    assert refusal(client.get("/machine/v1/poll")) == (401, "machine_not_found")


def test_a_revoked_machine_is_refused_everywhere(connected: Wire) -> None:
    revoke_machine(connected.machine)

    for address in ADDRESSES:
        assert refusal(connected.client.post(f"/machine/v1/{address}", {})) == (401, "machine_revoked")
    assert refusal(connected.polled()) == (401, "machine_revoked")


def test_switched_off_no_machine_is_let_in(wire: Wire, settings: Any) -> None:
    settings.MACHINES = {"enabled": False}

    assert refusal(wire.connect()) == (403, "computer_controller_disabled")


def test_connecting_notes_what_the_machine_says_of_itself(wire: Wire) -> None:
    answer = wire.connect(agent_version="0.2.0").json()

    assert (answer["epoch"], answer["received"], answer["frame_bytes"]) == (1, 0, 65_536)
    machine = Machine.objects.get(pk=wire.machine.pk)
    assert (machine.agent_version, machine.last_probe["agents"][0]) == ("0.2.0", AGENTS[0])
    assert machine.last_seen_at is not None


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"protocol": 2}, 409, "protocol_unsupported"),
        ({"protocol": None}, 422, "invalid_frame"),
        ({"heard": -1}, 422, "invalid_frame"),
        ({"heard": True}, 422, "invalid_frame"),
        ({"oldest": 0}, 422, "invalid_frame"),
        ({"delegations": "x"}, 422, "invalid_frame"),
        ({"delegations": [{"job": "x", "attempt": 1}]}, 422, "invalid_frame"),
        ({"probe": None}, 422, "invalid_frame"),
        ({"probe": {"agents": [{"id": "x" * 65}]}}, 422, "invalid_frame"),
        ({"probe": {"agents": [{"id": "a\0"}]}}, 422, "invalid_frame"),
    ],
)
def test_a_bad_hello_is_refused_and_changes_nothing(
    wire: Wire, change: dict[str, Any], status: int, code: str
) -> None:
    assert refusal(wire.connect(**change)) == (status, code)
    assert not MachineChannel.objects.filter(epoch__gt=0).exists()


def test_a_new_connection_ends_the_older_one(connected: Wire) -> None:
    older = connected.epoch
    connected.connect()

    assert refusal(connected.polled(epoch=older)) == (409, "channel_superseded")
    assert refusal(
        connected.client.post(
            "/machine/v1/frames", {"epoch": older, "frames": [{"seq": 1, "kind": "probe", "body": {}}]}
        )
    ) == (409, "channel_superseded")
    connected.client.post("/machine/v1/disconnect", {"epoch": older})
    assert MachineChannel.objects.get().closed_at is None


def test_what_is_told_to_a_machine_comes_again_until_it_says_that_it_heard(connected: Wire) -> None:
    for n in range(3):
        sending.enqueue(connected.machine.pk, "test", {"n": n})

    first = connected.poll()
    assert [(frame["seq"], frame["body"]["n"]) for frame in first] == [(1, 0), (2, 1), (3, 2)]
    assert connected.poll() == first
    connected.connect()
    assert connected.poll() == first
    connected.heard = 2
    assert [frame["seq"] for frame in connected.poll()] == [3]
    connected.heard = 3
    assert connected.poll() == []
    assert not MachineFrame.objects.exists()


def test_numbers_go_on_where_the_server_has_forgotten_them(connected: Wire) -> None:
    sending.enqueue(connected.machine.pk, "test", {"n": 1})
    connected.poll()
    connected.heard = 40  # as after a restored backup of the server
    connected.connect()

    assert [frame["seq"] for frame in connected.poll()] == [41]


def test_numbers_go_on_where_the_machine_has_forgotten_them(connected: Wire) -> None:
    for _ in range(5):
        connected.tell("probe", agents=AGENTS)

    assert connected.connect(oldest=1).json()["received"] == 5
    assert connected.connect(oldest=100).json()["received"] == 99


def test_a_frame_counts_once_however_often_it_comes(connected: Wire) -> None:
    job = drive_to_machine(connected)
    connected.tell("accepted", job=job, attempt=1)
    frame = {"seq": 2, "kind": "progress", "body": {"job": job, "attempt": 1, "text": "once "}}

    answers = [
        connected.send(frame).json(),
        connected.send(frame, frame).json(),
        connected.send(frame).json(),
    ]

    assert [answer["received"] for answer in answers] == [2, 2, 2]
    assert get_job(job).report == "once "


def test_a_gap_is_refused_and_what_came_before_it_stands(connected: Wire) -> None:
    frames = [{"seq": seq, "kind": "probe", "body": {"agents": AGENTS}} for seq in (1, 2, 4)]

    assert refusal(connected.send(*frames)) == (409, "frame_gap")
    assert connected.connect().json()["received"] == 2


def test_a_frame_that_cannot_be_used_stops_nothing_behind_it(connected: Wire) -> None:
    job = drive_to_machine(connected)
    frames = [
        {"seq": 1, "kind": "nonsense", "body": {}},
        {"seq": 2, "kind": "progress", "body": {"job": "x"}},
        {"seq": 3, "kind": "progress", "body": None},
        {"seq": 4, "kind": "result", "body": {"job": some_id(), "attempt": 1, "status": "completed"}},
        {"seq": 5, "kind": "progress", "body": {"job": job, "attempt": 1, "text": "still here"}},
    ]

    answer = connected.send(*frames).json()

    assert answer["received"] == 5
    assert [(refused["seq"], refused["code"]) for refused in answer["refused"]] == [
        (1, "invalid_frame"),
        (2, "invalid_frame"),
        (3, "invalid_frame"),
        (4, "delegation_not_found"),
    ]
    assert get_job(job).report == "still here"


def test_a_failure_of_ours_with_one_frame_stops_nothing_behind_it(connected: Wire, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        "work.channel.receiving.HANDLERS", {"bad": lambda *_: 1 // 0, "good": lambda *_: None}
    )

    answer = connected.send(
        {"seq": 1, "kind": "bad", "body": {}}, {"seq": 2, "kind": "good", "body": {}}
    ).json()

    assert answer == {"received": 2, "refused": [{"seq": 1, "code": "frame_failed"}]}


@pytest.mark.parametrize(
    "frames",
    [
        "x",
        [5],
        [{"kind": "probe"}],
        [{"seq": 0, "kind": "probe"}],
        [{"seq": True, "kind": "probe"}],
        [{"seq": 1}],
        [{"seq": 2**63, "kind": "probe"}],
        [{"seq": n, "kind": "probe"} for n in range(1, 40)],
    ],
)
def test_what_is_no_frame_is_refused(connected: Wire, frames: Any) -> None:
    answer = connected.client.post("/machine/v1/frames", {"epoch": connected.epoch, "frames": frames})

    assert refusal(answer) == (422, "invalid_frame")


def test_a_frame_has_at_most_65536_bytes(connected: Wire) -> None:
    frame = {"seq": 1, "kind": "probe", "body": {"agents": [], "system": ""}}
    room = 65_536 - len(json.dumps(frame).encode())

    frame["body"] = {"agents": [], "system": "x" * (room + 1)}
    assert refusal(connected.send(frame)) == (413, "frame_too_large")
    frame["body"] = {"agents": [], "system": "x" * room}
    assert connected.send(frame).json()["received"] == 1


def test_a_request_has_at_most_half_a_mebibyte(connected: Wire) -> None:
    answer = connected.client.post(
        "/machine/v1/frames", {"epoch": connected.epoch, "frames": [], "x": "x" * 524_288}
    )

    assert refusal(answer) == (413, "frame_too_large")


def test_a_machine_asks_120_times_a_minute(connected: Wire) -> None:
    answers = [connected.polled().status_code for _ in range(121)]

    assert answers == [200] * 120 + [429]
    assert connected.polled()["Retry-After"].isdigit()


@pytest.mark.parametrize("query", [{"epoch": "x"}, {"heard": "-1"}, {"wait": "26"}])
def test_a_bad_poll_is_refused(connected: Wire, query: dict[str, str]) -> None:
    assert refusal(connected.polled(**query)) == (422, "invalid_request")


def test_a_machine_gives_its_token_back(connected: Wire) -> None:
    assert connected.client.post("/machine/v1/unpair", {}).status_code == 204

    assert refusal(connected.polled()) == (401, "machine_revoked")


def test_a_machine_hears_and_acts_on_its_own_delegations_only(
    connected: Wire, owner: User, stranger: User
) -> None:
    job = drive_to_machine(connected)
    other, foreign = paired(owner), paired(stranger)

    for wire in (other, foreign):
        wire.connect()
        assert wire.poll() == []
        for kind in ("accepted", "session", "progress", "permission", "result"):
            body = {
                "job": job,
                "attempt": 1,
                "session_id": "s",
                "text": "x",
                "decision": "allowed",
                "status": "completed",
            }
            assert wire.tell(kind, **body).json()["refused"][0]["code"] == "delegation_not_found"

    assert get_job(job).status == "running"
    assert Delegation.objects.get().accepted_at is None


@pytest.mark.django_db(transaction=True)
def test_a_waiting_poll_is_woken_by_what_there_is_to_tell(owner: User) -> None:
    wire = paired(owner)
    wire.connect()
    heard: list[Any] = []
    thread = threading.Thread(target=lambda: (heard.append(wire.poll(wait=25)), connections.close_all()))
    thread.start()

    with transaction.atomic():
        sending.enqueue(wire.machine.pk, "test", {"n": 1})
    thread.join(60)

    assert [frame["kind"] for frame in heard[0]] == ["test"]


@pytest.mark.django_db(transaction=True)
def test_a_waiting_poll_ends_when_the_machine_is_revoked(owner: User) -> None:
    wire = paired(owner)
    wire.connect()
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: (answers.append(wire.polled(wait=25)), connections.close_all()))
    thread.start()

    revoke_machine(wire.machine)
    thread.join(60)

    assert refusal(answers[0]) == (401, "machine_revoked")


@pytest.mark.django_db(transaction=True)
def test_frames_that_come_at_once_on_two_requests_count_once(owner: User) -> None:
    from tests.work.conftest import raced

    wire = paired(owner)
    wire.connect()
    job = drive_to_machine(wire)
    frames = [
        {"seq": n, "kind": "progress", "body": {"job": job, "attempt": 1, "text": f"{n} "}}
        for n in range(1, 9)
    ]

    answers = raced(*[lambda: wire.send(*frames).json() for _ in range(4)])

    assert [answer["received"] for answer in answers] == [8] * 4
    assert get_job(job).report == "1 2 3 4 5 6 7 8 "


def test_the_token_and_the_prompt_are_in_no_log(
    connected: Wire, owner: User, capfd: Any, caplog: Any
) -> None:
    job = delegate(connected, prompt="the-secret-prompt")
    drive(job)
    connected.hear()
    connected.tell("progress", job=str(job.pk), attempt=1, text="the-agents-words")
    connected.tell("result", job=str(job.pk), attempt=1, status="completed", prose="the-agents-words")
    connected.tell("nonsense", text="the-agents-words")

    logged = caplog.text + "".join(capfd.readouterr())

    assert "job_finished" in logged
    for hidden in (connected.token, "the-secret-prompt", "the-agents-words"):
        assert hidden not in logged


def drive_to_machine(wire: Wire) -> str:
    """A delegation that was offered; its id."""
    job = delegate(wire)
    drive(job)
    return str(job.pk)
