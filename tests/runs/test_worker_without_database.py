"""A worker whose database goes away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from base import leases
from runs.models import Run
from tests.fakes.provider import FakeProvider
from tests.runs.test_workers import Workers
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_worker_that_lost_its_database_ends_although_a_box_owes_it_an_answer(
    fake: FakeProvider, begin: Callable[..., Run]
) -> None:
    workers = Workers(fake.settings)
    process = workers.start()
    eventually(leases.live_workers)
    hold = fake.hold("command", when=lambda request: b"wait_for_news 20" in request.body)
    try:
        begin("sleep 60")
        hold.wait_until_arrived()
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                           " and datname = current_database()")  # fmt: skip

        assert process.wait(20) == 1
    finally:
        hold.release()
        workers.close()
