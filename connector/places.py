"""Where the connector keeps what it must remember: a folder of mode 700 with files of mode 600."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from connector.errors import AlreadyRunning, ConnectorError, NotPaired

STATE_VARIABLE = "OPENAGENTS_CONNECTOR_STATE"
KEPT_MODE = 0o600


@dataclass
class Pairing:
    """What came of the pairing. `token` is all that the server knows this computer by."""

    server: str
    machine_id: str
    name: str
    tier: str
    token: str
    roots: list[str]
    agents: dict[str, list[str]] = field(default_factory=dict)
    """Agents that the owner named himself: id and command."""


class Places:
    """The files of one connector."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pairing_file = folder / "pairing.json"
        self.journal_file = folder / "journal.sqlite3"
        self.lock_file = folder / "run.lock"
        self.credentials = folder / "credentials"

    def prepare(self) -> None:
        """Make the folders, for nobody else's eyes."""
        for folder in (self.folder, self.credentials):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def load(self) -> Pairing:
        """What came of the pairing. Raises NotPaired, and ConnectorError for a file that cannot be read."""
        try:
            self.pairing_file.chmod(KEPT_MODE)
            return Pairing(**json.loads(self.pairing_file.read_text()))
        except FileNotFoundError:
            raise NotPaired("this computer is not paired: run `python -m connector pair`") from None
        except (OSError, ValueError, TypeError) as error:
            raise ConnectorError(f"{self.pairing_file} cannot be read: {type(error).__name__}") from None

    def save(self, pairing: Pairing) -> None:
        """Keep the pairing: all of it or nothing, whenever this dies."""
        self.prepare()
        write_private(self.pairing_file, json.dumps(asdict(pairing), indent=2) + "\n")

    def forget(self) -> None:
        """Remove what came of the pairing, and everything that was to be told."""
        journal = self.folder.glob(f"{self.journal_file.name}*")
        for file in [self.pairing_file, *journal, *self.credentials.glob("*")]:
            file.unlink(missing_ok=True)

    def lock(self) -> int:
        """Be the one connector that runs from this folder, until the process ends. Raises AlreadyRunning."""
        self.prepare()
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, KEPT_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise AlreadyRunning(f"a connector runs already with {self.folder}") from None
        return descriptor

    def is_running(self) -> bool:
        """Whether a connector runs from this folder."""
        try:
            os.close(self.lock())
        except AlreadyRunning:
            return True
        return False


def default_folder() -> Path:
    """The folder for what a program remembers, as the system has it."""
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if platform.system() == "Darwin":
        return Path.home() / "Library" / "Application Support" / "openagents-connector"
    state_home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state_home) / "openagents-connector"


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, never half of it."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # made with mode 600
    try:
        with os.fdopen(descriptor, "w") as draft:
            draft.write(text)
            draft.flush()
            os.fsync(draft.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
