"""Ending an agent with everything that it started, also what has left its group or lost its parent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from connector.keeper import CLEAR, KEEPS

MARK = "OPENAGENTS_DELEGATION"
"""A variable in the surroundings of every process of a delegation, by which it is found again."""

GRACE_SECONDS = 3.0
ROUNDS = 20


@dataclass(frozen=True)
class Root:
    """A process that leads a session of a delegation. psutil tells it from one that gets its number later, whatever clocks do."""

    process: psutil.Process

    @classmethod
    def of(cls, pid: int) -> Root | None:
        """None where it is gone already: what it started is found by its parents then, or by its mark."""
        try:
            return cls(psutil.Process(pid))
        except psutil.Error:
            return None

    def leads(self, session: int) -> bool:
        """Whether a session of this number is its own. Nobody gets the number of a session that has members, so it is where the
        leader is gone; one who is there must be the same."""
        return session == self.process.pid and (self.process.is_running() or not psutil.pid_exists(session))


async def end_all(job: str, *roots: Root) -> int:
    """End every process of the delegation: ask first, then make. Returns how many there were. Sees them again until none is
    left, since a process may start another while it is being ended; whole groups are made to end, out of which nobody gets by a
    fork. A keeper ends by itself after all others, since what loses its parent meanwhile comes back to it, and is made to only if
    it does not. `roots` are the keeper of this life and the agent that it started."""
    family = await asyncio.to_thread(_family, job, roots)
    seen = set(family)
    _each(_but_keepers(seen, job), signal.SIGTERM)
    for _ in range(int(GRACE_SECONDS / 0.1)):
        if not any(_lives(process) for process in _but_keepers(seen, job)):
            break
        await asyncio.sleep(0.1)
    for _ in range(ROUNDS):
        seen |= set(await asyncio.to_thread(_family, job, roots))
        family = [process for process in seen if _lives(process)]
        if not family:
            break
        others = _but_keepers(family, job)
        _each(set(family) - set(others), CLEAR)
        _each_group(others)
        await asyncio.sleep(0.1)
    _each(family, signal.SIGKILL)
    return len(seen)


async def to_its_end(job: str, roots: Iterable[Root] = ()) -> None:
    """`end_all`, also where this is cancelled meanwhile: nothing of a delegation is left running because somebody is in a hurry."""
    ending, cancelled = asyncio.create_task(end_all(job, *roots)), None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _family(job: str, roots: tuple[Root, ...]) -> list[psutil.Process]:
    """The processes of a delegation: those that carry its mark or are of a session that a root leads, and all that descend from them."""
    found = {process.pid: process for process in psutil.process_iter() if _is_of(process, job, roots)}
    for process in list(found.values()):
        try:
            found |= {child.pid: child for child in process.children(recursive=True)}
        except psutil.Error:
            continue
    return [process for process in found.values() if process.pid != os.getpid() and _lives(process)]


def _is_of(process: psutil.Process, job: str, roots: tuple[Root, ...]) -> bool:
    return _is_of_session(process, roots) or _carries(process, MARK, job) or _carries(process, KEEPS, job)


def _is_of_session(process: psutil.Process, roots: tuple[Root, ...]) -> bool:
    """Whether it is of the session that a root leads; also when its parent is gone."""
    try:
        session = os.getsid(process.pid)
    except OSError:
        return False
    return any(root.leads(session) for root in roots)


def _carries(process: psutil.Process, name: str, job: str) -> bool:
    try:
        return process.environ().get(name) == job
    except (psutil.Error, OSError):
        return False


def _but_keepers(family: Iterable[psutil.Process], job: str) -> list[psutil.Process]:
    return [process for process in family if not _carries(process, KEEPS, job)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _each(family: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _each_group(family: Iterable[psutil.Process]) -> None:
    """Kill them, and with each its group, unless that is the connector's own. An agent leads a session of its own, so a group
    beneath it has no other members."""
    for process in family:
        with contextlib.suppress(psutil.Error, OSError):
            group = os.getpgid(process.pid)
            process.kill()  # if it is still the same
            if group != os.getpgrp():
                os.killpg(group, signal.SIGKILL)
