"""The worker process: drives due rows, and runs periodic passes whose slot is due.

Crash-only: any error of the database connection ends the process, and the supervisor starts it anew. What it held is free
at that moment, since its sign of life went with its connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import connection

from base import hooks, leases, notify
from base.pump import Driver, Holder, Pump
from boxes import heartbeats, slots
from boxes.models import ScheduleSlot

log = structlog.get_logger(__name__)
LEASE_SECONDS = 30
DRAIN_SECONDS = 20.0
HEARTBEAT_SECONDS = 10.0
LATE_INTERVALS = 2  # a slot this many intervals late is an incident: passes are not keeping up
SLOT_CHECK_SECONDS = 1.0
LATE_CHECK_SECONDS = 10.0
FIRST_PASS_MS = (
    2_000  # after a start: what ended while no worker ran still counts in quotas until a pass has seen it
)


@dataclass(frozen=True)
class PeriodicWork:
    """A pass that runs when its slot is due: its name, how to make sure the slot is there, and the pass itself."""

    name: str
    ensure: Callable[[], Any]
    run: Callable[[], dict[str, Any]]


class Worker:
    """One worker: a pump in the main thread, one thread for passes."""

    def __init__(self, drivers: Sequence[Driver], periodic: Sequence[PeriodicWork]) -> None:
        self.link = notify.own_connection()
        self.number = leases.new_worker(self.link)
        notify.listen(self.link, [notify.DUE])
        self.holder = Holder(self.number, LEASE_SECONDS)
        self.pump = Pump(drivers, self.holder, self.link)
        self.periodic = periodic
        self._stop = threading.Event()
        self._passes = threading.Thread(target=self._run_passes, name="passes", daemon=True)
        self._pass_error: BaseException | None = None
        self._stamped = 0.0
        self._late_checked = 0.0

    @property
    def name(self) -> str:
        return f"worker:{self.number}"

    def stop(self) -> None:
        """Claim nothing more and come to an end; may be called from a signal handler."""
        self._stop.set()
        self.pump.wake()

    def run(self) -> int:
        """Work until `stop`; how many tasks were left in flight. Raises what broke the worker."""
        for work in self.periodic:
            work.ensure()
            slots.bring_forward(work.name, within_ms=FIRST_PASS_MS)
        self._passes.start()
        log.info("worker_started", worker=self.number, drivers=[driver.name for driver in self.pump.drivers])
        while not self._stop.is_set():
            self._stamp()
            if self._pass_error is not None:
                raise self._pass_error
            if not self.pump.step():
                self.pump.wait()
        left = self.pump.drain(DRAIN_SECONDS)
        log.info("worker_stopped", worker=self.number, left=left)
        return left

    def _stamp(self) -> None:
        if time.monotonic() - self._stamped < HEARTBEAT_SECONDS:
            return
        self._stamped = time.monotonic()
        heartbeats.stamp(self.name, {"in_flight": self.pump.in_flight, "settled": self.pump.counts.settled})

    def _run_passes(self) -> None:
        """The thread of the passes: its own connection, opened and closed by it; the pump never waits for it."""
        try:
            while not self._stop.wait(SLOT_CHECK_SECONDS):
                self._report_late()
                for work in self.periodic:
                    self._run_pass(work)
        except BaseException as error:
            self._pass_error = error
            self.pump.wake()
        finally:
            connection.close()

    def _run_pass(self, work: PeriodicWork) -> None:
        try:
            outcome = slots.run_if_due(work.name, self.holder, work.run)
        except Exception:
            connection.ensure_connection()  # raises if it is the database that is gone, which ends the worker
            log.exception("pass_failed", name=work.name)
            return
        if outcome is not None:
            log.info("pass_finished", name=work.name, **outcome)

    def _report_late(self) -> None:
        if time.monotonic() - self._late_checked < LATE_CHECK_SECONDS:
            return
        self._late_checked = time.monotonic()
        for work in self.periodic:
            self._report_if_late(work)

    def _report_if_late(self, work: PeriodicWork) -> None:
        slot = ScheduleSlot.objects.filter(name=work.name).only("interval_ms", "failures").first()
        due_in = slots.seconds_until_due(work.name)
        if slot is None or due_in is None or slot.failures:
            return
        if -due_in > LATE_INTERVALS * slot.interval_ms / 1000:
            hooks.incident_reporter(
                {
                    "surface": "controller",
                    "origin": "worker",
                    "code": "pass_late",
                    "correlation_ref": work.name,
                    "summary": f"the {work.name} pass is {int(-due_in)} s late",
                }
            )
