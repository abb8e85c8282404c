"""What the processes of this machine have counted, and the listeners that count what ends."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db import transaction
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from base import hooks, measures
from openagents_site.metrics.folder import VARIABLE, files_below


class SharedCounters(Collector):
    """The sums over every process that keeps its counters in the folder; of this process alone where there is none."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        own = os.environ.get(VARIABLE)
        if own is None:
            return REGISTRY.collect()
        merged: Iterable[Metric] = MultiProcessCollector.merge(files_below(Path(own).parent))  # type: ignore[no-untyped-call]
        return merged


def registry() -> CollectorRegistry:
    """A registry of everything that `/metrics` shows."""
    from openagents_site.metrics.ledger import LedgerCollector

    made = CollectorRegistry(auto_describe=False)
    made.register(SharedCounters())
    made.register(LedgerCollector())
    return made


def register_listeners() -> None:
    """Register with the hooks; called once at start."""
    hooks.run_finished.register(count_run)
    hooks.job_finished.register(count_job)
    hooks.box_stopped.register(count_box)


def count_run(run: Any) -> None:
    state = str(run.state)
    transaction.on_commit(lambda: measures.RUNS_ENDED.labels(state).inc())


def count_job(job: Any) -> None:
    status = str(job.status)
    transaction.on_commit(lambda: measures.JOBS_ENDED.labels(status).inc())


def count_box(_box_id: Any) -> None:
    transaction.on_commit(measures.BOXES_STOPPED.inc)
