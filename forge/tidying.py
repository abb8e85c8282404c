"""Keeping repositories on disk small and quick. Each push leaves a pack, and one that was killed a folder of what it had sent."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import structlog

from forge import git
from forge.models import Repository

log = structlog.get_logger(__name__)

MANY_PACKS = 20
REPACK_SECONDS = 3600.0
LEFT_BEHIND_SECONDS = 2 * 86_400.0
"""No push takes that long: FORGE_PUSH_SECONDS is a day at most."""


def tidy_all() -> int:
    """Tidy every repository that is ready; returns how many needed it. One that cannot be tidied costs only itself."""
    count = 0
    for storage_key in Repository.objects.filter(lifecycle_state="ready").values_list(
        "storage_key", flat=True
    ):
        try:
            count += tidy(storage_key)
        except (OSError, git.GitFailed):
            log.exception("repository_not_tidied", storage_key=storage_key)
    return count


def tidy(storage_key: str) -> bool:
    """Join small packs into larger ones and remove what killed pushes left; returns whether there was anything to do.

    Safe beside fetches and pushes: no object that is there is lost. Raises OSError and GitFailed.
    """
    objects = git.path_of(storage_key) / "objects"
    removed = _remove_left_behind(objects)
    if len(list((objects / "pack").glob("*.pack"))) < MANY_PACKS:
        return removed
    path = git.path_of(storage_key)
    git.run(path, "repack", "-d", "--quiet", "--geometric=2", seconds=REPACK_SECONDS)
    git.run(path, "pack-refs", "--all", seconds=REPACK_SECONDS)
    return True


def _remove_left_behind(objects: Path) -> bool:
    """Folders in which Git keeps a push until its refs may move; those of a git that was killed stay."""
    old = [
        folder
        for folder in objects.glob("*incoming-*")
        if folder.stat().st_mtime < time.time() - LEFT_BEHIND_SECONDS
    ]
    for folder in old:
        shutil.rmtree(folder)
    return bool(old)
