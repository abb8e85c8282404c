"""Making and reading a copy.

A copy is a folder: `database.dump`, `repositories.tar`, `private.tar` (the installation's secrets, without which sealed values cannot be
opened), and `manifest.json`, which is written last: a folder without it is no copy. Whoever has a copy has the secrets: keep it like them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from base.clock import database_now
from forge.conf import storage_root
from openagents_site.backups import BackupFailed, archives, database

FORMAT = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"


def private_folder() -> Path:
    return Path(settings.STATE_ROOT) / "private"


FOLDERS: dict[str, Callable[[], Path]] = {"repositories.tar": storage_root, "private.tar": private_folder}
FILES = (DUMP, *FOLDERS)


@dataclass(frozen=True)
class Copy:
    """What is known of a copy: when it was made, its files with their digests and sizes, and how many rows it holds."""

    made_at: str
    server_version: int
    files: dict[str, dict[str, Any]]
    migrations: list[str]
    rows: dict[str, int]

    @property
    def size(self) -> int:
        return sum(file["bytes"] for file in self.files.values())


def backup(folder: Path) -> Copy:
    """Copy this installation into `folder`, which must be new or empty. Everything may go on running meanwhile.

    The database is copied before the repositories: what a row names is there, and what was pushed in between is in the
    repository without its receipt. Raises BackupFailed.
    """
    with _told_of(folder):
        _make(folder)
        database.dump(_private(folder / DUMP))
        rows = database.counts()
        for name, source in FOLDERS.items():
            archives.pack(source(), _private(folder / name))
        files = {name: _measured(folder / name) for name in FILES}
        copy = Copy(database_now().isoformat(), database.server_version(), files, _migrations(), rows)
        _write(folder / MANIFEST, {"format": FORMAT} | copy.__dict__)
    return copy


def restore(folder: Path, *, replace: bool = False) -> Copy:
    """Put a copy back: the database in one transaction, then the folders. Stop every process of the installation first.

    Every file is checked against the manifest before anything is touched. Refuses a database or a folder of repositories that is not empty
    unless `replace`; the repositories that were there are then kept beside, under a name that ends in `.before-<time>`.
    Raises BackupFailed.
    """
    copy = verify(folder)
    _check_target(copy, replace)
    database.load(folder / DUMP, replace=replace)
    connection.close()
    for name, target in FOLDERS.items():
        with _told_of(target()):
            _unpack(folder / name, target().resolve())
    return copy


def verify(folder: Path) -> Copy:
    """The copy in `folder`, each of its files as the manifest says. Raises BackupFailed."""
    copy = _manifest(folder)
    for name in FILES:
        with _told_of(folder / name):
            if not (folder / name).is_file() or _measured(folder / name) != copy.files[name]:
                raise BackupFailed(detail=f"{folder / name} is missing or damaged.")
            if name in FOLDERS:
                archives.members_of(folder / name)
    return copy


def _manifest(folder: Path) -> Copy:
    damaged = BackupFailed(detail=f"{folder / MANIFEST} is damaged.")
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise BackupFailed(detail=f"{folder} holds no whole copy: there is no {MANIFEST}.") from None
    except OSError as error:
        raise _unusable(folder / MANIFEST, error) from None
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(manifest, dict):
        raise damaged
    if manifest.pop("format", None) != FORMAT:
        raise BackupFailed(
            detail=f"{folder} was made by another release, in a form that this one does not read."
        )
    if set(manifest) != {field.name for field in fields(Copy)} or not _has_every_file(manifest["files"]):
        raise damaged
    return Copy(**manifest)


def _has_every_file(files: Any) -> bool:
    return isinstance(files, dict) and set(files) == set(FILES)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """What the system refuses, as BackupFailed."""
    try:
        yield
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> BackupFailed:
    return BackupFailed(detail=f"{error.filename or path} cannot be used: {error.strerror}.")


def _check_target(copy: Copy, replace: bool) -> None:
    if copy.server_version > database.server_version():
        raise BackupFailed(
            detail=f"The copy is of PostgreSQL {copy.server_version}, this server is of {database.server_version()}."
        )
    if replace:
        return
    if not database.is_empty():
        raise BackupFailed(detail="The database is not empty. --replace drops what it holds.")
    if _holds_anything(storage_root()):
        raise BackupFailed(detail=f"{storage_root()} is not empty. --replace moves it aside.")


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _holds_anything(folder):
        raise BackupFailed(detail=f"{folder} is not empty.")
    folder.chmod(0o700)


def _holds_anything(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _private(path: Path) -> Path:
    """The path of an empty file that nobody else may read, wherever the copy is taken to."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def _unpack(archive: Path, target: Path) -> None:
    if not archives.members_of(archive):
        return
    if _holds_anything(target):
        target.rename(target.with_name(f"{target.name}.before-{database_now():%Y%m%dT%H%M%S}"))
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    archives.unpack(archive, target)


def _measured(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _migrations() -> list[str]:
    return sorted(".".join(key) for key in MigrationRecorder(connection).applied_migrations())


def _write(path: Path, value: Any) -> None:
    """Whole or not at all."""
    unfinished = path.with_suffix(".part")
    with _private(unfinished).open("w") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
