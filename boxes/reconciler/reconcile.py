"""One pass, from the listing to the last stop. What it decides is in `decide`, `leaks`, `undone` and `breaker`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from base import notify
from base.clock import database_now
from base.faults import declare, fault_point
from base.locks import held_by_session
from boxes.client import BoxClient, Gate, Listing, client
from boxes.conf import box_api
from boxes.errors import ProviderError, RetryLater
from boxes.models import Box
from boxes.reconciler import breaker, events, leaks, undone, write
from boxes.reconciler.carry_out import carry_out
from boxes.reconciler.decide import decide
from boxes.reconciler.gather import HELD_AGAINST_THE_ROW, Looks, considered_boxes, policy_of, rows_of
from boxes.reconciler.leaks import Claims, Leak, LeakStep
from boxes.reconciler.stops import StopCall, call_stops
from boxes.reconciler.types import Ask, Decision, Observation, PassResult, Policy, Row, Seen
from boxes.states import EventType, Resolution
from boxes.usage.settlement import settle_due

log = structlog.get_logger(__name__)
PASS_LOCK = "reconcile_pass"  # noqa: S105 - a lock
Progress = Callable[[int, int], object]

LISTED = declare("boxes.reconcile.listed", "the list is complete, nothing is decided yet")
DECIDED = declare("boxes.reconcile.decided", "everything is decided, nothing is written yet")


def reconcile(progress: Progress | None = None) -> PassResult:
    """One pass. Returns what it counted; `skipped` if another pass is at work, which then does it all.

    `progress(done, of)` is called as boxes are looked at, from any thread. Raises ProviderError if the list could not be had:
    after a transport error or a bare 429 the failure is held against every considered row, else nothing was written.
    """
    with notify.own_connection() as link, held_by_session(link, PASS_LOCK) as had:
        if not had:
            return PassResult(skipped=True)
        return _pass(progress or _silent)


def plan(progress: Progress | None = None) -> PassResult:
    """What a pass would decide now, row by row and with the reasons, writing nothing and stopping nothing."""
    provider, listing = _listing()
    return _decided(provider, listing, progress or _silent)[0]


def _pass(progress: Progress) -> PassResult:
    try:
        provider, listing = _listing()
    except ProviderError as error:
        if error.code in HELD_AGAINST_THE_ROW and not _asked_to_wait(error):
            write.listing_failed(str(error.code))
        raise
    fault_point(LISTED)
    result, boxes, now = _decided(provider, listing, progress)
    result.decisions = breaker.hold_back(result.decisions, {box.id for box in listing.boxes})
    fault_point(DECIDED)
    carry_out(provider, result, boxes)
    result.settled = settle_due()
    _reconcile_strangers(provider, listing, policy_of(box_api()), now, result)
    log.info("reconciled", **result.as_dict())
    return result


def _asked_to_wait(error: ProviderError) -> bool:
    return isinstance(error, RetryLater) and error.retry_after_seconds is not None


def _listing() -> tuple[BoxClient, Listing]:
    provider = client(gate=Gate())
    return provider, provider.list_all()


def _decided(
    provider: BoxClient, listing: Listing, progress: Progress
) -> tuple[PassResult, dict[object, Box], datetime]:
    """Read the rows after the last page, look where a look is needed, and decide about each."""
    conf = box_api()
    policy, boxes, now = policy_of(conf), considered_boxes(), database_now()
    rows = rows_of(boxes)
    listed = (
        {box.id: Seen(box, confirmed=False) for box in listing.boxes} if policy.evidence == "list" else {}
    )
    first = [Decision(row, decide(row, listed.get(row.box_id or ""), now, policy)) for row in rows]
    seen = _look(
        Looks(provider, conf), [entry.row for entry in first if isinstance(entry.action, Ask)], progress
    )
    decisions = [_settled(entry, seen, now, policy) for entry in first]
    result = PassResult(boxes=len(rows), provider_boxes=len(listing.boxes), decisions=decisions)
    return result, {box.pk: box for box in boxes}, now


def _look(looks: Looks, rows: Sequence[Row], progress: Progress) -> dict[str, Observation]:
    done = iter(range(1, len(rows) + 1))
    progress(0, len(rows))
    return looks.at([str(row.box_id) for row in rows], lambda: progress(next(done, len(rows)), len(rows)))


def _settled(entry: Decision, seen: dict[str, Observation], now: datetime, policy: Policy) -> Decision:
    if not isinstance(entry.action, Ask):
        return entry
    return Decision(entry.row, decide(entry.row, seen[str(entry.row.box_id)], now, policy))


def _reconcile_strangers(
    provider: BoxClient, listing: Listing, policy: Policy, now: datetime, result: PassResult
) -> None:
    """Leaks and undone stops: what the complete listing shows beyond the rows."""
    claims = leaks.read_claims(listing.boxes)
    found = _leaks(listing, claims, policy, now)
    leaks.report(found)
    leaks.close_gone(claims.unclaimed(listing.boxes))
    back = undone.find_undone(listing.boxes, claims, now)
    undone.note_sightings(back, claims)
    to_stop = [leak for leak in found if leak.step is LeakStep.STOP]
    again = [entry for entry in back if entry.is_due]
    result.leaks = sum(1 for leak in found if leak.step is not LeakStep.IGNORE)
    calls = call_stops(
        provider, [leak.box.id for leak in to_stop] + [str(entry.row.box_id) for entry in again]
    )
    result.leaks_stopped = _note_leak_stops(to_stop, calls)
    result.undone = _note_undone(again, calls)


def _leaks(listing: Listing, claims: Claims, policy: Policy, now: datetime) -> list[Leak]:
    unclaimed = claims.unclaimed(listing.boxes)
    known = leaks.read_known(unclaimed) if unclaimed else {}
    return [
        leaks.decide_leak(
            box,
            known.get(box.id),
            marker=policy.marker,
            creation_in_flight=claims.creation_in_flight,
            now=now,
        )
        for box in unclaimed
    ]


def _note_leak_stops(to_stop: Sequence[Leak], calls: dict[str, StopCall]) -> int:
    for leak in to_stop:
        call = calls[leak.box.id]
        leaks.note_stop(leak.box.id, handled=call.error is None)
        log.warning(
            "leak_stopped" if call.error is None else "leak_stop_failed", box_id=leak.box.id, code=call.code
        )
    return sum(1 for leak in to_stop if calls[leak.box.id].error is None)


def _note_undone(again: Sequence[undone.Undone], calls: dict[str, StopCall]) -> int:
    stopped = [entry for entry in again if calls[str(entry.row.box_id)].error is None]
    for entry in stopped:
        undone.note_stopped_again(entry.row)
        log.warning("stop_was_undone", box=str(entry.row.pk), box_id=entry.row.box_id)
    events.record(
        [
            events.Sighting(
                entry.row.pk,
                str(entry.row.box_id),
                EventType.STOP_UNDONE,
                "stopped_box_came_up_again",
                {"state": entry.box.raw_state},
                Resolution.STOPPED if entry in stopped else None,
            )
            for entry in again
        ]
    )
    return len(stopped)


def _silent(done: int, of: int) -> None:
    return
