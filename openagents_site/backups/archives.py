"""A folder in one file, and back again, while Git goes on changing what is in it.

A repository is copied in the order in which nothing can be missing: its loose refs, then the packed ones, into which loose ones move, and its
objects last. So whatever a copied ref names was there before its objects were listed. Where something has gone meanwhile, what took
its place is looked for.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from openagents_site.backups import BackupFailed

FIRST, LAST = ("refs", "packed-refs"), "objects"
UNFINISHED = (".tmp-", "tmp_", "incoming-")  # what Git is still writing, or was when it was killed
LEFT_OUT = ".lock"


def pack(source: Path, to: Path) -> None:
    """Write all folders and files below `source` to `to`; nothing if there is no such folder.

    Raises OSError, and BackupFailed for a link, of which a copy would keep the name and nothing else.
    """
    with tarfile.open(to, "w") as archive:
        if source.is_dir():
            _add(archive, source.resolve(), PurePosixPath("."))


def members_of(archive: Path) -> list[tarfile.TarInfo]:
    """What is in the archive. Raises OSError, and BackupFailed for one that holds anything else than files and folders, or
    anything that belongs elsewhere."""
    with _read(archive) as opened:
        return list(_checked(opened))


def unpack(archive: Path, target: Path) -> None:
    """Put everything back below `target`. Raises as `members_of` does."""
    with _read(archive) as opened:
        _extract(opened, list(_checked(opened)), target)


@contextmanager
def _read(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive) as opened:
            yield opened
    except tarfile.TarError as error:
        raise BackupFailed(detail=f"{archive} cannot be read: {error}.") from None


def _extract(archive: tarfile.TarFile, members: list[tarfile.TarInfo], target: Path) -> None:
    """Root gives each its owner back. Python before 3.11.4 has no filters."""
    if not hasattr(tarfile, "data_filter"):
        archive.extractall(target, members)  # noqa: S202 - looked through before
    elif os.geteuid() == 0:
        archive.extractall(target, members, filter="tar")
    else:
        archive.extractall(target, members, filter="data")


def _add(archive: tarfile.TarFile, path: Path, name: PurePosixPath) -> bool:
    """False if it has gone."""
    if path.is_symlink():
        raise BackupFailed(detail=f"{path} is a link. A copy holds no links: move there what it leads to.")
    if not (path.is_dir() or path.is_file()):
        return path.exists()
    try:
        (_add_folder if path.is_dir() else _add_file)(archive, path, name)
    except FileNotFoundError:
        return False
    return True


def _add_file(archive: tarfile.TarFile, path: Path, name: PurePosixPath) -> None:
    with path.open("rb") as file:
        archive.addfile(archive.gettarinfo(arcname=str(name), fileobj=file), file)


def _add_folder(archive: tarfile.TarFile, path: Path, name: PurePosixPath) -> None:
    """With what is in it. Is anything of that gone when its turn comes, the folder is read again."""
    archive.addfile(archive.gettarinfo(path, str(name)))
    taken: set[Path] = set()
    while fresh := sorted(set(path.iterdir()) - taken, key=_turn):
        taken.update(fresh)
        wanted = [entry for entry in fresh if not _is_unfinished(name / entry.name)]
        gone = [entry for entry in wanted if not _add(archive, entry, name / entry.name)]
        if not gone:
            return


def _is_unfinished(name: PurePosixPath) -> bool:
    is_of_objects = LAST in name.parts and FIRST[0] not in name.parts
    return name.name.endswith(LEFT_OUT) or (is_of_objects and any(mark in name.name for mark in UNFINISHED))


def _turn(path: Path) -> tuple[int, str]:
    rank = FIRST.index(path.name) if path.name in FIRST else len(FIRST) + (path.name == LAST)
    return rank, path.name


def _checked(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    seen: set[str] = set()
    for member in archive:
        is_here = _stays_inside(member.name) and (not member.islnk() or member.linkname in seen)
        if not is_here or not (member.isfile() or member.isdir() or member.islnk()):
            raise BackupFailed(detail=f"The copy holds {member.name!r}, which no copy of ours does.")
        seen.add(member.name)
        member.mode &= 0o755
        yield member


def _stays_inside(name: str) -> bool:
    return not name.startswith("/") and ".." not in PurePosixPath(name).parts
