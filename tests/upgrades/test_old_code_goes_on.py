"""Processes of the last release work on while the database is that of this one already."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from tests.upgrades.additive import columns, offences, ours, released


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def migration(*operations: Any, reason: str = "") -> Migration:
    made = Migration("0009_made_up", "boxes")
    made.operations = list(operations)
    made.old_code_goes_on = reason  # type: ignore[attr-defined]
    return made


def test_what_was_released_is_still_there(loader: MigrationLoader) -> None:
    assert released() - set(ours(loader)) == set()


def test_what_was_not_released_yet_only_adds(loader: MigrationLoader) -> None:
    known = released()
    new = [one for name, one in ours(loader).items() if known and name not in known]

    assert [offence for one in new for offence in offences(one)] == []


@pytest.mark.django_db
def test_what_older_code_writes_is_all_there_and_all_that_must_be_said(loader: MigrationLoader) -> None:
    """Of code that knows the released migrations; before the first release, of code that knows the first of each app."""
    known = released() or {name for name in ours(loader) if name[1].startswith("0001_")}
    for table, names in columns(loader.project_state(sorted(known))).items():
        there = columns_of(table)
        assert names - set(there) == set(), table
        assert [name for name, filled in there.items() if name not in names and not filled] == [], table


def columns_of(table: str) -> dict[str, bool]:
    """The columns of a table, and whether a row may be written without them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select column_name, is_nullable = 'YES' or column_default is not null or is_identity = 'YES'"
            " from information_schema.columns where table_schema = 'public' and table_name = %s",
            [table],
        )
        return dict(cursor.fetchall())


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("box", "label"),
        migrations.RenameField("box", "label", "title"),
        migrations.DeleteModel("Box"),
        migrations.RenameModel("Box", "Sandbox"),
        migrations.AlterModelTable("box", "sandboxes"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_takes_away_is_an_offence_whatever_the_reason(operation: Any) -> None:
    assert len(offences(migration(operation, reason="Nobody needs it."))) == 1


UNTOLD = [
    migrations.AddField("box", "colour", models.CharField(max_length=9, default="red")),
    migrations.AlterField("box", "label", models.CharField(max_length=9)),
    migrations.AddConstraint("box", models.UniqueConstraint(fields=["label"], name="one")),
    migrations.RunSQL("select 1"),
    migrations.SeparateDatabaseAndState(database_operations=[migrations.RunSQL("select 1")]),
]


@pytest.mark.parametrize("operation", UNTOLD, ids=lambda operation: type(operation).__name__)
def test_what_may_refuse_what_old_code_writes_needs_a_reason(operation: Any) -> None:
    assert len(offences(migration(operation))) == 1
    assert offences(migration(operation, reason="Old code writes nothing there.")) == []


def test_what_adds_is_no_offence() -> None:
    operations = [
        migrations.AddField("box", "colour", models.CharField(max_length=9, null=True)),
        migrations.AddField("box", "weight", models.IntegerField(db_default=0)),
        migrations.AddIndex("box", models.Index(fields=["label"], name="one")),
        migrations.CreateModel("Lid", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("lid", "colour", models.CharField(max_length=9)),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("box", "label")]),
    ]

    assert offences(migration(*operations)) == []
