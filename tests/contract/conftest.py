"""One running installation for all tests of this folder that a process runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from base.embedded_postgres import Connection
from tests.contract.installation import Running, running


@pytest.fixture(scope="session")
def server(django_db_setup: None, django_db_blocker: Any) -> Iterator[Running]:
    with django_db_blocker.unblock():
        known = connection.get_connection_params()
        connections.close_all()  # nobody may be connected to what is copied
    template = Connection(
        host=known.get("host", "localhost"),
        user=known["user"],
        dbname=known["dbname"],
        port=int(known.get("port") or 5432),
        password=known.get("password", ""),
    )
    with running(template) as made:
        yield made
