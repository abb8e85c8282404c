"""A worker that is killed in the middle of a delivery: nothing is lost, and what comes twice has the same id."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings as django_settings
from django.db import connection

from accounts.models import User
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.driver import ANSWERED, CLAIMED
from tests.webhooks.conftest import BoxOf, only_delivery
from tests.webhooks.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]
CHECKOUT = Path(__file__).resolve().parents[2]


def worker(**environment: str) -> int:
    """Run one to its end; its exit status."""
    database = connection.settings_dict
    secret = f":{quote(database['PASSWORD'], safe='')}" if database["PASSWORD"] else ""
    port = f":{database['PORT']}" if database["PORT"] else ""
    url = f"postgres://{database['USER']}{secret}@{quote(database['HOST'], safe='')}{port}/{database['NAME']}"
    known = {
        "DATABASE_URL": url,
        "SECRET_KEY": django_settings.SECRET_KEY,
        "PYTHONPATH": ".",
        "DJANGO_SETTINGS_MODULE": "openagents_site.settings",
        "WEBHOOKS_ALLOW_HTTP": "true",
        "WEBHOOKS_ALLOW_PRIVATE": "true",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.webhooks.killed"],
        cwd=CHECKOUT,
        env=os.environ | known | environment,
        timeout=100,
    ).returncode


@pytest.mark.parametrize(("point", "times"), [(CLAIMED, 1), (ANSWERED, 2)])
def test_the_next_worker_delivers_what_a_killed_one_held(
    point: str, times: int, owner: User, receiver: Receiver, box_of: BoxOf
) -> None:
    secret = subscriptions.create(owner, url=receiver.url)[1]
    box_of(owner)

    assert worker(FAULT_POINTS=f"{point}=kill") == -9
    assert only_delivery().state == "pending"
    assert worker() == 0

    assert only_delivery().state == "delivered"
    assert len(receiver.received) == times
    assert len({each.message_id for each in receiver.received}) == 1
    assert {each.verified(secret)["type"] for each in receiver.received} == {"box.created"}
