"""The first run: a box, a command in it, its output as it comes, and what it cost. Only through the public API."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .api_client import WAIT_SECONDS, ApiError
from .patient_api import PatientApi

COMMAND = """\
echo "Hello from a box: $(uname -sm), user $(id -un 2>/dev/null || id -u), home $HOME"
for n in 1 2 3 4 5; do
  echo "step $n of 5 at $(date -u +%H:%M:%S): $((n * n)) squared is $((n * n * n * n))"
  sleep 0.5
done
echo "written by the box" > result.txt
echo "result.txt holds: $(cat result.txt)"
"""
READY_STATES = frozenset({"ready", "idle", "running"})
STARTING_STATES = frozenset({"init", "provisioning", "provisioned", "cloning"})
READY_SECONDS = 120.0
RUN_SECONDS = 180.0  # the command takes three
SETTLEMENT_SECONDS = 20.0
PASS_SECONDS = 20.0  # a worker that starts has a reconcile pass done within seconds
Say = Callable[[str, str], None]  # text, style


class FirstRunFailed(Exception):
    """Why there is no exit status to report."""


class FirstRun:
    """One run from nothing to its cost. `say` prints a line."""

    title = "A run, through the public API:"

    def __init__(self, api: PatientApi, say: Say) -> None:
        self._api = api
        self._say = say

    def do(self) -> int:
        """The command's exit status. Raises FirstRunFailed; the box is stopped in any case."""
        try:
            return self._do()
        except ApiError as error:
            raise FirstRunFailed(f"{error.detail} ({error.code})") from error

    def _do(self) -> int:
        self._prepare()
        began = time.monotonic()
        box = self._box()
        try:
            box = self._ready(box)
            self._say(
                f"box {box['label']} ({box['box_id']}) is ready after {time.monotonic() - began:.1f} s",
                "green",
            )
            status = self._exit_status(self._followed(self._start(box)))
            self._conclude(box)
        finally:
            stopped = self._api.post(f"/api/v1/boxes/{box['id']}/stop")
        self._say(f"box stopped after {stopped['lifetime_seconds']} s; {self._cost(box['id'])}", "green")
        return status

    def _prepare(self) -> None:
        """What has to be there before the box."""

    def _start(self, box: dict[str, Any]) -> dict[str, Any]:
        """The run that works in the box."""
        self._show_command(COMMAND)
        return self._api.post("/api/v1/runs", {"box": box["id"], "command": COMMAND})

    def _conclude(self, box: dict[str, Any]) -> None:
        """What is looked at after the run, while the box is there."""

    def _show_command(self, command: str) -> None:
        for line in command.splitlines():
            self._say(f"  $ {line}", "dim")

    def _box(self) -> dict[str, Any]:
        """A new box. Boxes that ended with an earlier start count until the worker has looked at them: that is waited for."""
        for _ in self._api.until(PASS_SECONDS):
            try:
                return self._new_box()
            except ApiError as error:
                if error.code != "box_quota_reached":
                    raise
        return self._new_box()

    def _new_box(self) -> dict[str, Any]:
        return self._api.post("/api/v1/boxes", {})

    def _ready(self, box: dict[str, Any]) -> dict[str, Any]:
        for _ in self._api.until(READY_SECONDS):
            if box["state"] in READY_STATES and box["box_id"]:
                return box
            if box["stopped_at"] or box["state"] not in STARTING_STATES | READY_STATES:
                raise FirstRunFailed(
                    f"the box ended before it was ready (state {box['state']}, {box['stop_reason']})"
                )
            box = self._api.get(f"/api/v1/boxes/{box['id']}")
        raise FirstRunFailed(f"the box was not ready after {READY_SECONDS:.0f} s (state {box['state']})")

    def _followed(self, run: dict[str, Any]) -> dict[str, Any]:
        """Show the run's output as it comes, and return the run as it ended."""
        offset, shown, deadline = 0, _Lines(self._say), time.monotonic() + RUN_SECONDS
        while True:
            if self._api.stopping():
                raise FirstRunFailed("stopped before the command ended")
            if time.monotonic() > deadline:
                raise FirstRunFailed(
                    f"the command did not end within {RUN_SECONDS:.0f} s (the run is {run['state']})"
                )
            ended = run[
                "is_terminal"
            ]  # known before the output is read, so that the last of it is not missed
            part = self._api.get(
                f"/api/v1/runs/{run['id']}/output?offset={offset}&wait={0 if ended else WAIT_SECONDS}"
            )
            shown.add(part["output"])
            if ended and part["next_offset"] == offset:
                shown.end()
                return run
            offset = part["next_offset"]
            run = run if ended else self._api.get(f"/api/v1/runs/{run['id']}")

    def _exit_status(self, run: dict[str, Any]) -> int:
        status, state = run["exit_status"], run["state"]
        if status is None:
            raise FirstRunFailed(
                f"the command has no exit status: the run is {state} ({run['failure_reason']})"
            )
        self._say(f"the run {state}, exit status {status}", "bold green" if status == 0 else "bold red")
        return int(status)

    def _cost(self, box_id: str) -> str:
        for _ in self._api.until(SETTLEMENT_SECONDS):
            box = self._api.get(f"/api/v1/boxes/{box_id}")
            if box["usage_settled_at"]:
                cost = box["settled_cost_microusd"]
                return "cost unknown" if cost is None else f"cost ${cost / 1_000_000:.6f}"
        return "cost not settled yet"


class _Lines:
    """Output in pieces, shown line by line."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._pending = ""

    def add(self, text: str) -> None:
        *lines, self._pending = (self._pending + text).split("\n")
        for line in lines:
            self._say(f"  {line}", "")

    def end(self) -> None:
        if self._pending:
            self._say(f"  {self._pending}", "")
