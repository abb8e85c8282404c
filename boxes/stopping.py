"""Stopping a box: one claimant asks the provider, and one transition ends the row.

A row is *active* (no claim), *claimed* (`stop_requested_at` is set) or *stopped* (`stopped_at` is set, for ever). Whoever
has the claim asks the provider, outside any transaction. A claim ages: after `CLAIM_SECONDS` its holder is taken to be
dead, and the worker, a pass or a person may take it over. A row whose provider id is not known yet cannot be asked about:
its claim is only noted and does not age, and whoever binds the id stops the box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import structlog
from django.db import connection

from base import notify
from base.faults import declare, fault_point
from boxes import selectors
from boxes.client import BoxClient, ProviderBox, client
from boxes.ending import SETTLE_AFTER_PASS_SECONDS, SETTLE_AFTER_USER_SECONDS, end_row
from boxes.errors import BoxNotFound, BoxStopped, ProviderCode, ProviderError, Refused
from boxes.models import Box
from boxes.states import DOWN, BoxState, StopReason

log = structlog.get_logger(__name__)

CLAIM_SECONDS = 90  # well above the longest stop call, so that only the claim of a dead holder ages
DRIVER = "provisioning"

STOP_CLAIMED = declare("boxes.stop.claimed", "the stop is claimed, the provider is not asked yet")
STOP_CALLED = declare("boxes.stop.called", "the provider has taken the stop, the row does not say so yet")

STANDING = frozenset({StopReason.OWNER_DELETED, StopReason.BUDGET_REACHED})
"""Reasons of the product itself, which hold until the box is stopped; a person's wish is theirs to repeat."""

Claim = Literal["claimed", "in_flight", "already_stopped"]


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """What the provider made of a stop: the box as it showed it, and the reason if it had ended the box by itself."""

    box: ProviderBox | None
    ended_because: StopReason | None = None


def stop_box(conversation_id: UUID, box_ref: str) -> Box:
    """Stop a box of the conversation now and free its place; returns the row.

    A stop that is in flight elsewhere, and a box whose id is not known yet, answer with the row as it is: the stop goes on.
    Raises BoxNotFound `box_not_owned`, BoxStopped, or the ProviderError of a stop that failed, after which the box counts as
    active again.
    """
    box = selectors.find(conversation_id, box_ref)
    if box is None:
        raise BoxNotFound("box_not_owned")
    if box.box_id is None and _end_unasked(box, StopReason.USER_REQUESTED):
        return box
    claim = claim_stop(box, StopReason.USER_REQUESTED)
    if claim == "already_stopped":
        raise BoxStopped
    if claim == "claimed":
        carry_out(box, StopReason.USER_REQUESTED)
    if not selectors.reread(box):
        raise BoxNotFound("box_not_owned")
    return box


def carry_out(box: Box, reason: StopReason, *, by_pass: bool = False) -> bool:
    """Stop the box whose claim the caller holds. Returns whether this caller ended the row.

    Raises the ProviderError of a stop that failed; the claim is given back first.
    """
    assert box.box_id is not None, "a claim of a row without an id is only noted"
    fault_point(STOP_CLAIMED)
    try:
        answer = call_stop(client(), box.box_id)
    except ProviderError as error:
        release_stop(box, error)
        raise
    fault_point(STOP_CALLED)
    return complete_stop(box, reason, answer, by_pass=by_pass)


def claim_stop(box: Box, reason: StopReason) -> Claim:
    """Claim the stop of a box; the fields of `box` that say so are brought up to date.

    `claimed`: the caller, and nobody else, is to ask the provider and then to complete or release. `in_flight`: somebody
    else is at it, or the id is not known yet and the stop is noted for whoever binds it. `already_stopped`: nothing to do.
    """
    if box.box_id is None and _end_unasked(box, reason):
        return "already_stopped"
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM, {"id": box.pk, "reason": reason, "seconds": CLAIM_SECONDS, "due_in": CLAIM_SECONDS}
        )
        row = cursor.fetchone()
    if not selectors.reread(box):
        return "already_stopped"  # the creation was refused meanwhile, and the reservation is gone
    if row is None:
        return "already_stopped" if box.stopped_at else "in_flight"
    if row[0] is None:
        notify.notify(notify.DUE, DRIVER)
        return "in_flight"
    log.info("stop_claimed", box=str(box.pk), reason=str(reason))
    return "claimed"


def ask_stop(box: Box, reason: StopReason) -> bool:
    """Have the worker stop a box, now and until it succeeds. False if it is stopped or being stopped already.

    For a reason that stands (see `STANDING`) a stop in flight elsewhere that fails is not given up either.
    """
    if box.box_id is None and _end_unasked(box, reason):
        return True
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"id": box.pk, "reason": reason, "seconds": CLAIM_SECONDS, "due_in": 0})
        asked = bool(cursor.rowcount == 1)
        if not asked and reason in STANDING:
            cursor.execute(_INSIST, {"id": box.pk, "reason": reason})
    if asked:
        notify.notify(notify.DUE, DRIVER)
        log.info("stop_asked", box=str(box.pk), reason=str(reason))
    return asked


