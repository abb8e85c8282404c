"""Repositories on disk: bare, below one folder, under keys that say nothing of what they are."""

from __future__ import annotations

import uuid
from pathlib import Path

from forge.conf import storage_root
from forge.git.commands import run
from forge.names import ref_of


def new_key() -> str:
    return uuid.uuid4().hex


def relative_path(storage_key: str) -> str:
    """Where a repository is below the storage root."""
    return f"{storage_key[:2]}/{storage_key}.git"


def path_of(storage_key: str) -> Path:
    return storage_root() / relative_path(storage_key)


def make(storage_key: str, default_branch: str) -> None:
    """Make the repository on disk; one that is there already is only mended. Raises GitFailed or OSError."""
    folder = path_of(storage_key)
    storage_root().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    run(folder, "init", "--quiet", "--bare", "--template=", ".")
    set_default_branch(storage_key, default_branch)


def set_default_branch(storage_key: str, branch: str) -> None:
    """What a clone checks out. Raises GitFailed."""
    run(path_of(storage_key), "symbolic-ref", "HEAD", ref_of(branch))


def works(storage_key: str) -> bool:
    """Whether the repository is on disk and Git can read it."""
    folder = path_of(storage_key)
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()
