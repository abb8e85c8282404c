"""Whether a recorded supervisor is still the process it was."""

from __future__ import annotations

from pathlib import Path

from .runtime.interface import SupervisorRecord

_GONE = ("Z", "X")


def is_alive(record: SupervisorRecord) -> bool:
    """A pid alone may have been given to another process; with its start time it names one for ever."""
    try:
        stat = Path(f"/proc/{record.pid}/stat").read_text()
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    return fields[0] not in _GONE and int(fields[19]) == record.start_time
