"""The newest run of each box, in words, with the end of what it printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base.amounts import duration
from base.clock import database_now
from base.text import keep_last_bytes
from forge.models import Assignment
from forge.selectors import attempts_of
from openagents_site.fleet_page.text import printed, shown
from runs.models import Run
from runs.services import read_output
from runs.states import RunState

SHOWN_BYTES = 16 * 1024
"""Of the end of a run's output: what a page is sent at once. Whoever follows the run gets what comes after."""
_FIELDS = ("id", "conversation_box_id", "requesting_principal", "command", "state", "exit_status", "exit_signal", "failure_reason", "timed_out",
           "kill_confirmed", "admitted_at", "started_at", "finished_at", "cancellation_requested_at",
           "output_base_offset", "last_output_offset")  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run in words. Following from the raw offset `follow_from` gives about what `output` shows, and what comes after.

    A run for an `issue` shows what was wanted there as its command, and as `script` all that it runs, clone and all.
    """

    id: UUID
    command: str
    issue: str
    script: str
    tone: str
    state: str
    is_terminal: bool
    began_at: datetime
    took: str
    can_cancel: bool
    output: str
    is_cut: bool
    follow_from: int


def newest_runs(box_ids: Sequence[UUID], *, with_output: bool) -> dict[UUID, PageRun]:
    """The newest run of each of these boxes. Two queries, one more where attempts run, none without boxes."""
    if not box_ids:
        return {}
    fields = (*_FIELDS, "output", "output_state") if with_output else _FIELDS
    newest = list(
        Run.objects.filter(conversation_box__in=box_ids)
        .order_by("conversation_box_id", "-admitted_at", "-id")
        .distinct("conversation_box_id")
        .only(*fields)
    )
    now, attempts = database_now(), attempts_of(newest)
    return {run.conversation_box_id: _run(run, attempts.get(run.pk), now, with_output) for run in newest}


def command_of(run: Run, attempt: Assignment | None) -> str:
    """What somebody wanted to be run: for an attempt, what it is to run in the clone."""
    return shown(run.command if attempt is None or attempt.command is None else attempt.command)


def _issue(attempt: Assignment | None) -> str:
    """`shop #3 Mend the till`"""
    return "" if attempt is None else shown(f"{attempt.repository.name} {attempt.issue}")


def _run(run: Run, attempt: Assignment | None, now: datetime, with_output: bool) -> PageRun:
    ended = run.finished_at or now
    return PageRun(
        id=run.pk,
        command=command_of(run, attempt),
        issue=_issue(attempt),
        script="" if attempt is None else shown(run.command),
        tone=_tone(run),
        state=_state(run),
        is_terminal=run.is_terminal,
        began_at=run.started_at or run.admitted_at,
        took=duration((ended - (run.started_at or run.admitted_at)).total_seconds()),
        can_cancel=not run.is_terminal and run.cancellation_requested_at is None,
        output=_tail(run) if with_output else "",
        is_cut=_follow_from(run) > 0,
        follow_from=_follow_from(run),
    )


def _tail(run: Run) -> str:
    text, _ = keep_last_bytes(read_output(run, run.output_base_offset)["output"], SHOWN_BYTES)
    return printed(text)


def _follow_from(run: Run) -> int:
    return max(run.output_base_offset, run.last_output_offset - SHOWN_BYTES)


def _tone(run: Run) -> str:
    if not run.is_terminal:
        return "ending" if run.cancellation_requested_at else "up"
    return {RunState.COMPLETED: "done", RunState.CANCELLED: "stopped"}.get(RunState(run.state), "failed")


def _state(run: Run) -> str:
    """`running`, `completed, exit status 0`, `failed, killed by SIGKILL`, `lost: box_stopped`."""
    if not run.is_terminal:
        return "being cancelled" if run.cancellation_requested_at else RunState(run.state).label
    said = run.state.replace("_", " ")
    if run.exit_signal:
        said += f", killed by {run.exit_signal}"
    elif run.exit_status is not None:
        said += f", exit status {run.exit_status}"
    elif run.failure_reason:
        said += f": {shown(run.failure_reason)}"
    return said
