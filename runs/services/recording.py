"""Recording what a run printed and how it ended, from outside the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from base.clock import database_now
from runs import ending, replies
from runs.errors import RunNotFound
from runs.log_store import RunLog
from runs.models import Run
from runs.states import TERMINAL, RunState


@transaction.atomic
def record_poll(run_id: UUID, poll: Mapping[str, Any]) -> Run:
    """Record one look at a living run: `present, log_size, output, exit_status?, alive?`; returns the run.

    Only output beyond what is known already counts, so the same poll again changes nothing. A run that has ended is
    returned unchanged. Raises RunNotFound, and ReplyInvalid for a poll without `present`.
    """
    run = _locked(run_id)
    reply = replies.parse_poll(dict(poll), offset=None)
    if run.is_terminal or not reply.present:
        return run
    log = RunLog(run)
    if data := _news(run, reply.log):
        log.take(run.next_raw_offset, data)
    run.log_size = max(run.log_size, reply.log.size)
    _take_over(run)
    run.state = RunState.RUNNING
    ending.save(log, was_terminal=False)
    ending.wake([run.pk])
    return run


@transaction.atomic
def finish(run_id: UUID, state: str, exit_status: int | None = None, reason: str | None = None) -> Run:
    """End a living run; returns the run. A run that has ended is returned unchanged: the first end stands.

    Raises RunNotFound, and ValueError for a state that is no end.
    """
    if state not in TERMINAL:
        raise ValueError(f"{state!r} is not an end of a run")
    run = _locked(run_id)
    if run.is_terminal:
        return run
    log = RunLog(run)
    run.exit_status = exit_status if exit_status is not None else run.exit_status
    _take_over(run)
    run.next_step_at = run.next_step_at if run.kill_confirmed is False else None
    ending.end(log, state, reason, database_now())
    ending.save(log, was_terminal=False)
    ending.wake([run.pk])
    return run


def _locked(run_id: UUID) -> Run:
    runs = Run.objects.select_for_update(of=("self",)).select_related("conversation_box")
    run = runs.filter(pk=run_id).first()
    if run is None:
        raise RunNotFound
    return run


def _take_over(run: Run) -> None:
    """Whatever a worker is doing with the row is from before this: its answer will not be written."""
    run.generation += 1
    run.lease_owner = run.lease_expires_at = None


def _news(run: Run, piece: replies.LogPiece) -> bytes:
    """The bytes of this piece that follow what is known; a piece without a place of its own starts there."""
    if piece.offset > run.next_raw_offset:
        return piece.data
    return piece.data_from(run.next_raw_offset)
