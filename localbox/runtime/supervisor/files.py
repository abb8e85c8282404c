"""Reading and writing the box's files. Everything here runs in a child that is the box's user already, so it can
do no more than the box's own commands can."""

from __future__ import annotations

import errno
import os
import stat

from .fault import Fault
from .sandbox import Sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .wire import Header

_COPY = 1 << 22
_NEW_FILE = 0o644


def read(sandbox: Sandbox, path: str) -> tuple[Header, list[int]]:
    """The file, opened, and its canonical name."""
    name = sandbox.view.resolve(path)
    fd = open_regular(sandbox.view.real(name), name)
    size = os.fstat(fd).st_size
    if size > sandbox.settings.limits.file_bytes:
        raise Fault(
            "file_too_large", f"{name} has {size} bytes; {sandbox.settings.limits.file_bytes} can be read"
        )
    return {"path": name, "size": size}, [fd]


def write(sandbox: Sandbox, path: str, content: int) -> tuple[Header, list[int]]:
    """Put what the open file `content` holds at `path`: readers see the old file or the new one, whole."""
    name = sandbox.view.resolve(path)
    size = os.fstat(content).st_size
    if size > sandbox.settings.limits.file_bytes:
        raise Fault("file_too_large", f"{size} bytes; a file may have {sandbox.settings.limits.file_bytes}")
    place = sandbox.view.real(name)
    try:
        mode = _mode_to_keep(place, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _replace(place, content, size, mode)
    except OSError as error:
        raise _fault(error, name) from error
    return {"path": name}, []


def disk(sandbox: Sandbox) -> tuple[Header, list[int]]:
    """Bytes on disk of everything in the home; a file with several names counts once."""
    total, seen = 0, set()
    todo = [sandbox.view.home]
    while todo:
        for entry in _entries(todo.pop()):
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            if (info.st_dev, info.st_ino) in seen:
                continue
            if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
                seen.add((info.st_dev, info.st_ino))
            total += info.st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
    return {"bytes": total}, []


def logs(sandbox: Sandbox, paths: list[str]) -> tuple[Header, list[int]]:
    """Log files of a detached command, opened. One that the box has removed is left out of `found`."""
    found: list[object] = []
    fds = []
    for index, path in enumerate(paths):
        try:
            fds.append(open_regular(path, path))
            found.append(index)
        except Fault:
            continue
    return {"found": found}, fds


def open_regular(place: str, name: str) -> int:
    """Open a file for reading; anything but a regular file is refused without waiting for it."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _fault(error, name) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Fault("invalid_path", f"{name} is a directory or not a regular file")
    return fd


def _mode_to_keep(place: str, name: str) -> int:
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        return _NEW_FILE
    if not stat.S_ISREG(mode):
        raise Fault("invalid_path", f"{name} is a directory or not a regular file")
    return stat.S_IMODE(mode)


def _replace(place: str, content: int, size: int, mode: int) -> None:
    new = os.path.join(os.path.dirname(place), f".{os.urandom(8).hex()}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _copy(content, fd, size)
        os.fchmod(fd, mode)
        os.rename(new, place)
    except OSError:
        os.unlink(new)
        raise
    finally:
        os.close(fd)


def _copy(source: int, target: int, size: int) -> None:
    offset = 0
    while offset < size:
        sent = os.sendfile(target, source, offset, min(_COPY, size - offset))
        if sent == 0:
            raise OSError(errno.EIO, "the content ended early")
        offset += sent


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []  # not readable, or gone meanwhile


def _fault(error: OSError, name: str) -> Fault:
    """A client's words for what the file system said."""
    if error.errno == errno.ENOENT:
        return Fault("not_found", f"{name} does not exist")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Fault("file_too_large", f"{name}: {error.strerror}")
    return Fault("invalid_path", f"{name}: {error.strerror}")
