"""Ending an agent with everything that it started, also what has left its group or lost its parent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

import psutil

from connector.keeper import KEEPS

MARK = "OPENAGENTS_DELEGATION"
"""A variable in the surroundings of every process of a delegation, by which it is found again."""

GRACE_SECONDS = 3.0
ROUNDS = 20


async def end_all(job: str, *roots: int) -> int:
    """End every process of the delegation: ask first, then make. Returns how many there were. Sees them again until none is
    left, since a process may start another while it is being ended. A keeper ends by itself after all others, since what
    loses its parent meanwhile comes back to it, and is made to only if it does not. `roots` are the keeper of this life and the agent that it started."""
    family = await asyncio.to_thread(_family, job, roots)
    seen = set(family)
    _each(_but_keepers(seen, job), "terminate")
    for _ in range(int(GRACE_SECONDS / 0.1)):
        if not any(_lives(process) for process in _but_keepers(seen, job)):
            break
        await asyncio.sleep(0.1)
    for _ in range(ROUNDS):
        seen |= set(await asyncio.to_thread(_family, job, roots))
        family = [process for process in seen if _lives(process)]
        if not family:
            break
        _each(_but_keepers(family, job), "kill")
        await asyncio.sleep(0.1)
    _each(family, "kill")
    return len(seen)


def _family(job: str, roots: tuple[int, ...]) -> list[psutil.Process]:
    """The processes of a delegation: those that carry its mark or are of a session that a root leads, and all that descend from them."""
    found = {process.pid: process for process in psutil.process_iter() if _is_of(process, job, roots)}
    for process in list(found.values()):
        try:
            found |= {child.pid: child for child in process.children(recursive=True)}
        except psutil.Error:
            continue
    return [process for process in found.values() if process.pid != os.getpid() and _lives(process)]


def _is_of(process: psutil.Process, job: str, roots: tuple[int, ...]) -> bool:
    return _is_of_session(process, roots) or _carries(process, MARK, job) or _carries(process, KEEPS, job)


def _is_of_session(process: psutil.Process, roots: tuple[int, ...]) -> bool:
    """Whether it is of the session that a root leads; also when its parent is gone. Nobody gets the number of a session that has members."""
    try:
        return os.getsid(process.pid) in roots
    except OSError:
        return False


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


def _each(family: Iterable[psutil.Process], how: str) -> None:
    for process in family:
        try:
            getattr(process, how)()
        except psutil.Error:
            continue
