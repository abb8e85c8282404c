"""What `/metrics` asks the ledger, as data. Every question is answered from the live rows alone, by a partial index, so
that it costs the same with a million settled rows as with none; spending reads this month's boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boxes.budgets import SPENT, THIS_MONTH
from boxes.states import BoxState
from forge.states import LIVE
from runs import states as run_states
from work import states as work_states


@dataclass(frozen=True)
class Gauge:
    """One metric: the column that holds its value, and the columns that are its labels."""

    name: str
    meaning: str
    column: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One query and the gauges in its rows. `always` are the values of the only label that are told even where no row has them."""

    sql: str
    gauges: tuple[Gauge, ...]
    always: tuple[str, ...] = ()


def listed(states: Sequence[str]) -> str:
    return ", ".join(f"'{state!s}'" for state in states)


def _free(due: str) -> str:
    return (
        f"{due} <= clock_timestamp() and (lease_expires_at is null or lease_expires_at < clock_timestamp())"
    )


_FREE = _free("next_step_at")


def _queue(name: str, table: str, due: str, condition: str) -> str:
    """SQL: how many rows of this kind are due and not taken, and for how long the oldest is."""
    return (
        f"select '{name}' as queue, count(*) as due, coalesce(max(extract(epoch from clock_timestamp() - {due})), 0) as oldest"  # noqa: S608
        f" from {table} where {condition}"
    )


