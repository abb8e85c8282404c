"""Bringing an existing repository in: all of its branches and tags, with a receipt like any push."""

from __future__ import annotations

import time

from django.db import transaction

from base.clock import database_now
from forge import git, pushes, receipts
from forge.errors import RepositoryNotMade
from forge.models import Push, Repository

OPERATOR = "operator:import"
SECONDS = 3600.0
PROTOCOLS = ("file", "https", "http", "ssh", "git")
REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def import_from(repository: Repository, source: str) -> Push | None:
    """Fetch every branch and tag from `source`, a folder or an address that Git can read; refs of the same names are
    overwritten, others stay. Returns the receipt; None if nothing is new. Raises RepositoryNotMade."""
    started, path = time.monotonic(), git.path_of(repository.storage_key)
    allowed = [option for name in PROTOCOLS for option in ("-c", f"protocol.{name}.allow=always")]
    fetch = [*allowed, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", source]
    try:
        # The objects first, which takes its time; under the lock there is little left to fetch.
        git.run(
            path,
            *fetch,
            "+refs/heads/*:refs/import/heads/*",
            "+refs/tags/*:refs/import/tags/*",
            seconds=SECONDS,
        )
        with transaction.atomic():
            pushes.lock(repository.pk)
            before = git.refs(path)
            git.run(path, *fetch, *REFSPECS, seconds=SECONDS)
            _forget_import(repository)
            moved = receipts.changes(_without_import(before), git.refs(path))
            if not moved:
                return None
            duration = int((time.monotonic() - started) * 1000)
            return receipts.append(repository, OPERATOR, moved, duration_ms=duration, now=database_now())
    except git.GitFailed as error:
        raise RepositoryNotMade(detail=f"Git could not fetch from there: {error}") from error


def _without_import(refs: dict[str, str]) -> dict[str, str]:
    return {ref: value for ref, value in refs.items() if not ref.startswith("refs/import/")}


def _forget_import(repository: Repository) -> None:
    path = git.path_of(repository.storage_key)
    lines = [f"delete {ref}\n" for ref in git.refs(path) if ref.startswith("refs/import/")]
    git.run(path, "update-ref", "--stdin", input_text="".join(lines))
