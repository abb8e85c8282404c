"""Carrying out what a pass decided: writes in batches, then the stops, each by one claimant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import structlog
from django.db import InterfaceError, OperationalError

from base.faults import declare, fault_point
from boxes import ending, stopping
from boxes.client import BoxClient
from boxes.errors import ProviderCode, ProviderError, Unknown
from boxes.models import Box
from boxes.reconciler import events, write
from boxes.reconciler.stops import StopCall, call_stops
from boxes.reconciler.types import BackOff, Decision, End, Leave, Note, Notice, PassResult, PutOff, Row, Stop

log = structlog.get_logger(__name__)
CLAIMED = declare("boxes.reconcile.claimed", "the stops of a pass are claimed, the provider is not asked yet")
STOPPED = declare(
    "boxes.reconcile.stopped", "the provider has taken the stops of a pass, the rows do not say so yet"
)

A = TypeVar("A")


def carry_out(provider: BoxClient, result: PassResult, boxes: Mapping[Any, Box]) -> None:
    """Write and do everything that was decided, and count it in `result`. One bad row costs only itself."""
    decisions = result.decisions
    stops = _of(decisions, Stop)
    notes = [*_of(decisions, Note), *((row, stop.note) for row, stop in stops)]
    written = write.notes(notes)
    result.observed, result.lost_to_others = len(written), len(notes) - len(written)
    result.failed = len(write.back_off(_of(decisions, BackOff)))
    result.deferred = len(write.put_off(_of(decisions, PutOff)))
    result.unanswered = sum(1 for _, leave in _of(decisions, Leave) if leave.why.startswith("unusable"))
    _record_notices(decisions)
    for row, end in _of(decisions, End):
        result.ended += _end(boxes[row.pk], end)
    due = [(row, stop) for row, stop in stops if row.pk in written]
    result.stopped = _stop(provider, due, boxes, result)


def _of(decisions: Sequence[Decision], kind: type[A]) -> list[tuple[Row, A]]:
    return [(decision.row, decision.action) for decision in decisions if isinstance(decision.action, kind)]


def _record_notices(decisions: Sequence[Decision]) -> None:
    noticed = [
        events.Sighting(row.pk, str(row.box_id), notice.event_type, notice.reason, {"label": row.label})
        for row, notices in ((decision.row, _notices(decision)) for decision in decisions)
        for notice in notices
    ]
    events.record(noticed)


def _notices(decision: Decision) -> tuple[Notice, ...]:
    action = decision.action.note if isinstance(decision.action, Stop) else decision.action
    return getattr(action, "notices", ())


def _end(box: Box, end: End) -> bool:
    try:
        return ending.end_row(
            box,
            state=end.state,
            reason=end.reason,
            cost_microusd=end.cost_microusd,
            settle_after_seconds=ending.SETTLE_AFTER_PASS_SECONDS,
        )
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("reconcile_row_failed", box=str(box.pk), why=end.why)
        return False


def _stop(
    provider: BoxClient, due: Sequence[tuple[Row, Stop]], boxes: Mapping[Any, Box], result: PassResult
) -> int:
    """Claim each stop, ask the provider for all that were claimed, and end the rows of those that it took."""
    claimed = [
        (row, stop) for row, stop in due if stopping.claim_stop(boxes[row.pk], stop.reason) == "claimed"
    ]
    result.lost_to_others += len(due) - len(claimed)
    if not claimed:
        return 0
    fault_point(CLAIMED)
    calls = call_stops(provider, [str(row.box_id) for row, _ in claimed])
    fault_point(STOPPED)
    return sum(_settle_stop(boxes[row.pk], stop, calls[str(row.box_id)], result) for row, stop in claimed)


def _settle_stop(box: Box, stop: Stop, call: StopCall, result: PassResult) -> bool:
    try:
        if call.error is None:
            log.info("box_stopped_by_pass", box=str(box.pk), reason=str(stop.reason), why=stop.why)
            return stopping.complete_stop(box, stop.reason, call.answer, by_pass=True)
        result.failed += 1
        stopping.release_stop(box, _as_provider_error(call.error))
        _hold_against(box, call)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("reconcile_row_failed", box=str(box.pk), why=stop.why)
    return False


def _hold_against(box: Box, call: StopCall) -> None:
    write.stop_failed(box.pk, call.code or ProviderCode.RESPONSE_INVALID)


def _as_provider_error(error: Exception) -> ProviderError:
    """Any other exception means that we do not know what the provider made of the call."""
    return error if isinstance(error, ProviderError) else Unknown(ProviderCode.RESPONSE_INVALID)
