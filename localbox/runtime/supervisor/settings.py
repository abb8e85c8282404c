"""What a supervisor is told when it is started, over its standard input so that no process list shows it."""

from __future__ import annotations

import json
import os

HOME = "/home/user"
TMP = "/tmp"  # noqa: S108 - the box's own /tmp, not the host's

SOCKET = "supervisor.sock"  # in the supervisor's own folder
RECORD = "supervisor.json"  # who the supervisor is, in the same place


class Limits:
    """Ceilings of the box, sizes in bytes."""

    __slots__ = ("file_bytes", "log_bytes", "memory_bytes", "output_bytes", "processes", "tmp_bytes")

    processes: int
    memory_bytes: int
    file_bytes: int
    tmp_bytes: int
    output_bytes: int
    log_bytes: int

    def __init__(self, values: dict[str, int]) -> None:
        for name in self.__slots__:
            setattr(self, name, int(values[name]))


class Settings:
    """One box: where it lies, whose it is, and how it is kept apart."""

    __slots__ = ("box_id", "bwrap", "env", "hidden", "limits", "network", "root", "uid")

    def __init__(self, text: bytes) -> None:
        values = json.loads(text)
        self.box_id: str = values["box_id"]
        self.root: str = values["root"]
        self.uid: int | None = values["uid"]
        self.env: dict[str, str] = values["env"]
        self.limits = Limits(values["limits"])
        self.network: bool = values["network"]
        self.bwrap: str | None = values["bwrap"]  # the program's path, or None for the plain sandbox
        self.hidden: list[str] = values["hidden"]  # the provider's own folders, never to be seen in a box

    @property
    def home(self) -> str:
        """The work directory as the host sees it."""
        return os.path.join(self.root, "home")

    @property
    def tmp(self) -> str:
        """The folder behind /tmp where the sandbox has no /tmp of its own."""
        return os.path.join(self.root, "tmp")

    @property
    def run(self) -> str:
        """The supervisor's own folder: socket, lock, records. Never the box's to read."""
        return os.path.join(self.root, "run")
