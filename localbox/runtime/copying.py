"""Copying a box's files for a fork, while the source may be at work in them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from .interface import BoxSpec, RuntimeFault

_LEFT_BEHIND = ".openagents/commands"  # logs of the source's own detached commands
_CHUNK = 1 << 20
_EXCHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # gone, or another kind of thing, since it was listed
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_home(source: BoxSpec, target: BoxSpec) -> None:
    """Copy every file of the source's home that belongs to it; holes stay holes, hard links stay together.

    What vanishes meanwhile is skipped. Links are copied, never followed, so a box cannot point the copy at another's
    files. Raises `RuntimeFault` with `fork_failed`, for example when the disk is full.
    """
    try:
        _Copy(source, target).run()
    except (OSError, RecursionError) as error:
        raise RuntimeFault("fork_failed", f"the files could not be copied: {error}") from error


class _Copy:
    """One walk through the source's home, from open folder to open folder, so that none can be exchanged under it."""

    def __init__(self, source: BoxSpec, target: BoxSpec) -> None:
        self._source = source.root / "home"
        self._target = target.root / "home"
        self._owner = source.uid
        self._new_owner = target.uid
        self._linked: dict[tuple[int, int], Path] = {}  # files with several names, where they were copied to

    def run(self) -> None:
        self._copy_folder(os.open(self._source, _FOLDER), self._target)

    def _copy_folder(self, folder: int, target: Path) -> None:
        """Copy what is in an open folder, and close it."""
        try:
            for name in os.listdir(folder):
                self._copy_if_there(name, folder, target / name)
        finally:
            os.close(folder)

    def _copy_if_there(self, name: str, folder: int, place: Path) -> None:
        try:
            self._copy(name, folder, place)
        except OSError as error:
            if error.errno not in _EXCHANGED:
                raise

    def _copy(self, name: str, folder: int, place: Path) -> None:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if self._owner not in (None, info.st_uid) or place == self._target / _LEFT_BEHIND:
            return  # a hard link to a file that is not the box's, or the logs
        first = self._linked.get((info.st_dev, info.st_ino))
        if first is not None:
            os.link(first, place, follow_symlinks=False)
        elif stat.S_ISDIR(info.st_mode):
            inner = os.open(name, _FOLDER, dir_fd=folder)
            place.mkdir(mode=0o700, exist_ok=True)
            self._copy_folder(inner, place)
            self._dress(place, info)
        else:
            self._copy_one(name, folder, place, info)

    def _copy_one(self, name: str, folder: int, place: Path, info: os.stat_result) -> None:
        if stat.S_ISLNK(info.st_mode):
            place.symlink_to(os.readlink(name, dir_fd=folder))
        elif stat.S_ISREG(info.st_mode):
            _copy_content(name, folder, place)
        elif stat.S_ISFIFO(info.st_mode):
            os.mkfifo(place, 0o600)
        else:
            return  # sockets have no content, and a box has no devices
        if info.st_nlink > 1:
            self._linked[info.st_dev, info.st_ino] = place
        self._dress(place, info)

    def _dress(self, place: Path, info: os.stat_result) -> None:
        if self._new_owner is not None:
            os.chown(place, self._new_owner, self._new_owner, follow_symlinks=False)
        if not stat.S_ISLNK(info.st_mode):
            place.chmod(stat.S_IMODE(info.st_mode))
        os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


def _copy_content(name: str, folder: int, place: Path) -> None:
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        info = os.fstat(source)
        if not stat.S_ISREG(info.st_mode):
            raise FileNotFoundError(name)  # exchanged between the two looks
        target = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            for start, end in _extents(source, info.st_size):
                _copy_range(source, target, start, end)
            os.truncate(target, info.st_size)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _extents(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that hold data, without the holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole is left
            raise
        end = min(os.lseek(fd, start, os.SEEK_HOLE), size)
        yield start, end


def _copy_range(source: int, target: int, start: int, end: int) -> None:
    os.lseek(source, start, os.SEEK_SET)
    os.lseek(target, start, os.SEEK_SET)
    while start < end:
        data = os.read(source, min(_CHUNK, end - start))
        if not data:
            return  # cut short meanwhile
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
        start += len(data)
