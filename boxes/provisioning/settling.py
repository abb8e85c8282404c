"""From the outcome of a step to what the ledger says of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.db import connection

from boxes import fanout, installation
from boxes.client import ProviderBox
from boxes.conf import box_api
from boxes.ending import end_row
from boxes.errors import ProviderError, Refused, RetryLater
from boxes.models import Box
from boxes.provisioning import ledger
from boxes.provisioning.calls import Task
from boxes.provisioning.steps import Step, retry_in
from boxes.states import BoxState
from boxes.stopping import StopAnswer, complete_stop

log = structlog.get_logger(__name__)


def settle_answer(task: Task, answer: ProviderBox | StopAnswer, *, keep_lease: bool = False) -> bool:
    """Write what the provider answered; False if the row is another's by now."""
    if isinstance(answer, StopAnswer):
        return complete_stop(Box(pk=task.pk), task.stop_reason, _by_an_earlier_stop(answer), by_pass=False)
    if task.step == Step.CREATE:
        return ledger.bind(task, answer, keep_lease=keep_lease)
    if task.step == Step.MARK:
        return ledger.mark(task, answer, keep_lease=keep_lease)
    conf = box_api()
    return ledger.look(
        task,
        answer,
        poll_attempts=conf.poll_attempts,
        poll_interval=timedelta(milliseconds=conf.poll_interval_ms),
    )


def _by_an_earlier_stop(answer: StopAnswer) -> StopAnswer:
    """Whoever had the claim before may have stopped the box and died: what is archived by now ended as it was asked to."""
    ended = answer.box is not None and answer.box.state == BoxState.ARCHIVED
    return StopAnswer(answer.box) if ended else answer


def settle_error(task: Task, error: Exception) -> bool:
    """Write what became of a step that raised; False if the row is another's by now.

    What nobody expected counts as unknown: it may have happened, and is tried again after a pause.
    """
    if not isinstance(error, ProviderError):
        log.error(
            "provisioning_step_raised", box=str(task.pk), step=str(task.step), error=type(error).__name__
        )
    if task.step == Step.CREATE and isinstance(error, ProviderError) and error.retry_after_seconds:
        installation.hold_creates(error.retry_after_seconds)
    if isinstance(error, RetryLater):
        pause = error.retry_after_seconds or retry_in(task.failures + 1).total_seconds()
        return ledger.defer(task, pause, not_sent=task.step == Step.CREATE)
    settle = _SETTLE_ERROR.get(task.step, _settle_step)
    return settle(task, error)


def _settle_create(task: Task, error: Exception) -> bool:
    if isinstance(error, Refused) and not task.had_unknown:
        return settle_refusal(task, error)
    return ledger.fail(task, ledger.code_of(error), unknown=True)


def settle_refusal(task: Task, refused: Refused) -> bool:
    """Undo a reservation whose creation certainly did not happen.

    A box of a plan goes back to its queue. A row whose stop was asked for is closed with the reason asked. Any other is
    deleted: whoever asked for it is told.
    """
    if _close_asked(task):
        return True
    return fanout.put_back(task.pk, refused) or _delete(task)


def _close_asked(task: Task) -> bool:
    row = Box.objects.filter(pk=task.pk, generation=task.generation, box_id=None, stopped_at=None).first()
    if row is None or row.stop_requested_at is None:
        return False
    return end_row(
        row, state=BoxState.ARCHIVED, reason=ledger.stop_reason(row), cost_microusd=0, settle_after_seconds=0
    )


def _delete(task: Task) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "delete from conversation_boxes where id = %s and generation = %s and box_id is null and stopped_at is null"
            " and stop_requested_at is null and not create_unknown",
            [task.pk, task.generation],
        )
        deleted = bool(cursor.rowcount == 1)
    return deleted or _close_asked(task)  # a stop may have been asked for since it was looked at


def _settle_look(task: Task, error: Exception) -> bool:
    return ledger.fail_look(task, ledger.code_of(error), poll_attempts=box_api().poll_attempts)


def _settle_step(task: Task, error: Exception) -> bool:
    return ledger.fail(task, ledger.code_of(error))


_SETTLE_ERROR: dict[Step, Callable[[Task, Exception], bool]] = {
    Step.CREATE: _settle_create,
    Step.LOOK: _settle_look,
}
