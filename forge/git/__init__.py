"""Git itself does the work: where repositories are on disk, how `git` is run, and what it is asked."""

from __future__ import annotations

from forge.git.commands import GitFailed, commits_between, refs, restore_refs, run, show_file
from forge.git.storage import make, path_of, set_default_branch, works

__all__ = [
    "GitFailed",
    "commits_between",
    "make",
    "path_of",
    "refs",
    "restore_refs",
    "run",
    "set_default_branch",
    "show_file",
    "works",
]
