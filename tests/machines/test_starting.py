"""Starting a delegation: what can be known to be wrong is refused before there is a job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from accounts.models import User
from base.errors import CodedError
from tests.machines.conftest import ROOT, Wire, paired
from work.channel import limits
from work.delegations import start_delegation
from work.machines import revoke_machine
from work.models import Job, MachineRequest

pytestmark = pytest.mark.django_db(transaction=True)

Answer = Callable[[dict[str, Any]], dict[str, Any] | None]


class Answering:
    """A machine that answers what it is asked, in a thread, until it is told to stop."""

    def __init__(self, wire: Wire, answer: Answer) -> None:
        self.wire, self.answer, self.asked = wire, answer, []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for frame in self.wire.poll(wait=1):
                self.wire.heard = frame["seq"]
                self.asked.append(frame)
                told = self.answer(frame)
                if told is not None:
                    self.wire.tell("answer", request=frame["body"]["request"], answer=told)
        connections.close_all()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)


@pytest.fixture
def wire(owner: User) -> Wire:
    wire = paired(owner)
    wire.connect()
    return wire


@pytest.fixture
def answering(wire: Wire) -> Iterator[Callable[[Answer], Answering]]:
    started: list[Answering] = []

    def start(answer: Answer) -> Answering:
        started.append(Answering(wire, answer))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def start(wire: Wire, **changes: Any) -> Job:
    wanted = {
        "machine_id": wire.machine.pk,
        "agent_id": "echo",
        "prompt": "mend it",
        "cwd": f"{ROOT}/site",
    } | changes
    return start_delegation(wire.machine.user, **wanted)


def refused(wire: Wire, **changes: Any) -> str:
    with pytest.raises(CodedError) as error:
        start(wire, **changes)
    assert not Job.objects.exists()
    return error.value.code


def test_it_asks_the_machine_and_makes_the_job(wire: Wire, answering: Any) -> None:
    machine = answering(lambda frame: {"allowed": True})

    job = start(wire, timeout_ms=5000)

    assert machine.asked[0]["body"] | {"request": ""} == {
        "request": "", "agent_id": "echo", "cwd": f"{ROOT}/site", "tier": "curated",
    }  # fmt: skip
    assert (job.status, job.delegation["prompt"], job.budget_snapshot["wall_clock_ms"]) == (
        "queued",
        "mend it",
        5000,
    )
    assert job.authority_snapshot["roots"] == [ROOT]
    assert job.goal == f"Delegate to echo on {wire.machine.name}: mend it"


@pytest.mark.parametrize("code", ["cwd_not_allowed", "agent_not_available"])
def test_what_only_the_machine_can_see_is_refused_by_it(wire: Wire, answering: Any, code: str) -> None:
    answering(lambda frame: {"allowed": False, "code": code})

    assert refused(wire) == code


def test_a_machine_that_does_not_answer_in_time_is_named(wire: Wire, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "CHECK_SECONDS", 0.05)

    assert refused(wire) == "machine_timeout"
    assert MachineRequest.objects.get().answer is None


def test_another_machine_cannot_answer(wire: Wire, owner: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "CHECK_SECONDS", 0.05)
    refused(wire)
    other = paired(owner)
    other.connect()

    other.tell("answer", request=str(MachineRequest.objects.get().pk), answer={"allowed": True})

    assert MachineRequest.objects.get().answer is None


@pytest.mark.parametrize(
    "cwd",
    [
        f"{ROOT}/../etc", f"{ROOT}/./a", f"{ROOT}-evil", f"{ROOT}evil/a", "/srv", "/", "srv/work", f"/{ROOT}", f"{ROOT}//a",
        "/SRV/work", "~",
    ],
)  # fmt: skip
def test_a_folder_outside_the_roots_is_refused_without_asking(wire: Wire, cwd: str) -> None:
    assert refused(wire, cwd=cwd) == "cwd_not_allowed"
    assert not MachineRequest.objects.exists()


def test_a_windows_machine_is_compared_without_case(owner: User) -> None:
    wire = paired(owner, platform="windows", roots=[r"C:\Work"])
    wire.connect()

    for cwd in (r"C:\Workshop", r"c:\work\..\secret", r"D:\Work"):
        assert refused(wire, cwd=cwd) == "cwd_not_allowed"
    machine = Answering(wire, lambda frame: {"allowed": True})
    try:
        assert start(wire, cwd=r"c:\WORK\site").status == "queued"
    finally:
        machine.stop()


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"prompt": ""}, "invalid_delegation_request"),
        ({"prompt": " \n"}, "invalid_delegation_request"),
        ({"prompt": "x" * 8001}, "invalid_delegation_request"),
        ({"prompt": "a\0b"}, "invalid_delegation_request"),
        ({"prompt": 5}, "invalid_delegation_request"),
        ({"cwd": ""}, "invalid_delegation_request"),
        ({"cwd": "/srv/work/" + "x" * 500}, "invalid_delegation_request"),
        ({"agent_id": ""}, "invalid_delegation_request"),
        ({"timeout_ms": 0}, "invalid_delegation_request"),
        ({"timeout_ms": 3_600_001}, "invalid_delegation_request"),
        ({"timeout_ms": True}, "invalid_delegation_request"),
        ({"agent_id": "gemini"}, "agent_not_available"),
    ],
)
def test_it_is_refused_with_its_code(wire: Wire, wrong: dict[str, Any], code: str) -> None:
    assert refused(wire, **wrong) == code


def test_a_machine_that_only_probes_runs_nothing(owner: User) -> None:
    wire = paired(owner, tier="probe")
    wire.connect()

    assert refused(wire) == "agent_not_available"


def test_another_owners_machine_and_conversation_are_as_none(wire: Wire, stranger: User) -> None:
    from uuid import uuid4

    from conversations.services import ensure_conversation

    foreign = paired(stranger)
    foreign.connect()
    assert refused(wire, machine_id=foreign.machine.pk) == "machine_not_found"
    assert refused(wire, machine_id=uuid4()) == "machine_not_found"
    assert refused(wire, conversation_id=ensure_conversation(stranger).pk) == "conversation_not_found"


def test_a_machine_that_is_not_there_is_refused(owner: User) -> None:
    assert refused(paired(owner)) == "machine_offline"


def test_a_revoked_machine_is_refused(wire: Wire) -> None:
    revoke_machine(wire.machine)

    assert refused(wire) == "machine_revoked"


def test_switched_off_nothing_is_delegated(wire: Wire, settings: Any) -> None:
    settings.MACHINES = {"enabled": False}

    assert refused(wire) == "computer_controller_disabled"


def test_a_probe_is_asked_for_and_kept(wire: Wire, answering: Any, api_of: Any) -> None:
    answering(lambda frame: {"agents": [{"id": "new", "name": "New"}]})

    answer = api_of(wire.machine.user).post(f"/api/v1/machines/{wire.machine.pk}/probe")

    assert answer.json()["agents"] == [{"id": "new", "name": "New"}]
