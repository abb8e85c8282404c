"""What is done beyond the rows: leaks are reported and stopped, and boxes whose stop was undone are stopped again."""

from __future__ import annotations

import structlog

from base.faults import declare, fault_point
from boxes.reconciler import leak_ledger, undone
from boxes.reconciler.leaks import Leak, LeakStep
from boxes.reconciler.stops import Stops
from boxes.reconciler.survey import Survey
from boxes.reconciler.types import PassResult
from boxes.reconciler.undone import Undone

log = structlog.get_logger(__name__)
LEAKS_CLAIMED = declare(
    "boxes.reconcile.leaks_claimed", "the stops of leaks are claimed, the provider is not asked yet"
)
LEAKS_STOPPED = declare(
    "boxes.reconcile.leaks_stopped", "the provider has taken the stops of leaks, the events do not say so yet"
)


def attend_to_strangers(found: Survey, stops: Stops, result: PassResult) -> None:
    """Report every leak, close those that are over, then stop what is to be stopped."""
    leak_ledger.report(found.leaks)
    leak_ledger.close_gone(found.claims.unclaimed(found.listing.boxes))
    undone.note_sightings(found.undone, found.claims)
    result.leaks = sum(1 for leak in found.leaks if leak.step is not LeakStep.IGNORE)
    _stop_leaks([leak for leak in found.leaks if leak.step is LeakStep.STOP], stops, result)
    _stop_again([entry for entry in found.undone if entry.is_due], stops, result)


def _stop_leaks(to_stop: list[Leak], stops: Stops, result: PassResult) -> None:
    while wave := stops.take(to_stop):
        claimed = leak_ledger.claim_stops([leak.box.id for leak in wave])
        if not claimed:
            continue
        fault_point(LEAKS_CLAIMED)
        calls = stops.call(claimed)
        fault_point(LEAKS_STOPPED)
        taken = leak_ledger.settle_stops([(box_id, call.error is None) for box_id, call in calls.items()])
        result.leaks_stopped += len(taken)
        for box_id, call in calls.items():
            if call.error is not None:
                result.failed += call.put_off_seconds is None
                log.warning("leak_stop_failed", box_id=box_id, code=str(call.error.code))
            else:
                log.warning("leak_stopped", box_id=box_id)
    result.deferred += len(to_stop)


def _stop_again(to_stop: list[Undone], stops: Stops, result: PassResult) -> None:
    while wave := stops.take(to_stop):
        calls = stops.call([entry.box.id for entry in wave])
        stopped = {entry.row.pk for entry in wave if calls[entry.box.id].error is None}
        undone.note_stopped_again(wave, stopped)
        result.undone += len(stopped)
        result.failed += len(wave) - len(stopped)
        for entry in wave:
            log.warning(
                "stop_was_undone",
                box=str(entry.row.pk),
                box_id=entry.box.id,
                stopped_again=entry.row.pk in stopped,
            )
    result.deferred += len(to_stop)
