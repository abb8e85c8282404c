"""Paths as a client names them, and where they are on this side.

A client knows two places: /home/user and /tmp. Where the sandbox has folders elsewhere, they are mapped. Symlinks
are followed by the client's names, so that a link to anywhere else is seen for what it is.
"""

from __future__ import annotations

import os
import stat

from .fault import Fault
from .settings import HOME, TMP

_MAX_LINKS = 40  # as the kernel does
_LONGEST = 4095  # bytes; the kernel takes no longer one either


class View:
    """How the two places a client knows are called where the calling process runs."""

    def __init__(self, home: str, tmp: str) -> None:
        self.home = home
        self.tmp = tmp

    def real(self, path: str) -> str:
        """Where a client's absolute path is for this process."""
        for name, place in ((HOME, self.home), (TMP, self.tmp)):
            if path == name or path.startswith(name + "/"):
                return place + path[len(name) :]
        return path

    def shown(self, path: str) -> str:
        """What a client calls this place; a path that is in neither folder stays as it is."""
        for name, place in ((HOME, self.home), (TMP, self.tmp)):
            if path == place or path.startswith(place + "/"):
                return name + path[len(place) :]
        return path

    def resolve(self, path: str) -> str:
        """The client's canonical name of `path`: absolute, without links. Parts that do not exist are kept.

        Raises `Fault` with `invalid_path` if it is not in the work directory or /tmp.
        """
        if not path or "\0" in path or not _is_text(path):
            raise Fault(
                "invalid_path", "the path is empty, too long, not valid Unicode, or has a zero byte in it"
            )
        found = self._walk(self.shown(os.path.join(HOME, path)))
        if not _inside(found):
            raise Fault("invalid_path", f"{path!r} is not in {HOME} or {TMP}")
        return found

    def _walk(self, path: str) -> str:
        todo, done, links = path.split("/")[::-1], "", 0
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                done = os.path.dirname(done).rstrip("/")
                continue
            target = self._link(f"{done}/{name}")
            if target is None:
                done = self.shown(f"{done}/{name}")
                continue
            links += 1
            if links > _MAX_LINKS:
                raise Fault("invalid_path", "the path has too many symbolic links")
            if target.startswith("/"):
                done = ""
            todo += target.split("/")[::-1]
        return done or "/"

    def _link(self, path: str) -> str | None:
        place = self.real(path)
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return os.readlink(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Fault("invalid_path", f"{path}: {error.strerror}") from error
        return None


def _is_text(path: str) -> bool:
    try:
        return len(path.encode()) <= _LONGEST
    except UnicodeEncodeError:
        return False


def _inside(path: str) -> bool:
    return path in (HOME, TMP) or path.startswith((HOME + "/", TMP + "/"))
