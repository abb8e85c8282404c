"""The folders around the data, closed to every account but the server's and root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .account import Account
from .errors import EmbeddedPostgresError
from .layout import SHORT_FOLDERS_OF_ROOT, Layout

CLOSED = 0o700


def ensure_folders(layout: Layout, account: Account) -> None:
    """Make the server's folder and that of its socket. Raises `EmbeddedPostgresError` if one is somebody else's."""
    layout.folder.parent.mkdir(parents=True, exist_ok=True)
    _ensure_closed(layout.folder, account)
    if layout.run.parent == SHORT_FOLDERS_OF_ROOT:
        SHORT_FOLDERS_OF_ROOT.mkdir(exist_ok=True)
        SHORT_FOLDERS_OF_ROOT.chmod(0o711)
    _ensure_closed(layout.run, account)


def _ensure_closed(folder: Path, account: Account) -> None:
    """`folder` is a directory, not a link, of `account`, with mode 0700."""
    folder.mkdir(mode=CLOSED, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {account.uid, os.geteuid()}:
        raise EmbeddedPostgresError(
            "wrong_owner",
            f"{folder} is not a folder of {account.name}; remove it, or give it to that account with chown.",
        )
    if found.st_uid != account.uid:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    if stat.S_IMODE(found.st_mode) != CLOSED:
        folder.chmod(CLOSED)
