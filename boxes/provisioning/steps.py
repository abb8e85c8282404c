"""What a row's creation needs next. Pure: row + now + policy -> step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from base.backoff import Backoff
from boxes.models import Box
from boxes.states import SETUP_ENDED, UP, BoxState

LAST_RETRY_AFTER = timedelta(hours=23)  # the provider forgets an idempotency key after 24 hours
ABANDONED_AFTER = timedelta(hours=24)
RETRY = Backoff(first=timedelta(seconds=5), cap=timedelta(seconds=300))


class Step(StrEnum):
    """The next thing to do for a row that is due."""

    CREATE = "create"  # ask the provider for the box, with the row's key
    MARK = "mark"  # give it our name
    STOP = "stop"  # carry out a stop that was asked for and that nobody is carrying out
    LOOK = "look"  # see whether it is ready
    ABANDON = "abandon"  # close a row whose creation was never answered
    REST = "rest"  # nothing, or nothing yet


@dataclass(frozen=True, slots=True)
class Next:
    """A step. With REST, when the row is due again; None: not at all."""

    step: Step
    due_at: datetime | None = None


def next_step(box: Box, now: datetime, *, poll_attempts: int) -> Next:
    """The first of these that is missing: an id, our name, a stop that was asked for, a look that shows it ready."""
    if box.stopped_at is not None:
        return Next(Step.REST)
    if box.box_id is None:
        return _creation(box, now)
    if box.create_key is not None and box.marked_at is None and not _stop_cannot_wait(box):
        return Next(Step.MARK)
    if box.stop_requested_at is not None:
        return Next(Step.STOP)
    if box.create_key is None or is_settled_in(box) or box.ready_checks >= poll_attempts:
        return Next(Step.REST)
    return Next(Step.LOOK)


def is_settled_in(box: Box) -> bool:
    """Whether nothing is left to wait for: ready with its setup over, failed, or stopped."""
    if box.stopped_at is not None or box.state == BoxState.ERROR:
        return True
    return box.state in UP and box.setup_status in SETUP_ENDED


def retry_in(failures: int) -> timedelta:
    """How long to wait after the `failures`-th failure in a row: 5 s, doubling up to 300 s."""
    return RETRY.after(failures)


def _creation(box: Box, now: datetime) -> Next:
    if box.create_key is None:
        return Next(Step.REST)
    first = box.create_attempted_at
    if first is None or now <= first + LAST_RETRY_AFTER:
        return Next(Step.CREATE)
    if now < first + ABANDONED_AFTER:
        return Next(Step.REST, first + ABANDONED_AFTER)
    return Next(Step.ABANDON)


def _stop_cannot_wait(box: Box) -> bool:
    """Our name on a box is worth one try when it is to be stopped, and no more."""
    return box.stop_requested_at is not None and box.provision_failures > 0