# A claim on a bound row takes the row out of the hands of whoever is provisioning it (generation, lease), and makes it due
# for the worker when the claim has aged. A row without an id stays in those hands.
_CLAIM = """
    update conversation_boxes set
        stop_requested_at = clock_timestamp(),
        stop_requested_reason = case when stop_requested_reason in ('owner_deleted', 'budget_reached')
                                     then stop_requested_reason else %(reason)s end,
        next_provision_at = case when box_id is null then coalesce(next_provision_at, clock_timestamp())
                                 else clock_timestamp() + make_interval(secs => %(due_in)s) end,
        generation = case when box_id is null then generation else generation + 1 end,
        lease_owner = case when box_id is null then lease_owner end,
        lease_expires_at = case when box_id is null then lease_expires_at end
    where id = %(id)s and stopped_at is null
      and (stop_requested_at is null
           or (box_id is not null and stop_requested_at < clock_timestamp() - make_interval(secs => %(seconds)s)))
    returning box_id
"""


_INSIST = """
    update conversation_boxes set stop_requested_reason = %(reason)s
    where id = %(id)s and stopped_at is null and stop_requested_at is not null
"""


def release_stop(box: Box, error: ProviderError) -> bool:
    """Give back the claim that `claim_stop` noted on `box`, after a stop that failed with `error`.

    Nothing is written if the row was stopped or the claim was taken over meanwhile (False). A creation that the claim
    interrupted goes on. A stop that was asked for with a standing reason goes to the worker instead.
    """
    released = withdraw_stop(box)
    log.warning("stop_failed", box=str(box.pk), code=error.code, released=released)
    return released


def withdraw_stop(box: Box) -> bool:
    """Give back the claim that `claim_stop` noted on `box`, without having asked for anything. As `release_stop`."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, {"id": box.pk, "claimed_at": box.stop_requested_at})
        return bool(cursor.rowcount == 1)


_RELEASE = """
    update conversation_boxes set
        stop_requested_at = case when stop_requested_reason in ('owner_deleted', 'budget_reached')
                                 then stop_requested_at end,
        stop_requested_reason = case when stop_requested_reason in ('owner_deleted', 'budget_reached')
                                     then stop_requested_reason end,
        next_provision_at = case
            when stop_requested_reason in ('owner_deleted', 'budget_reached')
                then clock_timestamp() + interval '5 seconds'
            when create_key is not null and (marked_at is null or state in
                ('init', 'provisioning', 'provisioned', 'cloning')) then clock_timestamp() end
    where id = %(id)s and stopped_at is null and stop_requested_at = %(claimed_at)s
"""


def complete_stop(
    box: Box, reason: StopReason, answer: StopAnswer | ProviderBox | None, *, by_pass: bool
) -> bool:
    """End the row after the provider took the stop, and free its place. False if it was stopped before.

    A cost in the answer is settled at once; without one the row is due for settlement 2 s after a person's stop, 60 s after
    one by a pass (`by_pass`).
    """
    if not isinstance(answer, StopAnswer):
        answer = StopAnswer(answer)
    shown = answer.box
    return end_row(
        box,
        state=_state_after(answer),
        reason=answer.ended_because or reason,
        cost_microusd=shown.cost_microusd if shown else None,
        settle_after_seconds=SETTLE_AFTER_PASS_SECONDS if by_pass else SETTLE_AFTER_USER_SECONDS,
    )


def _state_after(answer: StopAnswer) -> BoxState:
    if answer.box is not None and answer.box.state in DOWN:
        return answer.box.state
    return BoxState.ARCHIVED if answer.ended_because == StopReason.PROVIDER_MISSING else BoxState.ARCHIVING


def call_stop(provider: BoxClient, box_id: str) -> StopAnswer:
    """Ask the provider to stop a box. A refusal that may mean "it has ended already" is settled by a look at the box.

    Raises ProviderError if the box may still be up.
    """
    try:
        return StopAnswer(provider.stop(box_id))
    except Refused as refusal:
        if refusal.provider_status not in (400, 404, 409):
            raise
        return _ended_already(provider, box_id, refusal)


def _ended_already(provider: BoxClient, box_id: str, refusal: Refused) -> StopAnswer:
    try:
        seen = provider.get(box_id)
    except Refused as error:
        if error.code == ProviderCode.NOT_FOUND:
            return StopAnswer(None, StopReason.PROVIDER_MISSING)
        raise refusal from error
    if seen.is_terminal:
        return StopAnswer(seen, StopReason.PROVIDER_TERMINAL)
    if seen.state == BoxState.ARCHIVING:
        return StopAnswer(seen)
    raise refusal


def _end_unasked(box: Box, reason: StopReason) -> bool:
    """End a reservation for which the provider was never asked: there is nothing to stop, and nothing to pay."""
    ended = end_row(
        box,
        state=BoxState.ARCHIVED,
        reason=reason,
        cost_microusd=0,
        settle_after_seconds=0,
        only_unasked=True,
    )
    if ended:
        box.refresh_from_db()
    return ended
