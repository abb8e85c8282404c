"""A scheduler that runs but does nothing is found by its heartbeat row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from openagents_site.launcher.heartbeat import HeartbeatWatch
from openagents_site.launcher.part import Part
from tests.postgres import ensure_test_cluster

SCHEMA = f"launcher_heartbeat_{os.getpid()}"  # tests of several processes share the server


class RunsFor:
    """A part that has run for so many seconds."""

    def __init__(self, seconds: float, name: str = "scheduler") -> None:
        self.name, self._seconds = name, seconds

    def ran_seconds(self) -> float:
        return self._seconds


@pytest.fixture
def connection() -> Iterator[dict[str, Any]]:
    """A schema of our own, in which the table is empty."""
    parameters = ensure_test_cluster().parameters()
    with psycopg.connect(**parameters, autocommit=True) as link:
        link.execute(f"drop schema if exists {SCHEMA} cascade")
        link.execute(f"create schema {SCHEMA}")
        link.execute(
            f"create table {SCHEMA}.process_heartbeats (name text primary key, stamped_at timestamptz)"
        )
        yield parameters | {"options": f"-c search_path={SCHEMA}"}
        link.execute(f"drop schema {SCHEMA} cascade")


def stamped(connection: dict[str, Any], age_seconds: float) -> None:
    with psycopg.connect(**connection, autocommit=True) as link:
        link.execute(
            "insert into process_heartbeats values ('scheduler', clock_timestamp() - make_interval(secs => %s))",
            [age_seconds],
        )


def verdict(connection: dict[str, Any], part: RunsFor) -> str | None:
    watch = HeartbeatWatch("scheduler", connection)
    watch.look()
    return watch(cast(Part, part))


def test_an_old_stamp_is_a_reason_to_restart(connection: dict[str, Any]) -> None:
    stamped(connection, 200)

    assert str(verdict(connection, RunsFor(1000))).startswith("has done nothing for 20")


def test_a_fresh_stamp_is_none(connection: dict[str, Any]) -> None:
    stamped(connection, 170)

    assert verdict(connection, RunsFor(1000)) is None


def test_a_scheduler_that_was_just_started_has_time_to_stamp(connection: dict[str, Any]) -> None:
    stamped(connection, 86_400)

    assert verdict(connection, RunsFor(100)) is None


def test_a_scheduler_that_never_stamped_is_as_bad(connection: dict[str, Any]) -> None:
    assert verdict(connection, RunsFor(181)) == "has done nothing for 181 s"


def test_other_parts_are_left_alone(connection: dict[str, Any]) -> None:
    stamped(connection, 1000)

    assert verdict(connection, RunsFor(1000, "web")) is None


def test_a_database_that_does_not_answer_proves_nothing() -> None:
    nowhere = {"host": "/nowhere", "user": "app", "dbname": "app"}

    assert verdict(nowhere, RunsFor(1000)) is None