BOXES = Question(
    "select state, count(*) as boxes, sum(estimated_burn_rate_microusd) as rate"
    " from conversation_boxes where stopped_at is null group by state",
    (
        Gauge("openagents_boxes", "Active boxes, by the provider's state.", "boxes", ("state",)),
        Gauge(
            "openagents_burn_rate_microusd_per_hour",
            "What active boxes are estimated to cost an hour.",
            "rate",
            ("state",),
        ),
    ),
    always=tuple(BoxState.values),
)
UNSETTLED = Question(
    "select count(*) as boxes from conversation_boxes where stopped_at is not null and usage_settled_at is null",
    (
        Gauge(
            "openagents_boxes_awaiting_settlement",
            "Stopped boxes whose cost the provider has not told yet.",
            "boxes",
        ),
    ),
)
RUNS = Question(
    f"""select state, count(*) as runs, max(extract(epoch from clock_timestamp() - admitted_at)) as oldest,
        count(*) filter (where admitted_at < clock_timestamp() - interval '10 minutes') as over_10_minutes,
        count(*) filter (where admitted_at < clock_timestamp() - interval '1 hour') as over_1_hour
        from box_runs where state in ({listed(run_states.ACTIVE)}) group by state""",  # noqa: S608 - constants of ours
    (
        Gauge("openagents_runs_active", "Runs that have not ended, by state.", "runs", ("state",)),
        Gauge("openagents_runs_oldest_seconds", "Age of the oldest run in the state.", "oldest", ("state",)),
        Gauge(
            "openagents_runs_over_10_minutes", "Runs older than ten minutes.", "over_10_minutes", ("state",)
        ),
        Gauge("openagents_runs_over_1_hour", "Runs older than an hour.", "over_1_hour", ("state",)),
    ),
    always=tuple(str(state) for state in run_states.ACTIVE),
)
JOBS = Question(
    f"""select status, count(*) as jobs, max(extract(epoch from clock_timestamp() - created_at)) as oldest
        from work_jobs where status in ({listed(work_states.ACTIVE)}) group by status""",  # noqa: S608
    (
        Gauge("openagents_jobs_active", "Jobs that have not ended, by status.", "jobs", ("status",)),
        Gauge(
            "openagents_jobs_oldest_seconds", "Age of the oldest job in the status.", "oldest", ("status",)
        ),
    ),
    always=tuple(str(status) for status in work_states.ACTIVE),
)
ASSIGNMENTS = Question(
    f"select state, count(*) as attempts from forge_assignments where state in ({listed(LIVE)}) group by state",  # noqa: S608
    (
        Gauge(
            "openagents_assignments_active", "Attempts that are not over, by state.", "attempts", ("state",)
        ),
    ),
    always=tuple(str(state) for state in LIVE),
)
EVENTS = Question(
    """select event_type, owned::text as owned, count(*) as events, max(extract(epoch from clock_timestamp() - observed_at)) as oldest
       from box_reconciliation_events where handled_at is null group by event_type, owned""",
    (
        Gauge(
            "openagents_events_open",
            "What reconciliation noticed and nobody has handled.",
            "events",
            ("event_type", "owned"),
        ),
        Gauge(
            "openagents_events_oldest_seconds",
            "Since when the oldest of them is known.",
            "oldest",
            ("event_type", "owned"),
        ),
    ),
)
LEAKS = Question(
    "select owned::text as owned, count(*) as leaks from box_reconciliation_events"
    " where handled_at is null and event_type = 'leak' group by owned",
    (Gauge("openagents_leaks_open", "Boxes at the provider that no row claims.", "leaks", ("owned",)),),
    always=("true", "false"),
)
QUEUES = Question(
    " union all ".join(
        [
            _queue(
                "provisioning",
                "conversation_boxes",
                "next_provision_at",
                _free("next_provision_at"),
            ),
            _queue(
                "settlement",
                "conversation_boxes",
                "next_settlement_at",
                _free("next_settlement_at"),
            ),
            _queue("looks", "box_webhook_deliveries", "received_at", "looked_at is null"),
            _queue("runs", "box_runs", "next_step_at", _FREE),
            _queue("jobs", "work_jobs", "next_step_at", f"kind = 'deep_work' and {_FREE}"),
            _queue("delegations", "work_jobs", "next_step_at", f"kind = 'delegation' and {_FREE}"),
            _queue("assignments", "forge_assignments", "next_step_at", _FREE),
            _queue("webhook_events", "webhook_events", "occurred_at", "fanned_out_at is null"),
            _queue("webhooks", "webhook_deliveries", "next_attempt_at", _free("next_attempt_at")),
            _queue("queued_boxes", "box_fanout_items", "queued_at", "state = 'queued'"),
            _queue("scheduled_tasks", "django_q_ormq", "lock", "lock <= clock_timestamp()"),
        ]
    ),
    (
        Gauge("openagents_queue_due", "Rows that are due and that nobody has taken up.", "due", ("queue",)),
        Gauge("openagents_queue_oldest_seconds", "For how long the oldest is due.", "oldest", ("queue",)),
    ),
)
PASSES = Question(
    """select name, failures, greatest(0, extract(epoch from clock_timestamp() - next_at)) as late,
        case when finished_at >= started_at then extract(epoch from finished_at - started_at) end as duration,
        extract(epoch from clock_timestamp() - finished_at) as age
        from schedule_slots""",
    (
        Gauge("openagents_pass_late_seconds", "How late the periodic pass is.", "late", ("name",)),
        Gauge("openagents_pass_duration_seconds", "How long the last one took.", "duration", ("name",)),
        Gauge("openagents_pass_age_seconds", "How long ago the last one ended.", "age", ("name",)),
        Gauge("openagents_pass_failures", "Failed passes in a row.", "failures", ("name",)),
    ),
)
SPENDING = Question(
    f"""select 'month' as period, {SPENT} as microusd from conversation_boxes box where {THIS_MONTH}
        union all select 'today', {SPENT} from conversation_boxes box where box.box_id is not null and (box.stopped_at is null
            or box.stopped_at >= date_trunc('day', statement_timestamp() at time zone 'UTC') at time zone 'UTC')""",  # noqa: S608
    (
        Gauge(
            "openagents_spend_microusd",
            "Cost of boxes that stopped in the period (UTC) or still run; estimated where it is not settled.",
            "microusd",
            ("period",),
        ),
    ),
)
PROCESSES = Question(
    """select case when name like 'worker:%' then 'worker' else name end as process,
        min(extract(epoch from clock_timestamp() - stamped_at)) as age,
        count(*) filter (where stamped_at > clock_timestamp() - interval '1 minute') as beating,
        coalesce(sum((details->>'in_flight')::bigint) filter (where stamped_at > clock_timestamp() - interval '1 minute'), 0)
            as in_flight
        from process_heartbeats group by 1""",
    (
        Gauge("openagents_heartbeat_age_seconds", "Age of the newest sign of life.", "age", ("process",)),
        Gauge(
            "openagents_processes",
            "Processes with a sign of life in the last minute.",
            "beating",
            ("process",),
        ),
        Gauge("openagents_tasks_in_flight", "What they have in flight.", "in_flight", ("process",)),
    ),
)
INCIDENTS = Question(
    """select severity, count(*) as incidents from incidents
       where created_at > statement_timestamp() - interval '1 day' group by severity""",
    (Gauge("openagents_incidents_last_day", "Incidents of the last day.", "incidents", ("severity",)),),
    always=tuple(work_states.Severity.values),
)

ALL: tuple[Question, ...] = (
    BOXES,
    UNSETTLED,
    RUNS,
    JOBS,
    ASSIGNMENTS,
    EVENTS,
    LEAKS,
    QUEUES,
    PASSES,
    SPENDING,
    PROCESSES,
    INCIDENTS,
)
