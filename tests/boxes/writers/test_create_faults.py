"""A process that dies between any two steps of a creation: the next step finds the row and goes on, with one box."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from base import faults
from base.faults import FaultRaised
from boxes import creation, services
from boxes.models import Box
from boxes.provisioning import calls
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.boxes.writers.driving import drive, pass_time, run_driver
from tests.fakes.provider import FakeProvider

CHECKOUT = Path(__file__).resolve().parents[3]
POINTS = [creation.RESERVED, calls.CALLED, creation.BOUND, calls.NAMED, creation.MARKED]


def assert_repaired(provider: FakeProvider) -> None:
    """One box at the provider, bound, named, ready, and held by nobody."""
    (made,) = provider.existing()
    row = Box.objects.get()
    assert (row.box_id, row.state, made.name) == (made.id, "ready", services.provider_ownership_marker())
    assert row.marked_at is not None
    assert row.next_provision_at is None
    assert row.lease_expires_at is None


@pytest.mark.django_db
@pytest.mark.parametrize("point", POINTS)
def test_a_creation_that_breaks_off_is_finished_by_the_worker(
    point: str, conversation: Conversation, provider: FakeProvider
) -> None:
    with faults.armed(point, "raise"), pytest.raises(FaultRaised):
        services.create_box(conversation.id)
    pass_time(61)
    drive()

    assert_repaired(provider)


@pytest.mark.django_db
@pytest.mark.parametrize("point", POINTS)
def test_nobody_takes_up_a_creation_while_its_lease_may_be_alive(
    point: str, conversation: Conversation, provider: FakeProvider
) -> None:
    with faults.armed(point, "raise"), pytest.raises(FaultRaised):
        services.create_box(conversation.id)
    asked = provider.count()
    pass_time(50)

    assert run_driver().claimed == 0
    assert provider.count() == asked


@pytest.mark.django_db
@pytest.mark.parametrize("point", [calls.CALLED, calls.NAMED])
def test_a_step_of_the_worker_that_breaks_off_is_done_again(
    point: str, conversation: Conversation, provider: FakeProvider
) -> None:
    with faults.armed(creation.RESERVED, "raise"), pytest.raises(FaultRaised):
        services.create_box(conversation.id)
    pass_time(61)
    with faults.armed(point, "raise"):
        drive()
        pass_time(10)
        drive()
    pass_time(60)
    drive()

    assert_repaired(provider)


@pytest.mark.django_db
def test_an_attempt_without_an_outcome_counts_as_unknown(
    conversation: Conversation, provider: FakeProvider
) -> None:
    with faults.armed(creation.RESERVED, "raise"), pytest.raises(FaultRaised):
        services.create_box(conversation.id)
    provider.next("create", status=402, code="billing_required")
    pass_time(61)
    drive()

    row = Box.objects.get()  # the refusal says nothing of the attempt before it
    assert (row.create_unknown, row.stopped_at, row.create_error) == (True, None, "box_billing_required")


def create_in_a_process(conversation_id: Any, provider: FakeProvider, point: str) -> int:
    """Create a box in a process that dies at `point` as by kill -9; its exit status."""
    database = connection.settings_dict
    url = f"postgres://{database['USER']}:{database['PASSWORD']}@/{database['NAME']}?host={database['HOST']}&port={database['PORT']}"
    code = (
        "import django; django.setup()\n"
        "from boxes import services\n"
        f"services.create_box('{conversation_id}')\n"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "DATABASE_URL": url,
        "BOX_API_BASE_URL": provider.url,
        "BOX_API_KEY": provider.key,
        "FAULT_POINTS": f"{point}=kill",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=environment, capture_output=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return done.returncode


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_leaves_a_row_that_the_worker_finishes(
    point: str, owner: User, provider: FakeProvider
) -> None:
    create_in_a_process(ensure_conversation(owner).id, provider, point)
    assert Box.objects.count() == 1  # what is at the provider has a row, whatever was lost
    pass_time(61)
    drive()

    assert_repaired(provider)
