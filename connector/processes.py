"""Ending an agent with everything that it started, also what has left its group or lost its parent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

import psutil

MARK = "OPENAGENTS_DELEGATION"
"""A variable in the surroundings of every process of a delegation, by which it is found again."""

GRACE_SECONDS = 3.0
ROUNDS = 20


async def end_all(job: str, root: int | None = None) -> int:
    """End every process of the delegation: ask first, then make. Returns how many there were. Sees them again until none is
    left, since a process may start another while it is being ended."""
    seen: set[int] = set()
    family = await asyncio.to_thread(_family, job, root)
    seen |= {process.pid for process in family}
    _each(family, "terminate")
    for _ in range(int(GRACE_SECONDS / 0.1)):
        if not family:
            return len(seen)
        await asyncio.sleep(0.1)
        family = [process for process in family if _lives(process)]
    for _ in range(ROUNDS):
        family = await asyncio.to_thread(_family, job, root)
        if not family:
            break
        seen |= {process.pid for process in family}
        _each(family, "kill")
        await asyncio.sleep(0.1)
    return len(seen)


def _family(job: str, root: int | None) -> list[psutil.Process]:
    """The processes of a delegation: those that descend from its agent, and those that carry its mark."""
    found: dict[int, psutil.Process] = {}
    if root is not None:
        try:
            agent = psutil.Process(root)
            found |= {process.pid: process for process in [agent, *agent.children(recursive=True)]}
        except psutil.Error:
            pass
    for process in psutil.process_iter():
        if process.pid not in found and (_is_of_session(process, root) or _carries_mark(process, job)):
            found[process.pid] = process
    return [process for process in found.values() if process.pid != os.getpid() and _lives(process)]


def _is_of_session(process: psutil.Process, root: int | None) -> bool:
    """Whether it is of the session that the agent leads; also when its parent is gone."""
    try:
        return root is not None and os.getsid(process.pid) == root
    except OSError:
        return False


def _carries_mark(process: psutil.Process, job: str) -> bool:
    try:
        return process.environ().get(MARK) == job
    except (psutil.Error, OSError):
        return False


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
