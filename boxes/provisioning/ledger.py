"""What provisioning writes. Every write names the generation of its lease, so that one that lost it writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import IntegrityError, connection, transaction
from django.db.models import F, QuerySet

from base import leases, notify
from base.pump import Holder
from base.sql import ClockTimestamp
from boxes.client import ProviderBox
from boxes.ending import promote_waiting, write_end
from boxes.errors import ProviderError
from boxes.models import Box, ReconciliationEvent
from boxes.provisioning.calls import Task
from boxes.provisioning.steps import Step, is_settled_in, retry_in
from boxes.states import BoxState, EventType, SetupStatus, StopReason

log = structlog.get_logger(__name__)
RELEASED: dict[str, Any] = {"lease_owner": None, "lease_expires_at": None}


def lease_due(holder: Holder, limit: int) -> list[Box]:
    """At most `limit` due rows that nobody holds, leased to `holder`, each with the database's time as `leased_at`.

    A stop that was asked for counts as claimed from now on, so that nobody else asks the provider meanwhile.
    """
    return list(Box.objects.raw(_LEASE, [limit, holder.owner, holder.lease_seconds]))


_LEASE = f"""
    with due as materialized (
        select id from conversation_boxes box
        where box.next_provision_at <= clock_timestamp() and box.stopped_at is null and {leases.free("box")}
        order by box.next_provision_at limit %s for update skip locked)
    update conversation_boxes box set {leases.take("box")},
        stop_requested_at = case when box.box_id is not null and box.stop_requested_at is not null
                                 then clock_timestamp() else box.stop_requested_at end
    from due where box.id = due.id returning box.*, clock_timestamp() as leased_at
"""  # noqa: S608 - the fragments are constants of ours


def note_attempts(boxes: Sequence[Box]) -> set[Any]:
    """Note that the provider is about to be asked for these boxes; the ids of those that are still ours to ask for.

    An attempt that was noted and has no outcome may have succeeded: from the second on, all that follow are *unknown*.
    """
    if not boxes:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            update conversation_boxes box set create_attempts = box.create_attempts + 1,
                create_unknown = box.create_unknown or box.create_attempts > 0,
                create_attempted_at = coalesce(box.create_attempted_at, clock_timestamp())
            from unnest(%s::uuid[], %s::bigint[]) as mine(id, generation)
            where box.id = mine.id and box.generation = mine.generation and box.box_id is null
            returning box.id
            """,
            [[box.pk for box in boxes], [box.generation for box in boxes]],
        )
        return {row[0] for row in cursor.fetchall()}


def rest(box: Box, due_at: datetime | None) -> bool:
    """Give the row back; it is due again at `due_at`, or not at all."""
    return _held(box).update(next_provision_at=due_at, **RELEASED) == 1


def abandon(box: Box) -> bool:
    """Close a row whose creation was never answered, with an event for staff. Its cost stays unknown."""
    with transaction.atomic():
        ended = write_end(
            box,
            state=BoxState.ERROR,
            reason=StopReason.CREATE_ABANDONED,
            cost_microusd=None,
            settle_after_seconds=0,
        )
        if not ended:
            return False
        Box.objects.filter(pk=box.pk).update(usage_settled_at=F("stopped_at"), next_settlement_at=None)
        ReconciliationEvent.objects.create(
            provider_box_id=f"create:{box.create_key}"[:200],
            event_type=EventType.CREATE_ABANDONED,
            reason=box.create_error or "never_answered",
            details={"attempts": box.create_attempts, "label": box.label},
            owned=True,
            box=box,
            observed_at=ClockTimestamp(),
            last_seen_at=ClockTimestamp(),
        )
    promote_waiting()
    log.warning("create_abandoned", box=str(box.pk), attempts=box.create_attempts)
    return True


def bind(task: Task, made: ProviderBox, *, keep_lease: bool = False) -> bool:
    """Write the provider's id on the row: from here on the box has a row, whatever happens.

    False if the row is another's by now. A row that was closed while the provider was being asked still gets the id, so that
    the box is known to be ours when it is seen.
    """
    values = {
        "box_id": made.id,
        "create_unknown": False,
        **_observed(task, made),
        **_success(keep_lease),
    }
    try:
        with transaction.atomic():
            if _held(task).filter(box_id=None, stopped_at=None).update(**values) == 1:
                _tell(task)
                return True
            late = Box.objects.filter(pk=task.pk, box_id=None, stopped_at__isnull=False).update(
                box_id=made.id
            )
    except IntegrityError:
        log.error("box_id_of_another_row", box=str(task.pk), box_id=made.id)
        fail(task, "box_response_invalid")
        return False
    log.warning("create_answered_late", box=str(task.pk), box_id=made.id, bound=bool(late))
    return False


