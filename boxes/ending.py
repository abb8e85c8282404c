"""The end of a row: the one transition to stopped, which nothing undoes."""

from __future__ import annotations

from uuid import UUID

import pghistory
import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

from accounts.models import User
from base import hooks, notify
from boxes.errors import BoxStopped
from boxes.models import Box
from boxes.states import BoxState, StopReason

log = structlog.get_logger(__name__)

SETTLE_AFTER_USER_SECONDS = 2
SETTLE_AFTER_PASS_SECONDS = 60  # so that the pass right after a stop has nothing to ask about


def end_row(
    box: Box,
    *,
    state: BoxState,
    reason: StopReason,
    cost_microusd: int | None,
    settle_after_seconds: float,
    only_unasked: bool = False,
) -> bool:
    """The one transition to stopped: reason, lifetime, the cost if it is known, else when to ask for it.

    Returns whether this caller made it; then `hooks.box_stopped` ran in the same transaction, and what waited for a place
    was promoted after it. With `only_unasked`, only a reservation for which the provider was never asked is ended.
    """
    with transaction.atomic():
        ended = write_end(
            box,
            state=state,
            reason=reason,
            cost_microusd=cost_microusd,
            settle_after_seconds=settle_after_seconds,
            only_unasked=only_unasked,
        )
    if ended:
        promote_waiting()
    return ended


def write_end(
    box: Box,
    *,
    state: BoxState,
    reason: StopReason,
    cost_microusd: int | None,
    settle_after_seconds: float,
    only_unasked: bool = False,
) -> bool:
    """`end_row` within a transaction of the caller, who calls `promote_waiting` after its commit."""
    assert connection.in_atomic_block, "the hooks belong to the transition's transaction"
    values: dict[str, str | int | float | UUID | bool | None] = {
        "id": box.pk,
        "state": state,
        "reason": reason,
        "cost": cost_microusd,
        "seconds": settle_after_seconds,
        "only_unasked": only_unasked,
    }
    with connection.cursor() as cursor:
        cursor.execute(_END, values)
        ended = bool(cursor.rowcount == 1)
    if ended:
        _tell_stopped(box.pk)
        notify.notify(notify.CHANGED, f"box:{box.pk}")
        log.info("box_stopped", box=str(box.pk), state=str(state), reason=str(reason))
    return ended


def _tell_stopped(pk: UUID) -> None:
    """A reporter that breaks the database's transaction must not undo the stop of a box that the provider has stopped."""
    try:
        with transaction.atomic():
            hooks.box_stopped(pk)
    except (OperationalError, InterfaceError):
        raise
    except DatabaseError:
        log.exception("box_stopped_hook_failed", box=str(pk))


def promote_waiting() -> None:
    """Give places that became free to what waits for one. Never raises: the scheduled promotion tries again."""
    try:
        from boxes.fanout import promote_queued  # a plan is above the stop of a box

        promote_queued()
    except Exception:
        log.exception("promotion_failed")


_END = """
    update conversation_boxes box set
        state = %(state)s, stopped_at = moment.now, stop_reason = %(reason)s,
        stop_requested_at = null, stop_requested_reason = null,
        lifetime_seconds = greatest(0, floor(extract(epoch from moment.now - box.created_at)))::bigint,
        settled_cost_microusd = coalesce(box.settled_cost_microusd, %(cost)s::bigint),
        usage_settled_at = coalesce(box.usage_settled_at, case when %(cost)s::bigint is not null then moment.now end),
        next_settlement_at = case when %(cost)s::bigint is null and box.usage_settled_at is null
                                  then moment.now + make_interval(secs => %(seconds)s) end,
        next_provision_at = null, lease_owner = null, lease_expires_at = null, generation = box.generation + 1
    from (select clock_timestamp() as now) moment
    where box.id = %(id)s and box.stopped_at is null
      and (not %(only_unasked)s or (box.box_id is null and box.create_key is not null and box.create_attempts = 0))
"""


def forget_box(box: Box, *, by: User) -> Box:
    """Close the row of a box that cannot be stopped. Staff only; recorded with who did it. Returns the row.

    The box may go on to cost: a pass sees it come up again and says so. Raises BoxStopped.
    """
    with pghistory.context(forgotten_by=str(by.pk)):
        ended = end_row(
            box,
            state=BoxState.ERROR,
            reason=StopReason.FORGOTTEN,
            cost_microusd=None,
            settle_after_seconds=SETTLE_AFTER_PASS_SECONDS,
        )
    if not ended:
        raise BoxStopped
    log.warning("box_forgotten", box=str(box.pk), by=str(by.pk))
    box.refresh_from_db()
    return box
