"""Repositories stay small on disk, and nothing that is in them is lost."""

from __future__ import annotations

import os
import shutil

import pytest

from forge import git, tidying
from tests.forge.conftest import refs_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def packs(repository):
    """The folder of the repository's packs, one for each of thirty commits."""
    path = git.path_of(repository.storage_key)
    tree = git.run(path, "mktree").strip()
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    commit = ""
    for number in range(30):
        parent = ["-p", commit] if commit else []
        commit = git.run(path, *who, "commit-tree", tree, *parent, "-m", f"{number}").strip()
        git.run(path, "update-ref", "refs/heads/main", commit)
        git.run(path, "repack", "-d", "--quiet")
    return path / "objects" / "pack"


def test_many_packs_become_few_and_every_commit_is_there(repository, packs):
    before = refs_of(repository)
    assert len(list(packs.glob("*.pack"))) >= tidying.MANY_PACKS

    assert tidying.tidy_all() == 1

    path = git.path_of(repository.storage_key)
    assert len(list(packs.glob("*.pack"))) < 5
    assert refs_of(repository) == before
    assert git.run(path, "rev-list", "--count", "main").strip() == "30"
    git.run(path, "fsck", "--strict")
    assert tidying.tidy_all() == 0


def test_what_a_killed_push_left_goes_after_two_days(repository):
    objects = git.path_of(repository.storage_key) / "objects"
    old, new = objects / "tmp_objdir-incoming-old", objects / "tmp_objdir-incoming-new"
    for folder in (old, new):
        (folder / "pack").mkdir(parents=True)
    os.utime(old, (1, 1))

    assert tidying.tidy_all() == 1

    assert (old.exists(), new.exists()) == (False, True)


def test_one_that_cannot_be_tidied_costs_only_itself(repository, packs, make_repository, owner):
    broken = make_repository(owner, "broken")
    shutil.rmtree(git.path_of(broken.storage_key))

    assert tidying.tidy_all() == 1
