"""Secrets that an installation makes for itself, once, and keeps in files that only its account can read."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from pathlib import Path

from .errors import StateRootError, explained
from .folders import ensure_folder
from .location import resolve
from .prepare import CLOSED, prepare

SECRET_BYTES = 32
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def private_secret(name: str, folder: Path | None = None) -> str:
    """The installation's secret of this name: 43 URL-safe characters, made by whichever process asks first, the same ever after.

    `folder` is a state folder; by default the installation's own, which is prepared if it is not yet there. Raises
    `StateRootError`, also if the file or its folder belongs to someone else.
    """
    if not _NAME.fullmatch(name):
        raise StateRootError("bad_name", f"{name!r} is not a name for a secret.")
    private = (folder or _own_folder()) / "private"
    ensure_folder(private, CLOSED)
    file = private / name
    with explained(file):
        return _read(file) or _made_once(file)


def _own_folder() -> Path:
    folder = resolve()
    return folder if (folder / "private").exists() else prepare().path


def _read(file: Path) -> str | None:
    """None if there is no secret. A file that others could read is closed; one of another account is refused."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor) as opened:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise StateRootError(
                "wrong_owner",
                f"The secret in {file} belongs to another account; remove it, or set STATE_DIR.",
            )
        if stat.S_IMODE(found.st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
        return opened.read().strip() or None


def _made_once(file: Path) -> str:
    """Under a lock: whoever waited for it finds the secret of the one before."""
    lock = os.open(file.with_name(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _read(file) or _write(file, secrets.token_urlsafe(SECRET_BYTES))
    finally:
        os.close(lock)


def _write(file: Path, secret: str) -> str:
    """Whole or not at all, and on the disk before anyone uses it."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(
        unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{secret}\n")
        opened.flush()
        os.fsync(descriptor)
    unfinished.rename(file)
    return secret
