"""The folders of a box: made with the modes that keep one box out of another."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from .interface import BoxSpec, RuntimeFault

FOLDERS = ("home", "tmp")  # the box's user's; `run` beside them is the supervisor's alone
RUN = "run"


def prepare(spec: BoxSpec) -> None:
    """Make what is missing of a box's folder. Under root it belongs to the box's uid, mode 0700.

    Raises `RuntimeFault` with `start_failed` if a folder cannot be made.
    """
    try:
        _make(spec.root, spec.uid)
        for name in FOLDERS:
            _clear_away_unless_folder(spec.root / name)
            _make(spec.root / name, spec.uid)
        _make_private(spec.root / RUN)
    except OSError as error:
        raise RuntimeFault("start_failed", f"the box's folder cannot be made: {error}") from error


def _make(folder: Path, uid: int | None) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if uid is not None:
        os.chown(folder, uid, uid, follow_symlinks=False)
    folder.chmod(0o700)


def _clear_away_unless_folder(path: Path) -> None:
    """A box may own the folder that its home is in: what it put in the home's place is not followed."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()


def _make_private(folder: Path) -> None:
    """The supervisor's folder. What stands there and is not a folder of ours was put there by the box: away."""
    _clear_away_unless_folder(folder)
    if folder.exists() and not is_private(folder):
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)


def is_private(folder: Path) -> bool:
    """Whether this is a folder of the provider's own user, not a link and not another's."""
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
