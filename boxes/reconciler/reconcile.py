"""One pass, from the listing to the last stop. What it decides is in `survey`, `decide`, `leaks`, `undone`, `breaker`."""

from __future__ import annotations

import math
import time

import structlog

from base import notify
from base.faults import declare, fault_point
from base.locks import held_by_session
from boxes.client import Gate, client
from boxes.conf import box_api
from boxes.errors import ProviderError, RetryLater
from boxes.reconciler import breaker, write
from boxes.reconciler.carry_out import carry_out
from boxes.reconciler.looks import HELD_AGAINST_THE_ROW
from boxes.reconciler.stops import Stops
from boxes.reconciler.strangers import attend_to_strangers
from boxes.reconciler.survey import Progress, Survey, survey
from boxes.reconciler.types import PassResult
from boxes.usage.settlement import settle_due

log = structlog.get_logger(__name__)
PASS_LOCK = "reconcile_pass"  # noqa: S105 - a lock
PASS_SECONDS = 600.0  # after this nothing more is asked for; what is left is due in the next pass

LISTED = declare("boxes.reconcile.listed", "the list is complete, nothing is decided yet")
DECIDED = declare("boxes.reconcile.decided", "everything is decided, nothing is written yet")
WRITTEN = declare("boxes.reconcile.written", "the rows are done, leaks and costs are not attended to yet")


def reconcile(progress: Progress | None = None) -> PassResult:
    """One pass. Returns what it counted; `skipped` if another pass is at work, which then does it all.

    `progress(done, of)` is called as boxes are looked at, from any thread. Raises ProviderError if the list could not be had:
    after a transport error or a bare 429 the failure is held against every considered row, else nothing was written.
    """
    with notify.own_connection() as link, held_by_session(link, PASS_LOCK) as had:
        if not had:
            return PassResult(skipped=True)
        return _pass(progress or _silent)


def plan(progress: Progress | None = None) -> Survey:
    """What a pass would decide now, with the reasons, writing nothing and stopping nothing. Raises ProviderError."""
    return survey(client(gate=Gate()), box_api(), progress or _silent)


def _pass(progress: Progress) -> PassResult:
    gate, ends_at = Gate(), time.monotonic() + PASS_SECONDS
    provider = client(gate=gate)
    try:
        found = survey(provider, box_api(), progress, lambda: fault_point(LISTED))
    except ProviderError as error:
        if error.code in HELD_AGAINST_THE_ROW and not _asked_to_wait(error):
            write.listing_failed(str(error.code))
        raise
    decisions = breaker.guard(found.decisions, found.listed_ids, found.policy.marker)
    result = PassResult(boxes=len(decisions), provider_boxes=len(found.listing.boxes), decisions=decisions)
    stops = Stops(provider, gate, ends_at=ends_at)
    fault_point(DECIDED)
    carry_out(decisions, stops, found.policy, result)
    fault_point(WRITTEN)
    attend_to_strangers(found, stops, result)
    result.settled = settle_due(gate=gate, ends_at=ends_at)
    _conclude(result, gate)
    return result


def _conclude(result: PassResult, gate: Gate) -> None:
    result.quiet_seconds = math.ceil(gate.seconds_left())
    result.incomplete = bool(result.failed or result.deferred or result.unanswered)
    log.info("reconciled", **result.as_dict())


def _asked_to_wait(error: ProviderError) -> bool:
    return isinstance(error, RetryLater) and error.retry_after_seconds is not None


def _silent(done: int, of: int) -> None:
    return
