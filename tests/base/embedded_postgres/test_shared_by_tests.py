"""The server that all tests of this checkout share."""

from __future__ import annotations

import fcntl
import os

import pytest

from base.embedded_postgres import Cluster, Connection
from tests import postgres


@pytest.fixture
def shared(folder, monkeypatch):
    """As in a session of its own: another folder, and no server held yet."""
    monkeypatch.setattr(postgres, "FOLDER", folder)
    monkeypatch.setattr(postgres, "_users", [])
    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    return Cluster(folder)


def test_the_first_user_starts_it_and_the_last_one_stops_it(shared):
    connection = postgres.ensure_test_cluster()
    other = os.open(postgres.users_file(), os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_SH)

    postgres.release_test_cluster()
    assert shared.status().is_running

    os.close(other)
    assert postgres.ensure_test_cluster() == connection
    postgres.release_test_cluster()
    assert not shared.status().is_running


def test_a_second_call_is_free(shared):
    assert postgres.ensure_test_cluster() == postgres.ensure_test_cluster()

    postgres.release_test_cluster()
    assert not shared.status().is_running


def test_another_server_is_used_if_it_is_named(shared, monkeypatch):
    monkeypatch.setenv("TEST_DATABASE_URL", "postgres://tester:p%40ss@db.example:5433/boxes")

    assert postgres.ensure_test_cluster() == Connection("db.example", "tester", "boxes", 5433, "p@ss")
    assert not shared.status().is_running


@pytest.mark.parametrize(
    "connection",
    [
        Connection("/a b+c/%41/run"),
        Connection("db.example", "u@x", "n/m", 5433, "p:@/w"),
        Connection("127.0.0.1"),
    ],
)
def test_a_url_names_what_it_was_made_of(connection):
    assert postgres.connection_of(connection.url()) == connection
