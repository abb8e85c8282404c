"""Carrying out what a pass decided: writes in batches, then the stops, each by one claimant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import pghistory
import structlog
from django.db import InterfaceError, OperationalError, transaction

from base.clock import database_now
from base.faults import declare, fault_point
from boxes import ending, stopping
from boxes.errors import ProviderError
from boxes.models import Box
from boxes.reconciler import events, write
from boxes.reconciler.batches import undone_if_refused
from boxes.reconciler.decide import life_over
from boxes.reconciler.rows import rows_with_ids
from boxes.reconciler.stops import StopCall, Stops
from boxes.reconciler.types import (
    Action,
    BackOff,
    Decision,
    End,
    Leave,
    Note,
    PassResult,
    Policy,
    PutOff,
    Row,
    Stop,
)

log = structlog.get_logger(__name__)
CLAIMED = declare("boxes.reconcile.claimed", "the stops of a pass are claimed, the provider is not asked yet")
STOPPED = declare(
    "boxes.reconcile.stopped", "the provider has taken the stops of a pass, the rows do not say so yet"
)

A = TypeVar("A", bound=Action)
Due = tuple[Row, Stop]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A stop that is ours to ask for: the box under the claim, the row as it was read, and why it is stopped."""

    box: Box
    row: Row
    stop: Stop


def carry_out(decisions: Sequence[Decision], stops: Stops, policy: Policy, result: PassResult) -> None:
    """Write and do everything that was decided, and count it in `result`. One bad row costs only itself."""
    written = write_decisions(decisions, result)
    due = [(row, stop) for row, stop in _of(decisions, Stop) if row.pk in written]
    _stop_all(due, stops, policy, result)


def write_decisions(decisions: Sequence[Decision], result: PassResult) -> set[UUID]:
    """Write everything that was decided and needs no call to the provider; the rows whose observation was written."""
    notes = [*_of(decisions, Note), *((row, stop.note) for row, stop in _of(decisions, Stop))]
    written = write.notes(notes)
    well = sum(1 for _, leave in _of(decisions, Leave) if leave.is_well)
    result.observed = len(written) + well
    result.lost_to_others += len(notes) - len(written)
    result.failed += len(write.back_off(_of(decisions, BackOff)))
    result.deferred += len(write.put_off(_of(decisions, PutOff)))
    result.unanswered += sum(1 for _, leave in _of(decisions, Leave) if leave.unanswered)
    _record_notices(decisions)
    result.ended = sum(_end(row, end) for row, end in _of(decisions, End))
    if result.ended:
        ending.promote_waiting()
    return written


def _of(decisions: Sequence[Decision], kind: type[A]) -> list[tuple[Row, A]]:
    return [(decision.row, decision.action) for decision in decisions if isinstance(decision.action, kind)]


def _record_notices(decisions: Sequence[Decision]) -> None:
    events.record(
        [
            events.Sighting(
                decision.row.pk,
                str(decision.row.box_id),
                notice.event_type,
                notice.reason,
                {"label": decision.row.label},
            )
            for decision in decisions
            for notice in decision.notices
        ]
    )


def _end(row: Row, end: End) -> bool:
    """End the row, unless somebody changed it meanwhile: the next pass sees it as it is then."""

    def write_end() -> bool:
        with pghistory.context(actor="reconciler", why=end.why), transaction.atomic():
            return write.is_as_read(row) and ending.write_end(
                Box(pk=row.pk),
                state=end.state,
                reason=end.reason,
                cost_microusd=end.cost_microusd,
                settle_after_seconds=ending.SETTLE_AFTER_PASS_SECONDS,
            )

    ended = _unless_bad(row, write_end)
    if ended:
        log.info("box_ended_by_provider", box=str(row.pk), reason=str(end.reason), why=end.why)
    return ended


def _stop_all(due: list[Due], stops: Stops, policy: Policy, result: PassResult) -> None:
    """Wave by wave: claim, ask, write. A process that dies leaves the claims of one wave, and they age."""
    while wave := stops.take(due):
        claimed = _claim(wave, policy, result)
        if not claimed:
            continue
        fault_point(CLAIMED)
        calls = stops.call([str(each.row.box_id) for each in claimed])
        fault_point(STOPPED)
        for each in claimed:
            _settle_stop(each, calls[str(each.row.box_id)], result)
    _leave_for_later(due, stops, result)


def _claim(wave: Sequence[Due], policy: Policy, result: PassResult) -> list[Claimed]:
    """The stops of the wave that are ours now, and that are still due as the rows are under the claim.

    With the claim nobody can start anything in the box or extend it any more; what was started before it counts.
    """
    boxes = {row.pk: Box(pk=row.pk, box_id=row.box_id) for row, _ in wave}
    ours = [(row, stop) for row, stop in wave if _claim_one(boxes[row.pk], row, stop)]
    now, rows = database_now(), {row.pk: row for row in rows_with_ids([row.pk for row, _ in ours])}
    claimed: list[Claimed] = []
    for row, stop in ours:
        why = _still_due(row, rows[row.pk], stop, now, policy)
        if why is not None:
            claimed.append(Claimed(boxes[row.pk], row, why))
        else:
            stopping.withdraw_stop(boxes[row.pk])
    result.lost_to_others += len(wave) - len(claimed)
    return claimed


def _claim_one(box: Box, row: Row, stop: Stop) -> bool:
    def claim() -> bool:
        with pghistory.context(actor="reconciler", why=stop.why):
            return stopping.claim_stop(box, stop.reason) == "claimed"

    return _unless_bad(row, claim)


def _still_due(read: Row, claimed: Row, stop: Stop, now: datetime, policy: Policy) -> Stop | None:
    if read.stop_requested_at is not None:
        return stop  # it was asked for; nothing that happened since takes that back
    over = life_over(claimed, now, policy)
    return Stop(stop.note, *over) if over is not None else None


def _settle_stop(claimed: Claimed, call: StopCall, result: PassResult) -> None:
    row, stop = claimed.row, claimed.stop

    def settle() -> bool:
        if call.error is not None:
            return _stop_failed(claimed, call, call.error, result)
        with pghistory.context(actor="reconciler", why=stop.why):
            return stopping.complete_stop(claimed.box, stop.reason, call.answer, by_pass=True)

    if _unless_bad(row, settle):
        result.stopped += 1
        log.info("box_stopped_by_pass", box=str(row.pk), reason=str(stop.reason), why=stop.why)


def _stop_failed(claimed: Claimed, call: StopCall, error: ProviderError, result: PassResult) -> bool:
    """Give the claim back. A provider that asked to be left alone is not held against the row."""
    stopping.release_stop(claimed.box, error)
    if call.put_off_seconds is not None:
        write.stop_put_off(claimed.row.pk, call.put_off_seconds)
        result.deferred += 1
    else:
        write.stop_failed(claimed.row, str(error.code))
        result.failed += 1
    return False


def _leave_for_later(left: Sequence[Due], stops: Stops, result: PassResult) -> None:
    if not stops.quiet_seconds:
        result.unanswered += len(left)  # there was no time; the rows stay due
        return
    for row, _ in left:
        write.stop_put_off(row.pk, stops.quiet_seconds)
    result.deferred += len(left)


def _unless_bad(row: Row, write_row: Callable[[], bool]) -> bool:
    """What the write says; a row that cannot be written costs only itself. Raises only errors of the connection."""
    try:
        with undone_if_refused():
            return write_row()
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("reconcile_row_failed", box=str(row.pk))
        return False
