"""The states of a run and the moves between them, as data."""

from __future__ import annotations

from django.db import models


class RunState(models.TextChoices):
    ADMITTED = "admitted", "accepted"
    DISPATCHED = "dispatched", "started on the box"
    RUNNING = "running", "running"
    COMPLETED = "completed", "ended with exit status 0"
    FAILED = "failed", "ended with another exit status, or never started"
    CANCELLED = "cancelled", "cancelled"
    TIMED_OUT = "timed_out", "ran past its deadline"
    LOST = "lost", "its end is not known"


ACTIVE = (RunState.ADMITTED, RunState.DISPATCHED, RunState.RUNNING)
TERMINAL = (RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT, RunState.LOST)
MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        (RunState.ADMITTED.value, RunState.DISPATCHED.value),
        (RunState.ADMITTED.value, RunState.RUNNING.value),
        (RunState.DISPATCHED.value, RunState.RUNNING.value),
        *((before.value, after.value) for before in ACTIVE for after in TERMINAL),
    }
)
