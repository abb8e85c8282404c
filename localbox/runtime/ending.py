"""Ending a box for certain: asked first, and if that does not do it, from outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time

from .exchange import ask
from .interface import BoxSpec, RuntimeFault, SupervisorRecord
from .layout import RUN, is_private
from .supervisor import processes
from .supervisor.settings import RECORD

_ASK_SECONDS = 30.0  # above the supervisor's own limit for ending a box
_GONE_SECONDS = 20.0
_LOOK_SECONDS = 0.01
_LONGEST_LOOK_SECONDS = 0.25  # each look goes through all processes of the machine
_ATTEMPTS = 100
_PATIENT_ATTEMPTS = 3


async def end_box(spec: BoxSpec, record: SupervisorRecord | None) -> int:
    """End every process of a box, its supervisor last; returns how many had to be ended from outside.

    Raises `RuntimeFault` with `stop_failed` if a process is left.
    """
    alive = record is not None and processes.is_alive(record.pid, record.start_time)
    if record is not None and alive and await _ended_itself(record):
        return 0
    return await asyncio.to_thread(_end_rest, spec, record)


def recorded(spec: BoxSpec) -> SupervisorRecord | None:
    """The supervisor that last wrote itself down in the box's folder, alive or not."""
    folder = spec.root / RUN
    if not is_private(folder):
        return None
    try:
        values = json.loads((folder / RECORD).read_text())
        return SupervisorRecord(int(values["pid"]), int(values["start_time"]), str(values["socket"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _ended_itself(record: SupervisorRecord) -> bool:
    """Whether the supervisor ended the box, saw to it that nothing is left, and ended."""
    try:
        answer = await ask(record, {"do": "stop"}, seconds=_ASK_SECONDS)
    except RuntimeFault:
        return False
    until = time.monotonic() + _GONE_SECONDS
    while processes.is_alive(record.pid, record.start_time):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return bool(answer.header["stopped"])


def _end_rest(spec: BoxSpec, record: SupervisorRecord | None) -> int:
    """The supervisor and all below it, all of the box's uid, all that carries the box's mark: until none is left."""
    ended: set[int] = set()
    for attempt in range(_ATTEMPTS):
        left = _left(spec, record, attempt)
        if not left:
            return len(ended)
        ended |= left
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                processes.send(pid, number)
        if attempt >= _PATIENT_ATTEMPTS:
            _bury(spec, ended)
        time.sleep(min(_LONGEST_LOOK_SECONDS, _LOOK_SECONDS * max(1.0, attempt / 10)))
    raise RuntimeFault("stop_failed", "some processes of the box could not be ended")


def _bury(spec: BoxSpec, ended: set[int]) -> None:
    """Collect those of the dead that came to this process, as orphans do to the first process of a container: the kernel
    ends no namespace before the last one that was in it is collected."""
    dead = set(ended)
    if spec.uid is not None:
        dead |= {pid for pid in processes.pids() if spec.uid in processes.uids(pid)}
    for pid in dead:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _left(spec: BoxSpec, record: SupervisorRecord | None, attempt: int) -> set[int]:
    """The supervisor itself only after its descendants, which would lose themselves without it."""
    table = processes.table()
    left = set(processes.with_descendants(leftovers([spec])[spec.box_id], table))
    if record is not None and processes.is_alive(record.pid, record.start_time):
        below = set(processes.descendants(record.pid, table))
        left = (left | below) - {record.pid}
        if not below or attempt > _PATIENT_ATTEMPTS:
            left.add(record.pid)
    return left


def leftovers(specs: list[BoxSpec]) -> dict[str, list[int]]:
    """Living processes of these boxes, by their uid and by the mark in their environment, in one look at all
    processes of the machine."""
    by_uid = {spec.uid: spec.box_id for spec in specs if spec.uid is not None}
    by_mark = {f"BOX_ID={spec.box_id}".encode(): spec.box_id for spec in specs}
    found: dict[str, list[int]] = {spec.box_id: [] for spec in specs}
    for pid in processes.pids() if specs else []:
        box_id = _owner(pid, by_uid, by_mark)
        if box_id is not None and pid != os.getpid() and processes.lives(pid):
            found[box_id].append(pid)
    return found


def _owner(pid: int, by_uid: dict[int, str], by_mark: dict[bytes, str]) -> str | None:
    names = [by_uid.get(uid) for uid in processes.uids(pid)] if by_uid else []
    names += [by_mark.get(entry) for entry in processes.environment(pid)]
    return next((name for name in names if name is not None), None)
