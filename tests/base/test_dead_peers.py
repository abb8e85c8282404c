"""Both ends of a connection to the database find out when the other is gone."""

from __future__ import annotations

import pytest
from django.db import connection

from base import dead_peers, notify


@pytest.mark.django_db
def test_the_server_is_told_to_ask_for_us() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select name from pg_settings where name like 'tcp\\_%' and source = 'client'")
        asked = {name for (name,) in cursor.fetchall()}

    assert asked == {
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_keepalives_count",
        "tcp_user_timeout",
    }


@pytest.mark.django_db
def test_our_end_asks_for_the_server_also_outside_djangos_care() -> None:
    with notify.own_connection() as link:
        asks = link.info.get_parameters()

    assert (asks["keepalives_idle"], asks["tcp_user_timeout"]) == ("10", "25000")


def test_what_an_installation_sets_itself_stays() -> None:
    options = dead_peers.noticed({"options": "", "keepalives_idle": "60", "sslmode": "require"})

    assert (options["options"], options["keepalives_idle"], options["sslmode"]) == ("", "60", "require")
    assert options["tcp_user_timeout"] == 25_000
