"""Bringing an existing repository in: all of its branches and tags, with a receipt like any push."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from django.db import transaction

from base.clock import database_now
from forge import git, pushes, receipts
from forge.errors import RepositoryNotMade
from forge.git.environment import ASIDE
from forge.models import Push, Repository

OPERATOR = "operator:import"
SECONDS = 3600.0
PROTOCOLS = ("file", "https", "http", "ssh", "git")
REFSPECS = (f"+refs/heads/*:{ASIDE}heads/*", f"+refs/tags/*:{ASIDE}tags/*")


def import_from(repository: Repository, source: str) -> Push | None:
    """Fetch every branch and tag from `source`, a folder or an address that Git can read; refs of the same names are
    overwritten, others stay. Returns the receipt; None if nothing is new. Raises RepositoryNotMade."""
    started, path = time.monotonic(), git.path_of(repository.storage_key)
    try:
        _fetch(path, source)
        with transaction.atomic():
            pushes.lock(repository.pk)
            refs = git.refs(path)
            _check_names(refs)
            _move(path, refs)
            moved = receipts.changes(shown(refs), shown(git.refs(path)))
            if not moved:
                return None
            duration = int((time.monotonic() - started) * 1000)
            return receipts.append(repository, OPERATOR, moved, duration_ms=duration, now=database_now())
    except git.GitFailed as error:
        raise RepositoryNotMade(detail=f"Git could not fetch from there: {error}") from error


def _fetch(path: Path, source: str) -> None:
    """Everything, aside: it may take an hour, and nobody sees it yet."""
    allowed = [option for name in PROTOCOLS for option in ("-c", f"protocol.{name}.allow=always")]
    fetch = ["fetch", "--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--end-of-options", source]
    git.run(path, *allowed, *fetch, *REFSPECS, seconds=SECONDS)


def _move(path: Path, refs: Mapping[str, str]) -> None:
    """What was fetched aside gets its names, all at once."""
    aside = {ref: value for ref, value in refs.items() if ref.startswith(ASIDE)}
    lines = [f"update refs/{ref.removeprefix(ASIDE)} {value}\ndelete {ref}\n" for ref, value in aside.items()]
    git.run(path, "update-ref", "--stdin", input_text="".join(lines))


def _check_names(refs: Mapping[str, str]) -> None:
    """A receipt is text: a name that is none cannot be in it."""
    for ref in refs:
        try:
            ref.encode()
        except UnicodeEncodeError:
            name = ref.removeprefix(ASIDE).encode(errors="surrogateescape")
            raise RepositoryNotMade(detail=f"the name of {name!r} is not UTF-8: rename it there") from None


def shown(refs: Mapping[str, str]) -> dict[str, str]:
    """The refs without what an import has put aside, or left there when it died."""
    return {ref: value for ref, value in refs.items() if not ref.startswith(ASIDE)}
