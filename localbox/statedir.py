"""The state folder: `boxes/` with the boxes' files, `private/` with the records, the key and the lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from . import ids, uids
from .settings import Settings, SettingsError
from .store.database import Database

DATABASE = "localbox.sqlite3"
KEY = "key"
LOCK = "lock"


def prepare(settings: Settings) -> None:
    """Make the folders, and check that the boxes' own uids can reach theirs. Raises SettingsError."""
    reachable = 0o711 if os.geteuid() == 0 else 0o700
    open_folders = (settings.state_dir, settings.boxes_dir, settings.scratch_dir)
    modes = {**dict.fromkeys(open_folders, reachable), settings.private_dir: 0o700}
    try:
        for folder, mode in modes.items():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)
    except OSError as error:
        raise SettingsError(
            f"The state folder {settings.state_dir} cannot be used: {error.strerror}."
        ) from None
    _check_reach(settings)


def _check_reach(settings: Settings) -> None:
    own = uids.block(settings.state_dir)
    if own is None:
        return
    look = subprocess.run(
        ["test", "-x", f"{settings.boxes_dir}/."], user=own[0], group=own[0], extra_groups=[], check=False
    )
    if look.returncode != 0:
        text = "Boxes run under uids of their own and cannot enter {}; choose a state folder such as /var/lib/localbox."
        raise SettingsError(text.format(settings.boxes_dir))


def lock(settings: Settings) -> IO[str]:
    """Hold the state folder for this process, as long as the returned file is open. Raises SettingsError.

    A record lock: no child process inherits it, so it ends with this process however that ends.
    """
    file = (settings.private_dir / LOCK).open("w")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise SettingsError(f"Another localbox is using {settings.state_dir}.") from None
    return file


def key(settings: Settings) -> tuple[str, bool]:
    """The bearer key, and whether it was made just now: the one given, else the one kept in the state folder."""
    if settings.key is not None:
        return settings.key, False
    path = settings.private_dir / KEY
    if path.exists():
        return path.read_text().strip(), False
    made = ids.provider_key()
    _write_private(path, made)
    return made, True


def _write_private(path: Path, text: str) -> None:
    partial = path.with_suffix(".new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[Database]:
    """The records of the state folder, open. Raises SettingsError when they cannot be read."""
    try:
        opened = Database(settings.private_dir / DATABASE)
    except (sqlite3.DatabaseError, RuntimeError) as error:
        raise SettingsError(f"The records in {settings.private_dir} cannot be opened: {error}.") from None
    try:
        yield opened
    finally:
        opened.close()
