"""What the database refuses is one sentence that says what to mend."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
import pytest
from django.db import DatabaseError, NotSupportedError, connection
from django.db.migrations.recorder import MigrationRecorder

from openagents_site.database_errors import sentence, what_happened
from openagents_site.launcher.provision import reason


def refused_to_somebody_without_rights(act: Callable[[], object]) -> DatabaseError:
    """What a role that may do nothing is told. Undone with the test's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("create role without_rights")
        cursor.execute("set local role without_rights")
    with pytest.raises(DatabaseError) as refused:
        act()
    return refused.value


@pytest.mark.django_db
def test_a_role_that_may_not_create_is_told_with_the_command_that_lets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MigrationRecorder, "has_table", lambda self: False)

    error = refused_to_somebody_without_rights(MigrationRecorder(connection).ensure_schema)

    told = reason(error)
    assert re.fullmatch(
        r"the role \S+ lacks a right in the database \S+: permission denied for schema public "
        r'\(as a superuser, in that database: GRANT ALL ON SCHEMA public TO "\S+";\)',
        told,
    ), told


@pytest.mark.django_db
def test_another_right_that_is_missing_is_named() -> None:
    error = refused_to_somebody_without_rights(lambda: connection.cursor().execute("select * from users"))

    assert re.search(r"permission denied for table \S+ .*ALTER DATABASE \S+ OWNER TO", str(sentence(error)))


def test_a_server_that_is_too_old_is_told_without_the_name_of_a_class() -> None:
    error = NotSupportedError("PostgreSQL 14 or later is required (found 12.9).")

    assert reason(error) == "the database cannot be used: PostgreSQL 14 or later is required (found 12.9)."


def test_a_database_that_does_not_answer_is_told_from_a_statement_that_failed() -> None:
    assert "does not answer" in str(sentence(psycopg.OperationalError("connection timeout expired")))
    assert sentence(psycopg.errors.DeadlockDetected("deadlock detected")) is None
    assert what_happened(ValueError("first\nsecond")) == "first"
