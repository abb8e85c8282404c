"""What a supervisor writes down of its processes, so that the next one can end what a killed one left running."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict
from pathlib import Path

from base.embedded_postgres.processes import wait_until

from .identity import Group, Identity

GRACE_SECONDS = 10.0  # for a left-over process to end by itself once asked


def write(folder: Path, name: str, group: Group) -> None:
    """Record the group of the process `name`; on the disk before this returns."""
    partial = folder / f"{name}.part"
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"leader": asdict(group.leader), "mark": group.mark}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / f"{name}.json")


def remove(folder: Path, name: str) -> None:
    """The process `name` and its group have ended."""
    (folder / f"{name}.json").unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Group]:
    """The recorded groups by process name; a file that cannot be understood is passed over."""
    groups: dict[str, Group] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
            groups[path.stem] = Group(Identity(**record["leader"]), str(record["mark"]))
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return groups


def end_leftovers(folder: Path, kill_at_once: frozenset[str] = frozenset()) -> list[str]:
    """End every recorded process that still runs, and its group. The names of those that did.

    A process is asked first, alone (a scheduler whose whole group is asked never ends), and given `GRACE_SECONDS`;
    then its group is killed. Those in `kill_at_once` are not asked: being asked would make them end what they guard.
    """
    running = {name: group for name, group in read(folder).items() if group.members()}
    for name, group in running.items():
        if group.leader.is_alive():
            os.kill(group.leader.pid, signal.SIGKILL if name in kill_at_once else signal.SIGTERM)
    wait_until(lambda: not any(group.leader.is_alive() for group in running.values()), GRACE_SECONDS)
    for group in running.values():
        group.signal(signal.SIGKILL)
    wait_until(lambda: not any(group.members() for group in running.values()), GRACE_SECONDS)
    for path in folder.glob("*.json"):
        path.unlink()
    return list(running)
