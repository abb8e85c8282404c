"""Where the processes of one machine keep their counters, so that any web process can tell all of them.

Read by the settings, before the library of metrics is loaded: it decides at import where it counts.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # of the library
COUNTING_ROLES = frozenset({"web", "scheduler", "worker"})
LOCK = ".lock"

log = logging.getLogger(__name__)


def count_in(folder: Path, role: str) -> Path | None:
    """Have this process keep its counters below `folder`; returns where, or None if it counts for itself alone.

    Only the processes that stay do so (`role`). What was left by processes that are all gone is removed first, so
    counters begin anew with the installation, and go on while any process of it lives. A folder that cannot be written to
    costs the counters and nothing else.
    """
    if role not in COUNTING_ROLES:
        return None
    own = folder / socket.gethostname()  # containers may share the folder, and number their processes alike
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_left_behind(own)
    except OSError as error:
        log.warning("metrics_folder_unusable: %s (%s)", own, error.strerror)
        return None
    os.environ[VARIABLE] = str(own)
    from openagents_site.metrics import allocated  # it loads the library, which looks for the variable then

    allocated.use()
    return own


def files_below(folder: Path) -> list[str]:
    """Every file of counters of every host that keeps them in `folder`; one that is just being made is left out."""
    return sorted(str(path) for path in folder.glob("*/*.db") if path.stat().st_size)


def _remove_left_behind(own: Path) -> None:
    with (own / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = list(own.glob("*.db"))
        if not any(_lives(path) for path in files):
            for path in files:
                path.unlink(missing_ok=True)


def _lives(path: Path) -> bool:
    """Whether the process whose counters these are is alive: `counter_<pid>.db`."""
    pid = path.stem.rpartition("_")[2]
    return pid.isdigit() and Path("/proc", pid).exists()
