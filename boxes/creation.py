"""Creating one box: a place is taken, and one attempt is made at once."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from base import notify
from base.clock import database_now
from base.faults import declare, fault_point
from boxes import admission, budgets, selectors
from boxes.budgets import SpentBudget
from boxes.client import BoxClient, client
from boxes.errors import ProviderCode, ProviderError, Refused
from boxes.installation import creates_held_seconds, provider_ownership_marker
from boxes.models import Box
from boxes.provisioning import ledger, settling
from boxes.provisioning.calls import Task, perform
from boxes.provisioning.driver import task_of
from boxes.provisioning.steps import Step, is_settled_in
from boxes.stopping import DRIVER

RESERVED = declare("boxes.create.reserved", "the place is taken, the provider is not asked yet")
BOUND = declare("boxes.create.bound", "the row has the provider's id, the box has no name of ours")
MARKED = declare("boxes.create.marked", "the box has our name and the row says so, nobody looks at it yet")


def create_box(
    conversation_id: UUID, label: str | None = None, budgeted: bool = False, *, create_key: str | None = None
) -> Box:
    """A new box of the conversation, as far as it is after one attempt; the worker goes on until it is ready.

    If the provider's answer was lost the box comes back with `box_id` null, and the worker finds it by its key. If the
    provider refused, nothing is stored and the ProviderError is raised; so it is, without asking, for as long as the provider
    wants no further creation. With a `create_key` that was used before, the box of
    that time. Raises as `admission.reserve`.
    """
    _refuse_while_held(create_key)
    try:
        box, is_new = admission.reserve(
            conversation_id, label=label, budgeted=budgeted, create_key=create_key
        )
    except SpentBudget as error:
        budgets.report(error.spending)
        raise
    if not is_new:
        return box
    fault_point(RESERVED)
    _attempt(box)
    return _as_it_is_now(box)


def has_settled_in(box: Box) -> bool:
    """Whether this new box needs nothing more of its creation, by its row as it is now. Raises as `create_box` if the
    provider has refused it meanwhile."""
    return is_settled_in(_as_it_is_now(box))


def _as_it_is_now(box: Box) -> Box:
    if not selectors.reread(box):
        raise Refused(ProviderCode.REFUSED, log_detail="refused when a worker asked again")
    return box


def _refuse_while_held(create_key: str | None) -> None:
    left = creates_held_seconds()
    if left and not (create_key and Box.objects.filter(create_key=create_key).exists()):
        raise Refused(
            ProviderCode.RATE_LIMITED, retry_after_seconds=left, log_detail="not sent: asked to wait"
        )


def _attempt(box: Box) -> None:
    """Create, bind, name; and stop, if that was asked for meanwhile. What fails after the id is known is the worker's."""
    provider = client()
    task = task_of(box, Step.CREATE, provider_ownership_marker(), attempts_before=0)
    if not _create(provider, task):
        return
    fault_point(BOUND)
    task = replace(task, step=Step.MARK, box_id=Box.objects.values_list("box_id", flat=True).get(pk=box.pk))
    if not _step(provider, task, keep_lease=True):
        return
    fault_point(MARKED)
    box.refresh_from_db()
    if box.stop_requested_at is not None:
        _step(provider, replace(task, step=Step.STOP, stop_reason=ledger.stop_reason(box)))
        return
    ledger.rest(box, None if is_settled_in(box) else database_now())
    notify.notify(notify.DUE, DRIVER)


def _create(provider: BoxClient, task: Task) -> bool:
    """Whether the row is bound now and still ours. Raises Refused, after the reservation was undone."""
    try:
        made = perform(provider, task)
    except ProviderError as error:
        settling.settle_error(task, error)
        if isinstance(error, Refused):
            raise
        return False
    return settling.settle_answer(task, made, keep_lease=True)


def _step(provider: BoxClient, task: Task, *, keep_lease: bool = False) -> bool:
    try:
        answer = perform(provider, task)
    except ProviderError as error:
        settling.settle_error(task, error)
        return False
    return settling.settle_answer(task, answer, keep_lease=keep_lease)
