"""Both runtimes: a supervisor per box. They differ in the walls that the supervisor builds."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Literal

from . import copying, layout
from .ending import end_box, leftovers, recorded
from .exchange import ask
from .handle import SupervisedBox
from .interface import BoxSpec, RuntimeFault, SupervisorRecord
from .launching import launch
from .supervisor import processes

_PING_SECONDS = 10.0


class SupervisedRuntime:
    """`Runtime`. With the path of a bwrap program boxes have namespaces of their own, without they are plain."""

    def __init__(self, name: Literal["bwrap", "plain"], reason: str, bwrap: str | None = None) -> None:
        self.name = name
        self.reason = reason
        self._bwrap = bwrap

    async def start(self, spec: BoxSpec) -> SupervisedBox:
        """Bring a box up; what an earlier life left in it is ended first.

        Raises `RuntimeFault`: `start_failed`, `invalid_env`, or `stop_failed` if a leftover cannot be ended.
        """
        _check(spec)
        earlier = recorded(spec)
        if earlier is not None:  # a supervisor that ends in order takes its record with it
            await end_box(spec, earlier)
        layout.prepare(spec)
        return SupervisedBox(spec, await launch(spec, self._bwrap))

    async def adopt(self, spec: BoxSpec, record: SupervisorRecord) -> SupervisedBox | None:
        """See `Runtime.adopt`."""
        if not processes.is_alive(record.pid, record.start_time):
            return None
        try:
            answer = await ask(record, {"do": "ping"}, seconds=_PING_SECONDS)
        except RuntimeFault:
            return None
        return SupervisedBox(spec, record) if answer.header.get("box_id") == spec.box_id else None

    async def sweep(self, specs: list[BoxSpec]) -> int:
        """See `Runtime.sweep`. One box that cannot be ended does not keep the others from it; it is raised last."""
        found = await asyncio.to_thread(leftovers, specs)
        faults, ended = [], 0
        for spec in specs:
            record = recorded(spec)
            alive = record is not None and processes.is_alive(record.pid, record.start_time)
            if not alive and not found[spec.box_id]:
                continue
            try:
                ended += max(await end_box(spec, record), len(found[spec.box_id]))
            except RuntimeFault as fault:
                faults.append(fault)
        if faults:
            raise faults[0]
        return ended

    async def copy_home(self, source: BoxSpec, target: BoxSpec) -> None:
        """See `Runtime.copy_home`. Logs of detached commands stay behind: the new box counts from 1."""
        layout.prepare(target)
        await asyncio.to_thread(copying.copy_home, source, target)

    async def remove(self, spec: BoxSpec) -> None:
        """See `Runtime.remove`. Raises `RuntimeFault` with `remove_failed`."""
        await asyncio.to_thread(_remove, spec)


def _check(spec: BoxSpec) -> None:
    if spec.uid == 0:
        raise RuntimeFault("start_failed", "a box cannot have root's uid")
    for name, value in spec.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise RuntimeFault("invalid_env", f"{name!r} cannot be an environment variable")


def _remove(spec: BoxSpec) -> None:
    """By rm, which walks trees of any depth and follows no link. Folders without write permission, as some package
    caches have them, are opened first."""
    command = ["rm", "-rf", "--one-file-system", "--", str(spec.root)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(spec.root)], capture_output=True, check=False)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeFault(
            "remove_failed", f"the box's folder could not be deleted: {done.stderr.strip()[-300:]}"
        )
