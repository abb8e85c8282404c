"""Folders in one file: nothing is missing, whatever Git does meanwhile, and nothing is put where it does not belong."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from openagents_site.backups import BackupFailed, archives

CHANGES = 6
PACKS = 40
KEPT = ("HEAD", "packed-refs", "refs/heads/main", "refs/heads/incoming-work", "objects/pack/one.pack")


@pytest.fixture(params=["filters of Python", "none, as before 3.11.4"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "filters of Python":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    for name in ("ab/key.git/refs/heads", "ab/key.git/objects/pack", "ab/key.git/objects/incoming-x"):
        (made / name).mkdir(parents=True)
    for name in KEPT:
        (made / "ab/key.git" / name).write_text(name)
    (made / "ab/key.git/HEAD.lock").write_text("")
    (made / "ab/key.git/objects/pack/tmp_pack_x").write_text("half of it")
    return made


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def git(folder: Path, *arguments: str) -> str:
    who = {
        f"GIT_{role}_{what}": "a@b.example" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | who, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_put_back_is_what_was_there(folder: Path, tmp_path: Path, python: None) -> None:
    (folder / "ab/key.git/HEAD").chmod(0o600)
    os.link(folder / "ab/key.git/HEAD", folder / "ab/another")

    archives.pack(folder, tmp_path / "a.tar")
    archives.unpack(tmp_path / "a.tar", tmp_path / "back")

    back = tmp_path / "back/ab/key.git"
    assert {
        file.relative_to(back).as_posix(): file.read_text() for file in back.rglob("*") if file.is_file()
    } == {name: name for name in KEPT}
    assert (back / "HEAD").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "back/ab/another").read_text() == "HEAD"


def test_a_folder_that_is_reached_by_a_link_is_kept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)

    archives.pack(tmp_path / "link", tmp_path / "a.tar")

    assert "ab/key.git/HEAD" in names_in(tmp_path / "a.tar")


@pytest.mark.parametrize("to", ["ab/key.git", "nowhere"])
def test_a_link_inside_is_told(to: str, folder: Path, tmp_path: Path) -> None:
    (folder / "cd").symlink_to(folder / to)

    with pytest.raises(BackupFailed, match="cd is a link"):
        archives.pack(folder, tmp_path / "a.tar")


def test_what_is_no_folder_is_kept_as_nothing(tmp_path: Path) -> None:
    archives.pack(tmp_path / "nowhere", tmp_path / "a.tar")

    assert archives.members_of(tmp_path / "a.tar") == []


def test_refs_are_copied_before_what_they_name(folder: Path, tmp_path: Path) -> None:
    archives.pack(folder, tmp_path / "a.tar")

    names = [name.removeprefix("ab/key.git/") for name in names_in(tmp_path / "a.tar")]
    first, second, last = (
        names.index(name) for name in ("refs/heads/main", "packed-refs", "objects/pack/one.pack")
    )
    assert first < second < last


def test_what_takes_the_place_of_what_has_gone_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs, add = folder / "ab/key.git/objects/pack", archives._add

    def repacked(archive: tarfile.TarFile, path: Path, name: archives.PurePosixPath) -> bool:
        if path.name == "one.pack":
            path.rename(packs / "zero.pack")
        return add(archive, path, name)

    monkeypatch.setattr(archives, "_add", repacked)
    archives.pack(folder, tmp_path / "a.tar")

    assert [name for name in names_in(tmp_path / "a.tar") if name.endswith(".pack")] == [
        "ab/key.git/objects/pack/zero.pack"
    ]


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """A repository that is pushed to, repacked and whose refs are packed all the time."""
    bare, work, is_over = tmp_path / "root/bare.git", tmp_path / "work", threading.Event()
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(tmp_path, "init", "-q", "-b", "main", str(work))

    def change() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            git(work, "commit", "-q", "--allow-empty", "-m", str(number))
            git(
                work,
                "-c",
                "gc.auto=0",
                "push",
                "-q",
                str(bare),
                f"HEAD:refs/heads/b{number % CHANGES}",
                "--force",
            )
            if number % CHANGES == 0:
                git(bare, "-c", "gc.auto=0", "repack", "-d", "-q", "-a")
                git(bare, "pack-refs", "--all")

    thread = threading.Thread(target=change)
    thread.start()
    yield tmp_path / "root"
    is_over.set()
    thread.join()


def test_every_copy_of_a_busy_repository_is_whole(busy: Path, tmp_path: Path) -> None:
    for number in range(PACKS):
        archives.pack(busy, tmp_path / f"{number}.tar")
        archives.unpack(tmp_path / f"{number}.tar", tmp_path / f"back{number}")

        copy = tmp_path / f"back{number}/bare.git"
        assert "missing" not in git(copy, "fsck", "--connectivity-only", "--no-dangling")
        git(copy, "rev-list", "--objects", "--all")


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


STRANGE = [
    member("/tmp/absolute"),
    member("../outside"),
    member("a/../../outside"),
    member("link", tarfile.SYMTYPE, "/etc"),
    member("link", tarfile.SYMTYPE, "here"),
    member("link", tarfile.LNKTYPE, "/etc/passwd"),
    member("link", tarfile.LNKTYPE, "../outside"),
    member("pipe", tarfile.FIFOTYPE),
    member("disk", tarfile.BLKTYPE),
]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda made: f"{made.type!r} {made.name} {made.linkname}")
def test_what_no_copy_of_ours_holds_is_refused(
    strange: tarfile.TarInfo, tmp_path: Path, python: None
) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(member("harmless"), io.BytesIO())
        archive.addfile(strange, io.BytesIO())

    with pytest.raises(BackupFailed, match="no copy of ours"):
        archives.members_of(tmp_path / "a.tar")
    with pytest.raises(BackupFailed, match="no copy of ours"):
        archives.unpack(tmp_path / "a.tar", tmp_path / "back")

    assert not (tmp_path / "back").exists() or not list((tmp_path / "back").iterdir())


def test_what_is_no_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_text("nothing of the kind")

    with pytest.raises(BackupFailed, match="cannot be read"):
        archives.members_of(tmp_path / "a.tar")
