"""A machine that speaks the channel by hand, and owners with their machines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.response import Response
from rest_framework.test import APIClient

from accounts.models import User
from base.pump import Holder, run_once
from conversations.services import ensure_conversation
from work.delegations.driver import DelegationDriver
from work.machines import approve_pairing, claim_pairing, start_pairing
from work.models import Job, Machine
from work.services import create_job, get_job

ROOT = "/srv/work"
AGENTS = [{"id": "echo", "name": "Echo"}, {"id": "claude"}]
_names = itertools.count(1)


class Wire:
    """A machine on its channel, one request at a time."""

    def __init__(self, machine: Machine, token: str) -> None:
        self.machine, self.token = machine, token
        self.client = APIClient()
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        self.epoch = self.heard = self.told = 0

    def connect(self, **changes: Any) -> Response:
        hello = {
            "protocol": 1,
            "agent_version": "0.1.0",
            "heard": self.heard,
            "oldest": self.told + 1,
            "delegations": [],
            "probe": {"agents": AGENTS, "system": "test"},
        } | changes
        answer = self.client.post("/machine/v1/connect", hello)
        if answer.status_code == 200:
            self.epoch, self.told = answer.data["epoch"], answer.data["received"]
        return answer

    def poll(self, wait: int = 0, **changes: Any) -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = self.polled(wait, **changes).json()["frames"]
        return frames

    def polled(self, wait: int = 0, **changes: Any) -> Response:
        return self.client.get(
            "/machine/v1/poll", {"epoch": self.epoch, "heard": self.heard, "wait": wait} | changes
        )

    def hear(self) -> list[dict[str, Any]]:
        """What there is, and it is kept."""
        frames = self.poll()
        self.heard = max([self.heard, *(frame["seq"] for frame in frames)])
        return frames

    def tell(self, kind: str, **body: Any) -> Response:
        """One frame with the next number."""
        answer = self.send({"seq": self.told + 1, "kind": kind, "body": body})
        if answer.status_code == 200:
            self.told += 1
        return answer

    def send(self, *frames: Any) -> Response:
        body = json.dumps({"epoch": self.epoch, "frames": list(frames)})
        return self.client.post("/machine/v1/frames", body, content_type="application/json")


WireOf = Callable[..., Wire]


def paired(user: User, **changes: Any) -> Wire:
    description = {
        "name": f"laptop-{next(_names)}",
        "tier": "curated",
        "platform": "linux-x86_64",
        "agent_version": "0.1.0",
        "roots": [ROOT],
    }
    pairing = start_pairing(**(description | changes))
    machine = approve_pairing(user, pairing.code)
    return Wire(machine, claim_pairing(pairing.id, pairing.poll_secret).token)


@pytest.fixture
def wire(owner: User) -> Wire:
    """The owner's machine, paired and not connected."""
    return paired(owner)


@pytest.fixture
def connected(wire: Wire) -> Wire:
    """The owner's machine, connected."""
    wire.connect()
    return wire


def delegate(wire: Wire, **changes: Any) -> Job:
    """A delegation to the machine as the ledger takes it; nobody was asked."""
    machine, user = wire.machine, wire.machine.user
    conversation = ensure_conversation(user)
    agreed = {"agent_id": "echo", "cwd": f"{ROOT}/site", "machine_name": machine.name}
    wanted = {"prompt": "mend the input bar", "timeout_ms": 60_000} | changes
    return create_job(
        conversation_id=conversation.id,
        owner_visitor_id=conversation.visitor_id,
        goal="mend the input bar",
        kind="delegation",
        machine_id=machine.id,
        delegation={**agreed, **wanted, "machine_id": str(machine.id)},
        authority_snapshot={**agreed, "machine_tier": machine.tier, "roots": machine.roots},
        budget_snapshot={
            "wall_clock_ms": wanted["timeout_ms"],
            "maximum_prompt_bytes": 8_000,
            "maximum_report_bytes": 8_000,
        },
    )


def drive(job: Job | None = None) -> Job | None:
    """Everything that is due now, once; the job as it is then."""
    run_once([DelegationDriver()], Holder())
    return get_job(job.pk) if job else None


def due_now(job: Job) -> None:
    """As if the time that the job waits for had come."""
    from base.sql import ClockTimestamp

    Job.objects.filter(pk=job.pk, next_step_at__isnull=False).update(next_step_at=ClockTimestamp())


def some_id() -> str:
    return str(uuid4())
