"""The ledger's figures, asked when somebody reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from base import leases
from boxes.conf import box_api
from openagents_site.metrics.questions import ALL, Gauge, Question

log = structlog.get_logger(__name__)
LONGEST_QUESTION_MS = 5_000

Row = dict[str, Any]


class LedgerCollector(Collector):
    """Gauges from the database. Without a database there is one of them: `openagents_database_up 0`."""

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing is asked when the collector is registered."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        answers = [(question, ask(question.sql, question.gauges[0].name)) for question in ALL]
        workers = live_workers()
        yield _single("openagents_database_up", "Whether every question to the database was answered.",
                      all(rows is not None for _, rows in answers) and workers is not None)  # fmt: skip
        for question, rows in answers:
            if rows is not None:
                yield from _families(question, rows)
        if workers is not None:
            yield _single("openagents_workers", "Workers that hold their sign of life now.", len(workers))
        yield from _ceilings()


def ask(sql: str, name: str) -> list[Row] | None:
    """The rows; None if there is no answer within some seconds. A question that fails costs no other; the log names it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"set local statement_timeout = {LONGEST_QUESTION_MS}")
            cursor.execute(sql)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except DatabaseError as error:
        log.warning("metrics_question_failed", error=type(error).__name__, question=name)
        return None


def live_workers() -> list[int] | None:
    try:
        return leases.live_workers()
    except DatabaseError:
        return None


def _families(question: Question, rows: list[Row]) -> Iterator[GaugeMetricFamily]:
    for gauge in question.gauges:
        family = GaugeMetricFamily(gauge.name, gauge.meaning, labels=gauge.labels)
        for labels, value in _samples(question, gauge, rows).items():
            family.add_metric(labels, value)
        yield family


def _samples(question: Question, gauge: Gauge, rows: list[Row]) -> dict[tuple[str, ...], float]:
    samples: dict[tuple[str, ...], float] = {(value,): 0.0 for value in question.always}
    for row in rows:
        if row[gauge.column] is not None:
            samples[tuple(str(row[label]) for label in gauge.labels)] = float(row[gauge.column])
    return samples


def _ceilings() -> Iterator[GaugeMetricFamily]:
    """What the figures are measured against, from the settings in force; 0 means that there is no ceiling."""
    limits = box_api()
    yield _single("openagents_spend_ceiling_microusd", "What may be spent in a month; 0: no ceiling.",
                  limits.budget_month_microusd)  # fmt: skip
    yield _single("openagents_boxes_ceiling", "Active boxes that the installation may have.",
                  limits.maximum_active_boxes_global)  # fmt: skip


def _single(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=float(value))
