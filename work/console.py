"""Jobs in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from base.console import SHORT_ID, age, plain, value_text
from base.text import display_text
from work.models import Job, JobStep
from work.states import JobStatus, StepStatus

COLOURS = {
    JobStatus.QUEUED: "cyan",
    JobStatus.RUNNING: "bold cyan",
    JobStatus.COMPLETED: "green",
    JobStatus.FAILED: "red",
    JobStatus.INTERRUPTED: "bold red",
    JobStatus.BUDGET_EXHAUSTED: "yellow",
    JobStatus.CANCELLED: "yellow",
}
SHOWN = ("id", "kind", "conversation_id", "machine_id", "goal", "context_hint", "error_code", "model_id",
         "tool_call_count", "continuation_count", "usage", "token_budget", "cost_budget_microusd", "keep_boxes",
         "created_at", "started_at", "completed_at", "cancel_requested_at", "next_step_at", "attempts", "failures",
         "failure_code", "lease_owner", "lease_expires_at", "generation", "report_message_id")  # fmt: skip


def list_table(jobs: Sequence[Job], now: datetime, *, short_ids: bool = False) -> Table:
    """One line a job. `short_ids`: the beginning of each id, which is enough to name it, so that a terminal has room for the rest."""
    table = Table(box=None, pad_edge=False)
    for heading in ("JOB", "KIND", "STATUS", "CODE", "AGE", "CALLS", "GOAL"):
        table.add_column(heading, no_wrap=heading != "GOAL", overflow="ellipsis")
    for job in jobs:
        table.add_row(
            str(job.pk)[:SHORT_ID] if short_ids else str(job.pk),
            job.kind,
            status_text(job),
            plain(job.error_code or ""),
            age(now, job.created_at),
            str(job.tool_call_count),
            plain(job.goal.split("\n", 1)[0][:80]),
        )
    return table


def show(console: Console, job: Job, steps: Sequence[JobStep]) -> None:
    """All that the row says of a job, its steps, and its report or the text so far."""
    table = Table.grid(padding=(0, 2))
    table.add_row("status", status_text(job))
    for name in SHOWN:
        value = getattr(job, name)
        if value not in (None, {}, ""):
            table.add_row(name, plain(value_text(value)))
    console.print(table)
    if steps:
        console.print(Text("\nsteps", style="bold"))
        for step in steps:
            console.print(step_line(step))
    if job.report:
        console.print(Text("\nreport" if job.is_terminal else "\ntext so far", style="bold"))
        console.print(plain(job.report))


def step_line(step: JobStep) -> Text:
    """One line about a call: its tool, what came of it, how long it took."""
    code = step.error.get("code", "") if isinstance(step.error, dict) else ""
    seconds = f" {(step.completed_at - step.requested_at).total_seconds():.1f} s" if step.completed_at else ""
    style = "green" if step.status == StepStatus.SUCCEEDED else "cyan" if not step.is_terminal else "red"
    line = plain(f"{step.sequence:>2}. {step.tool_name} {step.arguments[:100]} ")
    return line.append(f"{step.status}{' ' + display_text(code) if code else ''}{seconds}", style=style)


def how_it_stands(job: Job) -> str:
    """One phrase about the job's end, or that it goes on."""
    if not job.is_terminal:
        return "is to be ended" if job.cancel_requested_at else job.get_status_display()
    code = job.error_code if job.error_code not in (None, job.status) else None
    return f"{job.get_status_display()} ({code})" if code else job.get_status_display()


def status_text(job: Job) -> Text:
    return Text(job.status, style=COLOURS[JobStatus(job.status)])


def facts(job: Job) -> dict[str, Any]:
    """The same for programs."""
    return {
        "status": job.status,
        "is_terminal": job.is_terminal,
        **{name: getattr(job, name) for name in SHOWN},
        "report": job.report,
    }
