"""What the dashboard asks the ledgers besides what `/metrics` asks. Each is served by an index over the time it is about."""

from __future__ import annotations

from boxes.budgets import SPENT
from openagents_site.metrics.questions import listed
from runs.states import TERMINAL
from work.states import IncidentStatus

ENDED = listed(TERMINAL)
UNRESOLVED = (IncidentStatus.OPEN, IncidentStatus.TRIAGED, IncidentStatus.FIXING)


def since_midnight(days: int) -> str:
    """SQL: when the first of the last `days` days (UTC) began, today counted."""
    return (
        "(date_trunc('day', statement_timestamp() at time zone 'UTC')"
        f" - make_interval(days => {int(days) - 1})) at time zone 'UTC'"
    )


def new_boxes(days: int) -> str:
    return (
        "select (created_at at time zone 'UTC')::date as day, count(*) as boxes"  # noqa: S608 - a number and constants
        f" from conversation_boxes where created_at >= {since_midnight(days)} group by 1"
    )


def spending(days: int) -> str:
    """Of boxes that stopped; what those that run cost is told by the metrics, for today."""
    return (
        f"select (box.stopped_at at time zone 'UTC')::date as day, {SPENT} as microusd"  # noqa: S608
        f" from conversation_boxes box where box.box_id is not null and box.stopped_at >= {since_midnight(days)} group by 1"
    )


def ended_runs(days: int) -> str:
    """Of runs that were accepted on the day."""
    return (
        "select (admitted_at at time zone 'UTC')::date as day, state, count(*) as runs from box_runs"  # noqa: S608
        f" where state in ({ENDED}) and admitted_at >= {since_midnight(days)} group by 1, 2"
    )


ENDED_LAST_DAY = (
    f"select state, count(*) as runs from box_runs where state in ({ENDED})"  # noqa: S608
    " and admitted_at >= statement_timestamp() - interval '1 day' group by state"
)
INCIDENTS = f"select status, count(*) as incidents from incidents where status in ({listed(UNRESOLVED)}) group by status"  # noqa: S608
PASSES = """select name, failures, extract(epoch from clock_timestamp() - next_at)::float as late,
    extract(epoch from clock_timestamp() - finished_at)::float as age, interval_ms, outcome->>'error' as error
    from schedule_slots order by name"""
HEARTBEATS = """select case when name like 'worker:%' then 'worker' else name end as process,
    min(extract(epoch from clock_timestamp() - stamped_at))::float as age from process_heartbeats group by 1"""
