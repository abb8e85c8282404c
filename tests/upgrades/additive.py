"""Whether processes of the last release can go on while, and after, the database is migrated to this one.

A migration that they do not know may add: tables, indexes, columns that may be empty or that the database fills by itself. It takes
nothing away, renames nothing, and refuses nothing that they write. What cannot be told from the operation itself (a constraint, a
changed column, SQL, a guard) needs the reason why it does no harm, in the migration:

    class Migration(migrations.Migration):
        old_code_goes_on = "No release before this one writes the column."

`python -m tests.upgrades.additive` prints every migration of this checkout: what `released.txt` holds after a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db import models
from django.db.migrations import Migration
from django.db.migrations import operations as op
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

RELEASED = Path(__file__).with_name("released.txt")
OURS = frozenset(
    {"accounts", "conversations", "boxes", "runs", "work", "forge", "webhooks", "openagents_site"}
)
REASON = "old_code_goes_on"
HISTORY = frozenset({"insert_insert", "update_update", "delete_delete"})
ADDS = (op.CreateModel, op.AddIndex)
CHANGES_NOTHING = (op.AlterModelOptions, op.AlterModelManagers)
NEVER = (op.RemoveField, op.RenameField, op.DeleteModel, op.RenameModel, op.AlterModelTable)

Name = tuple[str, str]


def released() -> frozenset[Name]:
    """The migrations that processes of the last release know; none before the first release."""
    lines = [line.strip() for line in RELEASED.read_text().splitlines()]
    return frozenset(_name(line) for line in lines if line and not line.startswith("#"))


def _name(line: str) -> Name:
    app, name = line.split(".", 1)
    return app, name


def ours(loader: MigrationLoader) -> dict[Name, Migration]:
    """Every migration of this checkout's own apps."""
    return {name: migration for name, migration in loader.disk_migrations.items() if name[0] in OURS}


def offences(migration: Migration) -> list[str]:
    """What in it would stop or harm a process that does not know it, in words."""
    new = {
        operation.name_lower for operation in migration.operations if isinstance(operation, op.CreateModel)
    }
    found = []
    for operation in _flat(migration.operations):
        why = _offence(operation, new)
        if why and (isinstance(operation, NEVER) or not getattr(migration, REASON, "")):
            found.append(f"{migration.app_label}.{migration.name}: {operation.describe()}: {why}")
    return found


def _flat(operations: Iterable[Any]) -> Iterator[Any]:
    """What is really done to the database."""
    for operation in operations:
        if isinstance(operation, op.SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


def _offence(operation: Any, new: set[str]) -> str:
    """Why it may harm; nothing for what only adds, or touches tables that are new themselves (`new`)."""
    table = str(getattr(operation, "model_name", "")).lower()
    if isinstance(operation, ADDS + CHANGES_NOTHING) or table in new:
        return ""
    if isinstance(operation, NEVER):
        return "the last release still uses it; take it away one release later"
    if isinstance(operation, op.AddField):
        return _added(operation.field)
    if _is_history(operation):
        return ""
    return f"say in {REASON} why what the last release does goes on"


def _added(field: Any) -> str:
    if field.null or field.many_to_many or field.has_db_default():
        return ""
    return "the last release leaves it out when it writes a row: let it be null, or give it a db_default"


def _is_history(operation: Any) -> bool:
    """Triggers of django-pghistory only write what was done."""
    trigger = getattr(operation, "trigger", None)
    return getattr(trigger, "name", getattr(operation, "name", "")) in HISTORY


def columns(state: ProjectState) -> dict[str, set[str]]:
    """The columns of each table of ours that code of this state knows."""
    return {
        model.options.get("db_table") or f"{app}_{name}": {
            column(field_name, field) for field_name, field in model.fields.items() if not field.many_to_many
        }
        for (app, name), model in state.models.items()
        if app in OURS and not model.options.get("proxy") and model.options.get("managed", True)
    }


def column(name: str, field: models.Field[Any, Any]) -> str:
    if field.db_column:
        return field.db_column
    return f"{name}_id" if isinstance(field, models.ForeignKey) else name


def main() -> None:
    import django

    django.setup()
    for app, name in sorted(ours(MigrationLoader(None))):
        print(f"{app}.{name}")


if __name__ == "__main__":
    main()
