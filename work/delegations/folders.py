"""Whether a folder is inside one of a machine's declared folders, by its name alone. Pure.

What only the machine can see, such as a link that leads out, it is asked about. The machine's files may follow POSIX or
Windows rules; a root says which by its own form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_RESERVED = re.compile(r'[<>:"|?*\x00-\x1f]')


def is_inside(folder: str, roots: Iterable[str]) -> bool:
    """Whether `folder` is one of `roots` or below one. Only absolute names without `.` and `..` ever are."""
    return any(_is_below(folder, root) for root in roots)


def _is_below(folder: str, root: str) -> bool:
    if _DRIVE.match(root):
        return _starts_with(_windows_parts(folder), _windows_parts(root))
    if root.startswith("/"):
        return _starts_with(_posix_parts(folder), _posix_parts(root))
    return False


def _starts_with(parts: list[str] | None, beginning: list[str] | None) -> bool:
    return parts is not None and beginning is not None and parts[: len(beginning)] == beginning


def _posix_parts(path: str) -> list[str] | None:
    """The names along an absolute path, or None for a path that is not plainly one."""
    if not path.startswith("/") or path.startswith("//") or "\0" in path:
        return None
    return _plain(path.split("/")[1:])


def _windows_parts(path: str) -> list[str] | None:
    """The same for `C:\\...`, in one case. Shares, device names and names that Windows reads as others (a trailing dot or
    blank, a stream) are not plain paths."""
    if not _DRIVE.match(path):
        return None
    parts = _plain(re.split(r"[\\/]", path[3:]))
    if parts is None or any(
        _RESERVED.search(part) or part[-1:] in {".", " "} or "~" in part for part in parts
    ):
        return None
    return [path[0].casefold(), *(part.casefold() for part in parts)]


def _plain(parts: list[str]) -> list[str] | None:
    """Without the empty name that one final slash leaves; None where any other name is empty, `.` or `..`."""
    if parts and parts[-1] == "":
        parts = parts[:-1]
    return None if any(part in {"", ".", ".."} for part in parts) else parts
