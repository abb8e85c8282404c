"""Web while its database restarts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import User
from accounts.services import create_token
from base.embedded_postgres import Connection
from tests.faults.installation import Api, Installation
from tests.localbox.server import LocalboxServer

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Web on the test's database; no provider is asked."""
    known = connection.get_connection_params()
    database = Connection(
        host=known.get("host", "localhost"),
        user=known["user"],
        dbname=known["dbname"],
        port=int(known.get("port") or 5432),
        password=known.get("password", ""),
    )
    with Installation(database, LocalboxServer(port=9, state_dir=tmp_path)) as made:
        made.add_web()
        made.await_web()
        yield made


def test_no_request_meets_a_connection_that_died(installation: Installation, owner: User) -> None:
    _, token = create_token(owner)

    def status(_: int) -> int:
        return Api(installation.url, token)("GET", "runs").status_code

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(status, range(40))) == {200}
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                           " and datname = current_database()")  # fmt: skip
        assert set(pool.map(status, range(40))) == {200}
