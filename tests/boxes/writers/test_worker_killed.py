"""A worker that is killed in the middle of creating: the next one goes on at once, with the same boxes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import User
from boxes import fanout, services
from boxes.models import Box
from boxes.provisioning import calls
from conversations.services import ensure_conversation
from tests.fakes.provider import FakeProvider
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]
CHECKOUT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 60


@contextmanager
def worker(provider: FakeProvider, faults: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A worker process of the product on the test's database and provider."""
    database = connection.settings_dict
    url = (
        f"postgres://{database['USER']}:{database['PASSWORD']}@/{database['NAME']}"
        f"?host={database['HOST']}&port={database['PORT']}"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "DATABASE_URL": url,
        "BOX_API_BASE_URL": provider.url,
        "BOX_API_KEY": provider.key,
        "BOX_POLL_INTERVAL_MS": "0",
        "FAULT_POINTS": faults,
    }
    process = subprocess.Popen([sys.executable, "manage.py", "run_worker"], cwd=CHECKOUT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("point", [calls.CALLED, calls.NAMED])
def test_the_next_worker_goes_on_where_a_killed_one_was(
    point: str, owner: User, provider: FakeProvider
) -> None:
    fanout.admit(ensure_conversation(owner).id, {"type": "user", "id": str(owner.pk)}, 2)

    with worker(provider, f"{point}=kill") as killed:
        assert killed.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    with worker(provider):
        eventually(lambda: Box.objects.filter(state="ready").count() == 2)

    rows = set(Box.objects.values_list("box_id", flat=True))
    assert {made.id for made in provider.existing()} == rows
    assert {made.name for made in provider.existing()} == {services.provider_ownership_marker()}
