"""The folders that agents may work in, as the file system really has them: links are followed before anything is compared."""

from __future__ import annotations

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
    """What lies inside some folders."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = [Path(folder).resolve() for folder in folders if Path(folder).is_absolute()]

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


def real(path: str) -> Path | None:
    """Where an absolute path really leads; None for one that is not absolute or leads nowhere (a loop of links)."""
    try:
        given = Path(path)
        return given.resolve() if given.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None
