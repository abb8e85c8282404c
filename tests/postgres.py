"""The PostgreSQL server that the tests use: one of their own, never that of an installation."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import environ

from base.embedded_postgres import Cluster, Connection
from base.state_root import reachable_folder

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / ".cache" / "test-postgres"
_users: list[int] = []


def ensure_test_cluster() -> Connection:
    """A running server with the database `openagents_boxes`, for this process until it ends or calls `release_test_cluster`.

    It is started by whoever comes first and kept by everyone who uses it, workers and other sessions included. With
    TEST_DATABASE_URL that server is used instead, and nothing is started.
    """
    url = os.environ.get("TEST_DATABASE_URL", "")
    if url:
        return connection_of(url)
    cluster = own_cluster()
    if not _users:
        _users.append(_open_users_file())
    fcntl.flock(_users[0], fcntl.LOCK_SH)  # waits for a session that is just stopping the server
    cluster.start_detached()
    return cluster.ensure_database()


def release_test_cluster() -> None:
    """This process needs the server no more; the last of its users stops it."""
    while _users:
        users = _users.pop()
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            own_cluster().stop()
        except BlockingIOError:
            continue
        finally:
            os.close(users)


def own_cluster() -> Cluster:
    return Cluster(reachable_folder(FOLDER))


def connection_of(url: str) -> Connection:
    """The server that a URL in the form of DATABASE_URL names."""
    found = environ.Env.db_url_config(url)
    return Connection(
        host=found["HOST"],
        user=found["USER"],
        dbname=found["NAME"],
        port=int(found["PORT"] or 5432),
        password=found["PASSWORD"],
    )


def users_file() -> Path:
    """Its lock is shared by the server's users, and exclusive to whoever stops the server."""
    return FOLDER.with_name(FOLDER.name + ".users")


def _open_users_file() -> int:
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    return os.open(users_file(), os.O_RDWR | os.O_CREAT, 0o600)
