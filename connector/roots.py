"""The folders that agents may work in, as the file system really has them: links are followed before anything is compared."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from connector.errors import ConnectorError


def declared(folders: Iterable[str]) -> list[str]:
    """The folders as absolute names without links, for the server to know. Raises ConnectorError for one that is not a folder."""
    roots = []
    for folder in folders:
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise ConnectorError(f"{folder} is not a folder")
        root = str(path.resolve())
        if root not in roots:
            roots.append(root)
    return roots


class Roots:
    """What lies inside some folders. They were declared without links: one that has become a link since is none any more."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = [Path(folder) for folder in folders if real(folder) == Path(folder)]

    def holds(self, path: str) -> bool:
        """Whether the absolute `path`, links and `..` resolved, is one of the folders or below one. A file that is not there
        yet counts as what it would become."""
        resolved = real(path)
        return resolved is not None and any(resolved.is_relative_to(folder) for folder in self._folders)

    def within(self, others: Roots) -> Roots:
        """What lies inside these folders and inside the others too."""
        both = Roots([])
        both._folders = [folder for folder in self._folders if others.holds(str(folder))]
        both._folders += [folder for folder in others._folders if self.holds(str(folder))]
        return both

    def open_file(self, file: Path, flags: int, *, make_folders: bool = False) -> int:
        """A descriptor of the regular file that `real` named. No link is followed on the way: where one has come in between
        since, that is an OSError, as is anything but a file."""
        folder = next((one for one in self._folders if file.is_relative_to(one)), None)
        names = () if folder is None else file.relative_to(folder).parts
        if folder is None or not names:
            raise OSError(errno.EISDIR, "this is no file inside the declared folders")
        below = os.open(folder, _FOLDER)
        try:
            for name in names[:-1]:
                below = _step_down(below, name, make_folders)
            return _regular(os.open(names[-1], flags | _FILE, 0o666, dir_fd=below))
        finally:
            os.close(below)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = (
    os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # without waiting: what is no file might make one wait for ever


def _step_down(folder: int, name: str, make: bool) -> int:
    """The folder below an open one, which is closed if that succeeds."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    below = os.open(name, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below


def _regular(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "this is no file")
    return descriptor


def real(path: str) -> Path | None:
    """Where an absolute path really leads; None for one that is not absolute or leads nowhere (a loop of links)."""
    try:
        given = Path(path)
        return given.resolve() if given.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None
