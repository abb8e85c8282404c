"""Where one server keeps its files, worked out from its folder alone so that every process finds the same socket."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

PORT = 5432  # part of the socket's file name only: nothing listens on TCP
LONGEST_SOCKET_FOLDER = 90  # bytes; a unix socket's whole path ends at 107 and its file name takes 20
SHORT_FOLDERS_OF_ROOT = Path("/run/openagents-boxes")
SHORT_FOLDERS_OF_USERS = Path("/tmp")  # noqa: S108 - checked for its owner by whoever serves and whoever connects


@dataclass(frozen=True)
class Layout:
    """The files of the server in `folder`, which is absolute and free of links."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Layout:
        return cls(folder.resolve())

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def supervisor_log(self) -> Path:
        return self.folder / "supervisor.log"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the one process that starts, watches and ends the server."""
        return self.folder / "supervisor.lock"

    @property
    def server_lock(self) -> Path:
        """Held by every process of the server: while one of them lives, the data is in use."""
        return self.folder / "server.lock"

    @property
    def name(self) -> str:
        """Shown in the title of each of the server's processes (`cluster_name`)."""
        return "openagents-boxes-" + self._digest

    @property
    def run(self) -> Path:
        """The folder of the socket: `run/`, or a short one where that is too long for a socket or holds a comma."""
        usual = self.folder / "run"
        if len(os.fsencode(usual)) <= LONGEST_SOCKET_FOLDER and "," not in str(usual):
            return usual
        if os.geteuid() == 0:
            return SHORT_FOLDERS_OF_ROOT / self._digest
        return SHORT_FOLDERS_OF_USERS / f"openagents-boxes-{os.geteuid()}-{self._digest}"

    @property
    def socket(self) -> Path:
        return self.run / f".s.PGSQL.{PORT}"

    @property
    def _digest(self) -> str:
        return hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
