"""Writing a locked run: what changed, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction

from base import hooks, notify
from runs.log_store import RunLog
from runs.models import Run
from runs.states import RunState
from runs.watching import key_of

logger = structlog.get_logger(__name__)

_LEASE = ["lease_owner", "lease_expires_at", "generation", "next_step_at", "calls_resume_at", "step_failures"]
_KILL = ["kill_confirmed"]
_LIFE = ["state", "pid", "dispatch_attempted_at", "dispatched_at", "started_at", "finished_at", "exit_status",
         "exit_signal", "failure_reason", "timed_out", "cancellation_effective_at", "dead_sightings", "quiet_polls",
         "log_size", "dropped_bytes", "last_output_offset", "received_offset"]  # fmt: skip
_FIELDS: dict[str, Any] = {field.name: field for field in Run._meta.concrete_fields}
_OUTPUT = ["output", "output_base_offset", "output_state"]


def end(
    log: RunLog, state: RunState | str, reason: str | None, now: datetime, *, missing_bytes: int = 0
) -> None:
    """Set the end of a living run on its locked row; what was held back of its output becomes readable. `save` writes it."""
    run = log.run
    log.close()
    run.state = RunState(state)
    run.failure_reason = reason[:128] if reason else None
    run.timed_out = run.state == RunState.TIMED_OUT
    run.finished_at = now
    run.dropped_bytes += missing_bytes


def save(log: RunLog, *, was_terminal: bool) -> None:
    """Write what changed on a locked row since its `RunLog` was made. Who asked for the run is told of its end in this transaction; `wake` tells who watches it."""
    run, fields = log.run, _LEASE + _KILL
    if not was_terminal:
        fields = fields + _LIFE
        if log.is_touched:
            fields = fields + _OUTPUT
            log.write()
    _update(run, {name: getattr(run, name) for name in fields if getattr(run, name) != log.before[name]})
    if run.is_terminal and not was_terminal:
        logger.info(
            "run_ended",
            run=str(run.pk),
            state=run.state,
            exit_status=run.exit_status,
            reason=run.failure_reason,
        )
        _tell(run)


def _update(run: Run, changed: dict[str, Any]) -> None:
    """Without the query builder, which takes longer than the statement: ends come by the hundred."""
    if not changed:
        return
    columns = ", ".join(f"{name} = %s" for name in changed)
    values = [_FIELDS[name].get_db_prep_save(value, connection) for name, value in changed.items()]
    with connection.cursor() as cursor:
        cursor.execute(f"update box_runs set {columns} where id = %s", [*values, run.pk])  # noqa: S608 - columns of ours


def wake(run_ids: Sequence[Any]) -> None:
    """Wake whoever watches these runs, when the transaction commits."""
    with connection.cursor() as cursor:
        keys = [key_of(run_id) for run_id in run_ids]
        cursor.execute("select pg_notify(%s, key) from unnest(%s::text[]) as key", [notify.CHANGED, keys])


def _tell(run: Run) -> None:
    """Tell who asked for the run. What goes wrong there is theirs: it is undone and logged, and the run ends all the same."""
    try:
        with transaction.atomic():
            hooks.run_finished(run)
    except DatabaseError:
        logger.exception("run_finished_hook_failed", run=str(run.pk))
