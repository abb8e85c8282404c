"""Runs in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from base import hooks
from base.console import SHORT_ID, age, plain, value_text
from runs.models import Run
from runs.states import RunState

COLOURS = {
    RunState.ADMITTED: "cyan",
    RunState.DISPATCHED: "cyan",
    RunState.RUNNING: "bold cyan",
    RunState.COMPLETED: "green",
    RunState.FAILED: "red",
    RunState.CANCELLED: "yellow",
    RunState.TIMED_OUT: "red",
    RunState.LOST: "bold red",
}
SHOWN = ("id", "conversation_id", "command", "idempotency_key", "requesting_principal", "run_directory", "pid",
         "admitted_at", "dispatched_at", "started_at", "finished_at", "deadline_at", "cancellation_requested_at",
         "cancellation_effective_at", "kill_confirmed", "kill_attempts", "log_size", "last_output_offset",
         "dropped_bytes", "next_step_at", "calls_resume_at", "step_failures", "lease_owner", "lease_expires_at",
         "generation")  # fmt: skip


def list_table(runs: Sequence[Run], now: datetime, *, short_ids: bool = False) -> Table:
    """One line a run, with what somebody wanted it to run: of an attempt not what prepares its clone. `short_ids`: the beginning of each id, which is enough to name it, so that a terminal has room for the rest."""
    wanted = {run: command for told in hooks.wanted_commands(runs) for run, command in told.items()}
    table = Table(box=None, pad_edge=False)
    for heading in ("RUN", "BOX", "STATE", "EXIT", "AGE", "OUTPUT", "COMMAND"):
        table.add_column(heading, no_wrap=heading != "COMMAND", overflow="ellipsis")
    for run in runs:
        table.add_row(
            str(run.pk)[:SHORT_ID] if short_ids else str(run.pk),
            plain(run.conversation_box.box_id or run.conversation_box.label),
            state_text(run),
            "" if run.exit_status is None else str(run.exit_status),
            age(now, run.admitted_at),
            f"{run.last_output_offset:,}",
            plain(wanted.get(run.pk, run.command).lstrip().split("\n", 1)[0][:80]),
        )
    return table


def show(console: Console, run: Run) -> None:
    """All that the row says of a run, and the last lines of its output."""
    table = Table.grid(padding=(0, 2))
    table.add_row("state", state_text(run))
    table.add_row("ended", plain(how_it_ended(run)))
    table.add_row("box", plain(f"{run.conversation_box.box_id} ({run.conversation_box.label})"))
    for name in SHOWN:
        value = getattr(run, name)
        if value is not None:
            table.add_row(name, plain(value_text(value)))
    console.print(table)
    if run.output:
        console.print(Text("\nlast output", style="bold"))
        console.print(plain("\n".join(run.output.splitlines()[-10:])))


def how_it_ended(run: Run) -> str:
    """One sentence about the end of a run, or that it goes on."""
    if not run.is_terminal:
        return "not yet"
    facts = [_end(run)]
    facts += [f"signal {run.exit_signal}"] if run.exit_signal else []
    facts += [run.failure_reason] if run.failure_reason else []
    facts += ["its processes are not known to be gone"] if run.kill_confirmed is False else []
    return ", ".join(facts)


def _end(run: Run) -> str:
    if run.state not in (RunState.COMPLETED, RunState.FAILED):
        status = "" if run.exit_status is None else f", exit status {run.exit_status}"
        return f"{run.get_state_display()}{status}"
    if run.exit_status is not None:
        return f"ended with exit status {run.exit_status}"
    return "ended by a signal" if run.exit_signal else "never started"


def state_text(run: Run) -> Text:
    return Text(run.state, style=COLOURS[RunState(run.state)])


def facts(run: Run) -> dict[str, Any]:
    """The same for programs."""
    names = ("state", "is_terminal", "exit_status", "exit_signal", "failure_reason", "timed_out", *SHOWN)
    known = {name: getattr(run, name) for name in names}
    return {**known, "box_id": run.conversation_box.box_id, "label": run.conversation_box.label}
