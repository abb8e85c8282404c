"""Letting the worker work, and time pass, without waiting."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from base import pump
from base.clock import database_now
from base.pump import Counts
from boxes.models import Box
from boxes.provisioning import ProvisioningDriver


def run_driver(driver: ProvisioningDriver | None = None) -> Counts:
    """Everything that is due now, one step each."""
    return pump.run_once([driver or ProvisioningDriver()])


def drive(rounds: int = 100) -> int:
    """Work until nothing is due; returns the number of steps."""
    driver, steps = ProvisioningDriver(), 0
    for _ in range(rounds):
        counts = run_driver(driver)
        if not counts.claimed and driver.claim(pump.Holder(), 1) == []:
            return steps
        steps += counts.claimed
    raise AssertionError("there is always something due")


def pass_time(seconds: float) -> None:
    """Let every due time, lease and stop claim be so much nearer, and every first attempt so much longer ago."""
    gone = timedelta(seconds=seconds)
    for field in (
        "next_provision_at",
        "lease_expires_at",
        "stop_requested_at",
        "create_attempted_at",
        "created_at",
    ):
        Box.objects.exclude(**{field: None}).update(**{field: F(field) - gone})


def again(box: Box) -> Box:
    return Box.objects.get(pk=box.pk)


def seconds_from_now(moment: object) -> float:
    return (moment - database_now()).total_seconds()  # type: ignore[operator]
