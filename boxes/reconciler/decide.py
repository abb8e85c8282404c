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
from boxes.states import BoxState, EventType, StopReason


def decide(row: Row, seen: Observation | None, now: datetime, policy: Policy) -> Action:
    """What to do about an active row, given what was seen of its box; None where nothing was."""
    if row.stopped_at is not None:
        return Leave("stopped")
    if row.box_id is None:
        return Leave("being created")
    if not is_due(row, now):
        return Leave("backing off")
    match seen:
        case None:
            return Ask("not in the listing" if policy.evidence == "list" else "due")
        case Missing():
            return End(BoxState.ARCHIVED, StopReason.PROVIDER_MISSING, None, "gone at the provider")
        case Failed(code, counts):
            return _failed(code, counts)
        case Deferred(seconds):
            return PutOff(seconds)
        case Seen(box, confirmed):
            return _shown(row, box, confirmed, now, policy)


def is_due(row: Row, now: datetime) -> bool:
    return row.next_reconciliation_at is None or row.next_reconciliation_at <= now


def _failed(code: str, counts: bool) -> Action:
    if code == ProviderCode.MALFORMED_ID:
        return BackOff(code, (Notice(EventType.MALFORMED_ID, "id_cannot_be_asked_about"),))
    return BackOff(code) if counts else Leave(f"unusable answer: {code}")


def _shown(row: Row, box: ProviderBox, confirmed: bool, now: datetime, policy: Policy) -> Action:
    ours = box.is_named(policy.marker)
    adverse = _adverse(row, box, ours, now, policy)
    if not confirmed and (adverse is not None or _is_odd(row, box, ours)):
        return Ask("listed, but not as a healthy box of ours")
    return adverse or _note(row, box, ours)


def _adverse(row: Row, box: ProviderBox, ours: bool, now: datetime, policy: Policy) -> Action | None:
    """The step that ends the box, if one is due: its end at the provider, its time, its idleness, in this order."""
    if box.is_terminal:
        state = BoxState.ERROR if box.raw_state == "error" else BoxState.ARCHIVED
        return End(
            state, StopReason.PROVIDER_TERMINAL, box.cost_microusd, f"the provider says {box.raw_state}"
        )
    due = _stop_due(row, now, policy)
    if due is None or not ours:
        return None
    reason, why = due
    return Stop(_note(row, box, ours), reason, why)


def _stop_due(row: Row, now: datetime, policy: Policy) -> tuple[StopReason, str] | None:
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


def _note(row: Row, box: ProviderBox, ours: bool) -> Note:
    return Note(
        box.state,
        box.setup_status,
        is_marked=row.is_ours_to_mark and ours,
        needs_mark=row.is_ours_to_mark and not ours,
        notices=tuple(_notices(row, box, ours)),
    )


def _notices(row: Row, box: ProviderBox, ours: bool) -> list[Notice]:
    found = []
    if not box.is_known_state:
        found.append(Notice(EventType.UNKNOWN_STATE, f"state_{box.raw_state or 'missing'}"[:128]))
    if box.name is not None and not ours and not row.is_ours_to_mark:
        found.append(Notice(EventType.MARKER_MISSING, "box_under_another_name"))
    return found


def _is_odd(row: Row, box: ProviderBox, ours: bool) -> bool:
    return bool(_notices(row, box, ours)) or (row.is_ours_to_mark and not ours)
