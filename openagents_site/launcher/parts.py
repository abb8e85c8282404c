"""The parts of one installation, made from its Procfile."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .child import Child, Place
from .logs import LogFile
from .part import Part
from .procfile import Entry

PROVIDER = "provider"
DATABASE = "postgres"
# Who uses others stops first: nobody is left asking for what is gone.
STOP_PHASES = {PROVIDER: 1, DATABASE: 2}
# A provider that is asked to end ends its boxes with it, and what runs in them. If only the supervisor was killed, the
# provider is killed as well, its boxes go on, and the next provider finds them.
KILLED_AT_ONCE = frozenset({PROVIDER})


def parts_of(
    entries: Iterable[Entry], environment_of: Callable[[str], Mapping[str, str]], place: Place, logs: Path
) -> list[Part]:
    """One part for each entry. `environment_of` gives the environment of the process of that name."""
    return [
        Part(
            name=entry.name,
            process=Child(
                entry.name,
                entry.command,
                environment_of(entry.name),
                place,
                dies_by=signal.SIGKILL if entry.name in KILLED_AT_ONCE else signal.SIGTERM,
            ),
            log=LogFile(logs, entry.name),
            stop_phase=STOP_PHASES.get(entry.name, 0),
        )
        for entry in entries
    ]
