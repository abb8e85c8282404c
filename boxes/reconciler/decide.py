"""What a pass does about one row: a pure function of the row, what was seen of the box, the time and the policy.

Two rules stand above all others. Silence is never deletion: what could not be asked, or was answered by an error, changes
nothing about a box's life. And every step that ends something is taken on an answer about this box alone, never
on its place in a list.
"""

from __future__ import annotations

from datetime import datetime

from boxes.client import ProviderBox
from boxes.errors import ProviderCode
from boxes.lifetime import lease_end
from boxes.reconciler.types import (
    Action,
    Ask,
    BackOff,
    Deferred,
    End,
    Failed,
    Leave,
    Missing,
    Note,
    Notice,
    Observation,
    Policy,
    PutOff,
    Row,
    Seen,
    Stop,
)
from boxes.states import BoxState, EventType, SetupStatus, StopReason

AS_NOTED = Leave("as it was noted a moment ago", is_well=True)
BEING_STOPPED = Leave("a stop is in flight: whoever asked for it ends the row")


def decide(row: Row, seen: Observation | None, now: datetime, policy: Policy) -> Action:
    """What to do about an active row, given what was seen of its box; None where nothing was."""
    if row.stopped_at is not None:
        return Leave("stopped")
    if row.box_id is None:
        return Leave("being created")
    if not is_due(row, now):
        return Leave("backing off")
    if not row.is_askable:
        return _failed(ProviderCode.MALFORMED_ID, counts=True)
    match seen:
        case None:
            return Ask("not in the listing" if policy.evidence == "list" else "due")
        case Missing():
            return _gone(row, now, policy)
        case Failed(code, counts):
            return _failed(code, counts)
        case Deferred(seconds):
            return PutOff(seconds)
        case Seen(box, confirmed):
            return _shown(row, box, confirmed, now, policy)


def is_due(row: Row, now: datetime) -> bool:
    return row.next_reconciliation_at is None or row.next_reconciliation_at <= now


def stop_due(row: Row, now: datetime, policy: Policy) -> tuple[StopReason, str] | None:
    """Why the box is to be stopped, if it is: a stop that was asked for by somebody who died, its time, its idleness."""
    if row.stop_requested_at is not None:
        return None if _is_being_stopped(row, now, policy) else _abandoned_stop(row, now, policy)
    return life_over(row, now, policy)


def life_over(row: Row, now: datetime, policy: Policy) -> tuple[StopReason, str] | None:
    """Why the life of the box is over, if it is: its time is up, or nothing was done in it for too long."""
    end = lease_end(
        row.created_at,
        row.extended_until,
        ttl_seconds=policy.ttl_seconds,
        maximum_lifetime_seconds=policy.maximum_lifetime_seconds,
    )
    if now >= end.at:
        return StopReason.TTL_EXPIRED, f"its time was up at {end.at:%H:%M:%S} ({end.because})"
    if row.idle_since is not None and now - row.idle_since >= policy.idle_timeout:
        return StopReason.IDLE_TIMEOUT, f"idle since {row.idle_since:%H:%M:%S}"
    return None


def _is_being_stopped(row: Row, now: datetime, policy: Policy) -> bool:
    return row.stop_requested_at is not None and now - row.stop_requested_at < policy.claim_age


def _abandoned_stop(row: Row, now: datetime, policy: Policy) -> tuple[StopReason, str]:
    due = life_over(row, now, policy) if row.stop_requested_reason is None else None
    reason = row.stop_requested_reason or (due[0] if due else StopReason.USER_REQUESTED)
    return reason, f"a stop was asked for at {row.stop_requested_at:%H:%M:%S} and nobody carried it out"


def _gone(row: Row, now: datetime, policy: Policy) -> Action:
    if _is_being_stopped(row, now, policy):
        return BEING_STOPPED
    return End(BoxState.ARCHIVED, StopReason.PROVIDER_MISSING, None, "gone at the provider")


def _failed(code: str, counts: bool) -> Action:
    if code == ProviderCode.MALFORMED_ID:
        return BackOff(code, (Notice(EventType.MALFORMED_ID, "id_cannot_be_asked_about"),))
    return BackOff(code) if counts else Leave(f"unusable answer: {code}", unanswered=True)


def _shown(row: Row, box: ProviderBox, confirmed: bool, now: datetime, policy: Policy) -> Action:
    ours, due = box.is_named(policy.marker), stop_due(row, now, policy)
    may_stop = ours or row.stop_requested_at is not None
    notices = _notices(row, box, ours=ours, is_kept_up=due is not None and not may_stop)
    is_healthy = not (box.is_terminal or due or notices or (row.is_ours_to_mark and not ours))
    if not confirmed and not is_healthy:
        return Ask("listed, but not as a healthy box of ours")
    if not confirmed and _is_as_noted(row, box, now, policy):
        return AS_NOTED
    if box.is_terminal:
        return _terminal(row, box, now, policy)
    note = Note(
        box.state,
        _setup_of(row, box),
        is_marked=row.is_ours_to_mark and ours,
        needs_mark=row.is_ours_to_mark and not ours,
        notices=notices,
    )
    return Stop(note, *due) if due and may_stop else note


def _setup_of(row: Row, box: ProviderBox) -> SetupStatus:
    """What is said of the setup; a box that had none, or is past it, does not begin anew because nothing is said."""
    nothing_said = box.raw_setup_status is None
    return SetupStatus.DONE if nothing_said and row.setup_status == SetupStatus.DONE else box.setup_status


def _is_as_noted(row: Row, box: ProviderBox, now: datetime, policy: Policy) -> bool:
    """Whether writing what the listing shows would change nothing but the time of it, and that is recent."""
    if row.last_reconciled_at is None or now - row.last_reconciled_at >= policy.noted_for:
        return False
    is_news = row.reconciliation_failures or row.next_reconciliation_at or row.is_ours_to_mark
    return not is_news and (row.state, row.setup_status) == (box.state, _setup_of(row, box))


def _terminal(row: Row, box: ProviderBox, now: datetime, policy: Policy) -> Action:
    if _is_being_stopped(row, now, policy):
        return BEING_STOPPED
    state = BoxState.ERROR if box.state == BoxState.ERROR else BoxState.ARCHIVED
    reason = StopReason.PROVIDER_TERMINAL
    if row.stop_requested_at is not None and state == BoxState.ARCHIVED:
        reason = row.stop_requested_reason or reason  # whoever asked for the stop died after it was taken
    return End(state, reason, box.cost_microusd, f"the provider says {box.raw_state}")


def _notices(row: Row, box: ProviderBox, *, ours: bool, is_kept_up: bool) -> tuple[Notice, ...]:
    found = []
    if not box.is_known_state and not box.is_terminal:
        found.append(Notice(EventType.UNKNOWN_STATE, f"state_{box.raw_state or 'missing'}"[:128]))
    if is_kept_up:
        found.append(Notice(EventType.MARKER_MISSING, "not_stopped_under_another_name"))
    elif not ours and box.name is not None and not row.is_ours_to_mark:
        found.append(Notice(EventType.MARKER_MISSING, "box_under_another_name"))
    return tuple(found)
