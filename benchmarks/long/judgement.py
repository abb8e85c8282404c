"""Whether what was seen is flat: memory, open files and threads of each part, rows and sizes of each table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from benchmarks.long.samples import MIB, Samples, TableSample, slope
from benchmarks.results import Row

LEAST_MINUTES = 10.0
"""Before that the parts are still warming up, and memory says nothing."""
SLACK = {"memory": 4.0, "files": 8.0, "threads": 8.0}
SHARE = 0.04  # of what there is
STEADY_ROWS = 20  # more than a table that does not grow with the load may have gained
SIZE_SHARE = 1.3  # how much more a row may take in the end than half-way
SIZE_FLOOR = 2 * MIB  # a small table says nothing of its rows
RATE_SHARE = 0.2  # how much more rows an action may leave in the second half than in the first
# These grow with what is done, by design: the ledger is never deleted, the rest goes after the time that `prune` knows.
GROWS = frozenset(
    {
        "conversation_boxes",
        "conversation_boxes_history",
        "box_runs",
        "box_runs_history",
        "box_run_log_chunks",
        "messages",
        "work_jobs",
        "work_jobs_history",
        "work_job_steps",
        "work_job_boxes",
        "forge_assignments",
        "forge_assignments_history",
        "forge_assignment_credentials",
        "forge_pushes",
        "forge_repositories_history",
        "forge_issues_history",
        "api_idempotency_keys",
        "rate_windows",
        "webhook_events",
        "webhook_deliveries",
        "webhook_attempts",
    }
)


def of_parts(samples: Samples, minutes: float) -> tuple[list[Row], list[str]]:
    """A row for each part, and what is not flat. Nothing is judged of a run that was too short."""
    rows, problems = [], []
    for name in sorted(samples.parts):
        taken = samples.second_half(name)
        for what, unit in (("memory", "MiB"), ("files", "open files"), ("threads", "threads")):
            points = [(at, float(getattr(sample, what))) for at, sample in taken]
            middle = statistics.median(value for _, value in points)
            grown = slope(points) * (points[-1][0] - points[0][0])
            bound = max(SLACK[what], SHARE * middle)
            rows.append(Row(f"{name}: {what}, median of the second half", middle, unit))
            rows.append(
                Row(f"{name}: {what}, growth in the second half", grown, unit, None, f"at most {bound:.3g}")
            )
            if minutes >= LEAST_MINUTES and grown > bound:
                problems.append(f"{name}: {what} grew by {grown:.3g} {unit} in the second half")
        if len(samples.pids[name]) > 1:
            problems.append(f"{name} ended and was started again {len(samples.pids[name]) - 1} times")
    return rows, problems


def of_tables(samples: Samples, minutes: float) -> tuple[list[Row], list[str]]:
    """A row for each table that grew, and what grew that should not. How many rows an action leaves is not judged of a
    run that was too short."""
    first, middle, last = samples.tables[0], samples.tables[len(samples.tables) // 2], samples.tables[-1]
    rows, problems = [], []
    for name in sorted(last[2]):
        seen = [moment[2].get(name, TableSample(0, 0)) for moment in (first, middle, last)]
        if name in GROWS:
            early = _rate(seen[:2], first[1], middle[1])
            late = _rate(seen[1:], middle[1], last[1])
            rows.append(
                Row(f"{name}: rows an action", late, "", early, f"{seen[2].rows:,} rows, {_size(seen[2])}")
            )
            if minutes >= LEAST_MINUTES and _rises(early, late, seen[2].rows - seen[1].rows):
                problems.append(f"{name}: {late:.3g} rows an action in the second half, {early:.3g} before")
            if _fatter(seen[1], seen[2]):
                problems.append(f"{name}: its rows became larger, {_size(seen[1])} to {_size(seen[2])}")
        elif seen[2].rows - seen[1].rows > STEADY_ROWS:
            problems.append(f"{name} grew from {seen[1].rows} to {seen[2].rows} rows in the second half")
        elif seen[2].size > max(SIZE_FLOOR, SIZE_SHARE * seen[1].size):
            problems.append(f"{name}: {seen[2].rows} rows, but {_size(seen[1])} became {_size(seen[2])}")
    return rows + _steady(samples), problems


def _steady(samples: Samples) -> list[Row]:
    """The tables that should stay as they are, with what they had at most."""
    names = [name for name in samples.tables[-1][2] if name not in GROWS]
    return [
        Row(f"{name}: rows at most", most, "", None, _size(samples.tables[-1][2][name]))
        for name in sorted(names)
        if (most := _most(sample[name].rows for _, _, sample in samples.tables if name in sample))
    ]


def _most(values: Iterable[int]) -> int:
    return max(values, default=0)


def _rate(seen: list[TableSample], before: int, after: int) -> float:
    return (seen[1].rows - seen[0].rows) / max(1, after - before)


def _rises(early: float, late: float, grown: int) -> bool:
    return grown > STEADY_ROWS and late > early * (1 + RATE_SHARE)


def _fatter(before: TableSample, after: TableSample) -> bool:
    if after.size < SIZE_FLOOR or not before.rows:
        return False
    return after.size / after.rows > SIZE_SHARE * before.size / before.rows


def _size(table: TableSample) -> str:
    return f"{table.size / MIB:.2f} MiB"
