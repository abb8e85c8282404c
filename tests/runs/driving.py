"""Driving runs step by step."""

from __future__ import annotations

import psutil
from django.utils import timezone

from runs.models import Run
from runs.worker import step

GIVES_UP = 40


def driven(run: Run, steps: int = GIVES_UP) -> Run:
    """The run after as many steps as it takes to end."""
    for _ in range(steps):
        run = step(run.pk)
        if run.is_terminal:
            return run
    raise AssertionError(f"it is still {run.state}")


def now_due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(next_step_at=timezone.now())


def is_alive(run: Run) -> bool:
    """Whether the process of a run at the fake provider lives."""
    run.refresh_from_db()
    try:
        return run.pid is not None and psutil.Process(run.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
