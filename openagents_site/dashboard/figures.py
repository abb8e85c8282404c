"""The figures of the dashboard, read in a fixed number of queries. What could not be had is None, and costs no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.db import DatabaseError, transaction

from base.clock import database_now
from openagents_site.dashboard import questions
from openagents_site.doctor import processes
from openagents_site.metrics import questions as known
from openagents_site.metrics.ledger import Row, ask, live_workers
from runs.states import TERMINAL

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Day:
    """One day (UTC): boxes that were asked for, what was spent, and how the runs of that day ended."""

    day: date
    boxes: int
    spent_microusd: int
    runs: Counts


@dataclass(frozen=True, slots=True)
class Queue:
    """Rows that are due and that nobody has taken up, and for how long the oldest is."""

    name: str
    due: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Pass:
    """A periodic pass. `age_seconds` since the last one ended; None if none has. `error` is the code of one that failed."""

    name: str
    failures: int
    late_seconds: float
    interval_seconds: float
    age_seconds: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Now:
    """What goes on and what waits. Counts are by state, of leaks by whether the box is ours (`true`, `false`)."""

    boxes: Counts | None
    burn_rate_microusd: int
    runs: Counts | None
    oldest_run_seconds: float
    spent_today_microusd: int | None
    spent_month_microusd: int | None
    leaks: Counts | None
    incidents: Counts | None
    ended_last_day: Counts | None
    queues: Sequence[Queue] | None
    workers: int | None
    heartbeats: Mapping[str, float] | None
    passes: Sequence[Pass] | None
    started: Mapping[str, float]  # by process, how many seconds ago


def now() -> Now:
    """The state of the installation. Twelve questions, whatever there is."""
    boxes, runs = _asked(known.BOXES), _asked(known.RUNS)
    spent = _counted(_asked(known.SPENDING), "period", "microusd")
    workers = live_workers()
    return Now(
        boxes=_counted(boxes, "state", "boxes"),
        burn_rate_microusd=sum(int(row["rate"]) for row in boxes or ()),
        runs=_counted(runs, "state", "runs"),
        oldest_run_seconds=max((float(row["oldest"]) for row in runs or ()), default=0.0),
        spent_today_microusd=spent["today"] if spent else None,
        spent_month_microusd=spent["month"] if spent else None,
        leaks=_counted(_asked(known.LEAKS), "owned", "leaks"),
        incidents=_counted(ask(questions.INCIDENTS, "incidents"), "status", "incidents"),
        ended_last_day=_counted(ask(questions.ENDED_LAST_DAY, "ended runs"), "state", "runs"),
        queues=_queues(_asked(known.QUEUES)),
        workers=None if workers is None else len(workers),
        heartbeats=_heartbeats(ask(questions.HEARTBEATS, "heartbeats")),
        passes=_passes(ask(questions.PASSES, "passes")),
        started=_started(),
    )


def days(number: int, spent_today_microusd: int | None) -> list[Day] | None:
    """The last `number` days, today last, each with its figures also where they are zero. Four queries.

    Today's spending is as given, since boxes that run are in it. None if the ledgers did not answer.
    """
    boxes = ask(questions.new_boxes(number), "new boxes")
    spent = ask(questions.spending(number), "spending by day")
    runs = ask(questions.ended_runs(number), "runs by day")
    if boxes is None or spent is None or runs is None:
        return None
    today = database_now().date()
    boxes_of = {row["day"]: row["boxes"] for row in boxes}
    spent_of = {row["day"]: int(row["microusd"]) for row in spent}
    if spent_today_microusd is not None:
        spent_of[today] = spent_today_microusd
    runs_of = {(row["day"], row["state"]): row["runs"] for row in runs}
    dates = [today - timedelta(days=ago) for ago in reversed(range(number))]
    return [
        Day(
            day=day,
            boxes=boxes_of.get(day, 0),
            spent_microusd=spent_of.get(day, 0),
            runs={state.value: runs_of.get((day, state.value), 0) for state in TERMINAL},
        )
        for day in dates
    ]


def _asked(question: known.Question) -> list[Row] | None:
    return ask(question.sql, question.gauges[0].name)


def _counted(rows: Sequence[Row] | None, key: str, value: str) -> dict[str, int] | None:
    return None if rows is None else {str(row[key]): int(row[value]) for row in rows}


def _queues(rows: Sequence[Row] | None) -> list[Queue] | None:
    return None if rows is None else [Queue(row["queue"], row["due"], float(row["oldest"])) for row in rows]


def _heartbeats(rows: Sequence[Row] | None) -> dict[str, float] | None:
    return None if rows is None else {row["process"]: row["age"] for row in rows}


def _started() -> Mapping[str, float]:
    try:
        with transaction.atomic():
            return processes.started()
    except DatabaseError:
        return {}


def _passes(rows: Sequence[Row] | None) -> list[Pass] | None:
    if rows is None:
        return None
    return [
        Pass(row["name"], row["failures"], row["late"], row["interval_ms"] / 1000, row["age"], row["error"])
        for row in rows
    ]
