"""What the tests themselves rest on: each begins with the database as migrations leave it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from accounts.models import User
from accounts.services import upsert_github_user
from tests import template
from tests.emptying import LARGEST_BYTES, Emptying

CHECKOUT = Path(__file__).resolve().parents[2]


def imported_by(file: Path) -> set[Path]:
    """The product's own modules that a file names in its imports."""
    named = {
        name
        for node in ast.walk(ast.parse(file.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if (CHECKOUT / name.split(".")[0]).is_dir()
    }
    return {file for name in named if (file := _file_of(name)) is not None}


def _file_of(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # what was named is something inside a module
        return None
    return Path(found.origin) if found and found.origin else None


@pytest.mark.django_db(transaction=True)
def test_a_test_that_commits_leaves_no_row_and_what_migrations_made_as_it_was() -> None:
    emptying = Emptying()
    groups = list(Group.objects.order_by("pk").values())
    upsert_github_user(github_id=1, github_login="owner")
    Group.objects.all().delete()
    kind = ContentType.objects.create(app_label="gone", model="gone")

    emptying.after_a_test()

    assert not User.objects.exists()
    assert list(Group.objects.order_by("pk").values()) == groups != []
    assert not ContentType.objects.filter(pk=kind.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_a_table_with_much_in_it_is_truncated() -> None:
    emptying = Emptying()
    User.objects.bulk_create(
        User(username=f"user-{n}", slug=f"user-{n}", last_name="x" * 100) for n in range(20_000)
    )

    emptying.after_a_test()

    assert not User.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("select pg_table_size('users')")
        assert cursor.fetchone()[0] < LARGEST_BYTES


def test_whatever_migrations_import_decides_which_database_is_copied() -> None:
    counted = {file for pattern in template.DECIDES for file in CHECKOUT.glob(pattern)}
    migrations = [file for file in counted if file.parent.name == "migrations"]
    imported = set().union(*map(imported_by, migrations))

    assert {file for file in imported if file.suffix == ".py"} <= counted
    assert CHECKOUT / "base/sql.py" in imported


def test_a_changed_migration_is_another_database(tmp_path: Path) -> None:
    (tmp_path / "boxes" / "migrations").mkdir(parents=True)
    before = template.digest(tmp_path)
    (tmp_path / "boxes" / "migrations" / "0001_first.py").write_text("operations = []\n")

    assert template.digest(tmp_path) != before == template.digest(tmp_path / "nothing")
