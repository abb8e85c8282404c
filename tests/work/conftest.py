"""Jobs without a model: conversations, machines and delegations as their owners make them."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from accounts.models import User
from accounts.services import upsert_github_user
from base.leases import live_workers
from conversations.models import Conversation
from conversations.services import ensure_conversation, get_conversation_owner
from tests.fakes.fixtures import fake, provider
from tests.waiting import eventually
from tests.work.driven import Settings
from work.deep_work import loop
from work.machines import approve_pairing, start_pairing
from work.models import Job, Machine
from work.services import claim_for_run, create_job, recover_interrupted_jobs, request_job_step

__all__ = ["fake", "provider"]

GOAL = "Delegate to claude on devin-test: refactor the input bar"
ROOT = "/tmp/openagents-work"
_github_ids = itertools.count(10_000)

JobOf = Callable[..., Job]


def new_user(login: str) -> User:
    return upsert_github_user(github_id=next(_github_ids), github_login=login)


def machine_for(user: User, key: str) -> Machine:
    pairing = start_pairing(
        name=f"devin-test-{key}", tier="curated", platform="linux-x64", agent_version="0.1.0", roots=[ROOT]
    )
    return approve_pairing(user, pairing.code)


def delegation_attributes(conversation: Conversation, machine: Machine, goal: str) -> dict[str, Any]:
    return {
        "conversation_id": conversation.id,
        "owner_visitor_id": conversation.visitor_id,
        "machine_id": machine.id,
        "surface": "text",
        "goal": goal,
        "kind": "delegation",
        "delegation": {
            "agent_id": "claude",
            "machine_id": str(machine.id),
            "machine_name": machine.name,
            "prompt": "do work",
            "cwd": ROOT,
            "timeout_ms": 3_600_000,
        },
        "authority_snapshot": {
            "machine_tier": machine.tier,
            "roots": machine.roots,
            "cwd": ROOT,
            "agent_id": "claude",
            "machine_name": machine.name,
        },
        "budget_snapshot": {
            "wall_clock_ms": 3_600_000,
            "maximum_prompt_bytes": 8_000,
            "maximum_report_bytes": 8_000,
        },
    }


@pytest.fixture
def conversation(db: None) -> Conversation:
    return ensure_conversation(f"work-{uuid.uuid4()}")


@pytest.fixture
def make_job(conversation: Conversation) -> JobOf:
    """`make_job(goal)` is a queued job of the test's conversation, an anonymous visitor's."""

    def make(goal: str = "summarize the plan", **keywords: Any) -> Job:
        owner = get_conversation_owner(conversation)
        return create_job(conversation_id=conversation.id, owner_visitor_id=owner.id, goal=goal, **keywords)

    return make


@pytest.fixture
def make_delegation(db: None) -> JobOf:
    """`make_delegation(key)` is a queued delegation of a new user to a new machine, `devin-test-<key>`."""

    def make(key: str, goal: str = GOAL) -> Job:
        user = new_user(key)
        conversation = ensure_conversation(user)
        return create_job(**delegation_attributes(conversation, machine_for(user, key), goal))

    return make


@pytest.fixture
def running(make_job: JobOf) -> Job:
    """A job that the test has claimed."""
    return claim_for_run(make_job().pk)


@pytest.fixture
def request_step(running: Job) -> Callable[..., Any]:
    """`request_step(call_id)` commits a call of `recall_messages` on the running job."""

    def request(call_id: str = "call-1", tool: str = "recall_messages", **keywords: Any) -> Any:
        return request_job_step(
            running.pk, running.generation, provider_call_id=call_id, tool_name=tool, **keywords
        )

    return request


def outcome_of(step: Any, status: str = "succeeded", **changes: Any) -> dict[str, Any]:
    """The outcome of this step."""
    outcome: dict[str, Any] = {
        "call_id": step.provider_call_id,
        "tool_name": step.tool_name,
        "status": status,
        "executor": {"id": "host", "disclosure": {"where": "server"}},
        "target_receipt_refs": [],
        "attribution_refs": [],
    }
    outcome |= {"result": {"matches": []}} if status == "succeeded" else {"error": {"code": "tool_failed"}}
    return outcome | changes


def in_thread(work: Callable[[], Any]) -> Callable[[], None]:
    """`work` for a thread of its own, which closes its connections."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    return run


def found_interrupted() -> int:
    """How many jobs are found interrupted, once the database has noticed that their killed worker is gone."""
    eventually(lambda: live_workers() == [])
    return recover_interrupted_jobs().found


def raced(*racers: Callable[[], Any]) -> list[Any]:
    """What the racers answer or raise, let loose at once on connections of their own."""
    barrier = threading.Barrier(len(racers))
    answers: list[Any] = [None] * len(racers)

    def race(index: int, racer: Callable[[], Any]) -> None:
        try:
            barrier.wait(60)
            answers[index] = racer()
        except Exception as error:
            answers[index] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=pair) for pair in enumerate(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


DEAD_WORKER = 2_000_000_001
"""The number of a worker that does not live."""


@pytest.fixture
def work(settings: Any) -> Settings:
    """`work(wall_clock_ms=1)` changes settings of jobs for this test."""

    def change(**values: Any) -> None:
        settings.WORK = settings.WORK | values

    return change


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr(loop, "AGAIN", loop.Backoff(first=loop.timedelta(0), cap=loop.timedelta(0)))
