"""Telling one process from every other that ever had its pid, and finding what a dead one left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from base.embedded_postgres.processes import PROC, start_time

MARK = "OPENAGENTS_SUPERVISED"  # in the environment of every supervised process: names the start of `bin/up` it belongs to
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Identity:
    """One process, for ever: pid, when it started (clock ticks since boot) and which boot that was."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The identity of a living process."""
        started = start_time(pid)
        return None if started is None else cls(pid, started, boot_id())

    def age_seconds(self) -> float:
        """How long ago it started; of this boot only."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK")

    def is_alive(self) -> bool:
        return self.boot == boot_id() and start_time(self.pid) == self.started


@dataclass(frozen=True)
class Group:
    """A process group that a supervised process leads or led, and the mark in its members' environment."""

    leader: Identity
    mark: str

    def members(self) -> list[int]:
        """The living processes of the group, the leader among them if it lives.

        The kernel gives a group's number to nobody else while a member lives, so a living stranger under the leader's
        pid means that the group is gone. Where the leader is gone, a member must carry the mark besides.
        """
        if self.leader.boot != boot_id():
            return []
        led_by = start_time(self.leader.pid)
        if led_by is not None and led_by != self.leader.started:
            return []
        return [pid for pid in living_members(self.leader.pid) if led_by is not None or self._is_marked(pid)]

    def signal(self, number: signal.Signals) -> None:
        """Signal every member."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _is_marked(self, pid: int) -> bool:
        try:
            environment = (PROC / str(pid) / "environ").read_bytes()
        except OSError:
            return False
        return f"{MARK}={self.mark}".encode() in environment.split(b"\0")


def boot_id() -> str:
    """Changes with every boot of the machine."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def living_members(group: int) -> list[int]:
    """The processes in the group of this number, zombies left out."""
    return [pid for pid, number in _groups() if number == group]


def _groups() -> Iterator[tuple[int, int]]:
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] not in {"Z", "X"}:
            yield int(entry.name), int(fields[2])
