"""The Procfile: which processes one installation consists of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ENTRY = re.compile(r"^(?P<name>[a-z][a-z0-9_-]*):\s*(?P<command>\S.*)$")


class ProcfileError(Exception):
    """A line that is not `name: command`, or a name that is there twice."""


@dataclass(frozen=True)
class Entry:
    """One process. `command` is for sh and may use variables of the environment."""

    name: str
    command: str


def read(path: Path) -> list[Entry]:
    """The entries in the order written; blank lines and comments are skipped. Raises ProcfileError."""
    entries: dict[str, Entry] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = ENTRY.match(line)
        if match is None or match["name"] in entries:
            raise ProcfileError(f"{path.name}, line {number}: must be `name: command`, each name once")
        entries[match["name"]] = Entry(match["name"], match["command"].strip())
    return list(entries.values())
