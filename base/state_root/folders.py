"""Making the folders, each with its owner and mode, and refusing those that are not ours to use."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from base.embedded_postgres import Account

from .errors import StateRootError, explained
from .location import LOCATION

OWN_NAMES = frozenset({"postgres", "boxes", "private", LOCATION})


def ensure_folder(folder: Path, mode: int) -> None:
    """`folder` exists, belongs to this account, and has `mode`. A link to such a folder is fine if the link is ours too."""
    with explained(folder):
        make_parents(folder)
        folder.mkdir(mode=mode, exist_ok=True)
        for found in (folder.lstat(), folder.stat()):
            if found.st_uid != os.geteuid():
                raise _wrong_owner(folder, found.st_uid)
        if stat.S_IMODE(folder.stat().st_mode) != mode:
            folder.chmod(mode)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StateRootError(
                "not_writable", f"The state folder {folder} is not writable; set STATE_DIR to another folder."
            )


def refuse_foreign(folder: Path) -> None:
    """A folder with other things in it is not ours to close: STATE_DIR=/tmp would shut everybody out of /tmp."""
    with explained(folder):
        try:
            names = {entry.name for entry in folder.iterdir()}
        except FileNotFoundError:
            return
        except PermissionError:
            raise _wrong_owner(folder, folder.stat().st_uid) from None
    if names and not names & OWN_NAMES:
        raise StateRootError(
            "not_empty", f"The folder {folder} holds other files; set STATE_DIR to a new or an empty folder."
        )


def make_parents(folder: Path) -> None:
    """Missing folders above are open to all, whatever the umask: the database's and the boxes' accounts pass through them."""
    for parent in reversed(folder.parents):
        if not parent.exists():
            parent.mkdir(exist_ok=True)
            parent.chmod(0o755)


def _wrong_owner(folder: Path, uid: int) -> StateRootError:
    owner, me = Account.of_uid(uid).name, Account.of_uid(os.geteuid()).name
    return StateRootError(
        "wrong_owner",
        f"The state folder {folder} belongs to {owner}, not to {me}; run this as {owner}, or set STATE_DIR to another folder.",
    )