def mark(task: Task, named: ProviderBox, *, keep_lease: bool = False) -> bool:
    """Note that the box has our name."""
    return _held(task).update(marked_at=ClockTimestamp(), **_success(keep_lease)) == 1


def look(task: Task, seen: ProviderBox, *, poll_attempts: int, poll_interval: timedelta) -> bool:
    """Write what a look showed, unless the row was stopped or is being stopped; due again until it is ready.

    A box that ended by itself is left to the reconciler.
    """
    observed = _observed(task, seen)
    with transaction.atomic():
        row = _held(task).filter(stopped_at=None, stop_requested_at=None).select_for_update().first()
        if row is None:
            return False
        row.state, row.setup_status = observed["state"], observed["setup_status"]
        over = seen.is_terminal or is_settled_in(row) or row.ready_checks + 1 >= poll_attempts
        Box.objects.filter(pk=row.pk).update(
            **observed,
            **RELEASED,
            ready_checks=F("ready_checks") + 1,
            provision_failures=0,
            next_provision_at=None if over else ClockTimestamp() + poll_interval,
        )
        _tell(task)
    return True


def fail(task: Task, code: str, *, unknown: bool = False) -> bool:
    """Note a step that did not succeed; due again after a growing pause. A create with `unknown` may have succeeded.

    A stop that does not succeed shows where a pass would show it, too.
    """
    values: dict[str, Any] = {
        "create_error": code,
        "provision_failures": F("provision_failures") + 1,
        "next_provision_at": ClockTimestamp() + retry_in(task.failures + 1),
        **RELEASED,
    }
    if unknown:
        values["create_unknown"] = True
    if task.step == Step.STOP:
        values |= {"reconciliation_error": code, "reconciliation_failures": F("reconciliation_failures") + 1}
    log.info("provisioning_step_failed", box=str(task.pk), step=str(task.step), code=code, unknown=unknown)
    return _held(task).update(**values) == 1


def fail_look(task: Task, code: str, *, poll_attempts: int) -> bool:
    """Note a look that showed nothing; after the last one the row is left to the reconciler."""
    pause = ClockTimestamp() + retry_in(task.failures + 1)
    held = _held(task)
    left = held.filter(ready_checks__lt=poll_attempts - 1).update(
        ready_checks=F("ready_checks") + 1,
        provision_failures=F("provision_failures") + 1,
        create_error=code,
        next_provision_at=pause,
        **RELEASED,
    )
    return bool(left or held.update(ready_checks=F("ready_checks") + 1, next_provision_at=None, **RELEASED))


def defer(task: Task, seconds: float, *, not_sent: bool) -> bool:
    """Put a step off for as long as the provider asked. `not_sent`: a noted attempt at creating was not made after all."""
    values: dict[str, Any] = {"next_provision_at": ClockTimestamp() + timedelta(seconds=seconds), **RELEASED}
    held = _held(task)
    if not_sent and held.filter(create_attempts=1, create_unknown=False, box_id=None).update(
        create_attempts=0, create_attempted_at=None, **values
    ):
        return True
    return held.update(**values) == 1


def stop_reason(box: Box) -> StopReason:
    """The reason with which the box's stop was asked for."""
    return StopReason(box.stop_requested_reason or StopReason.USER_REQUESTED)


def code_of(error: Exception) -> str:
    """What is written of an error: its code, never its text."""
    return error.code if isinstance(error, ProviderError) else "internal_error"


def _held(row: Task | Box) -> QuerySet[Box]:
    return Box.objects.filter(pk=row.pk, generation=row.generation, lease_expires_at__isnull=False)


def _success(keep_lease: bool) -> dict[str, Any]:
    released = {} if keep_lease else RELEASED
    return {"provision_failures": 0, "create_error": None, "next_provision_at": ClockTimestamp(), **released}


def _observed(task: Task, shown: ProviderBox) -> dict[str, Any]:
    """State and setup status; a box that was asked for without a setup script has nothing left to set up."""
    nothing_to_do = shown.raw_setup_status is None and not task.setup_script
    return {"state": shown.state, "setup_status": SetupStatus.DONE if nothing_to_do else shown.setup_status}


def _tell(task: Task) -> None:
    notify.notify(notify.CHANGED, f"box:{task.pk}")
