"""Which changes of which ledger are events, as data: the triggers and what is sent are made from it.

`inserted` and `updated` are SQL expressions over `new` (and `old`), each an array of event types in which null means
nothing. `watched` are the columns whose change is looked at. `columns` are what the event keeps of the row: what the API
shows of it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UP = "('ready', 'idle', 'running')"


@dataclass(frozen=True)
class Source:
    """One ledger."""

    noun: str
    watched: tuple[str, ...]
    inserted: str
    updated: str
    columns: tuple[str, ...]
    only: str = ""  # SQL over `new`: rows that are meant; empty: all


BOX = Source(
    noun="box",
    watched=("state", "stop_requested_at", "stopped_at", "usage_settled_at"),
    inserted="array['box.created']",
    updated=f"""array[
        case when new.state in {UP} and old.state not in {UP} and new.stopped_at is null then 'box.ready' end,
        case when old.stop_requested_at is null and new.stop_requested_at is not null and new.stopped_at is null
            then 'box.stop_requested' end,
        case when old.stopped_at is null and new.stopped_at is not null then 'box.stopped' end,
        case when old.usage_settled_at is null and new.usage_settled_at is not null then 'box.settled' end]""",
    columns=(
        "id", "box_id", "conversation_id", "label", "state", "setup_status", "created_at", "stopped_at",
        "stop_reason", "stop_requested_at", "lifetime_seconds", "settled_cost_microusd", "usage_settled_at",
        "last_reconciled_at", "reconciliation_failures", "reconciliation_error", "next_reconciliation_at",
        "extended_until", "last_activity_at",
    ),
)  # fmt: skip
RUN = Source(
    noun="run",
    watched=("state",),
    inserted="array['run.' || new.state]",
    updated="array['run.' || new.state]",
    columns=(
        "id", "conversation_box_id", "conversation_id", "command", "idempotency_key", "state", "exit_status",
        "exit_signal", "timed_out", "failure_reason", "kill_confirmed", "dropped_bytes",
        "requesting_principal", "output_base_offset", "last_output_offset", "admitted_at", "dispatched_at",
        "started_at", "finished_at", "deadline_at", "cancellation_requested_at", "cancellation_effective_at",
    ),
)  # fmt: skip
ASSIGNMENT = Source(
    noun="assignment",
    watched=("state",),
    inserted="array['assignment.' || new.state]",
    updated="array['assignment.' || new.state]",
    columns=(
        "id", "repository_id", "issue_id", "conversation_id", "target_kind", "conversation_box_id",
        "machine_id", "run_id", "work_job_id", "branch", "command", "prompt", "agent_id", "cwd", "state",
        "terminal_branch", "terminal_commit", "failure_reason", "credential_delivery_status",
        "credential_delivery_reason", "requesting_principal", "admitted_at", "started_at", "finished_at",
        "deadline_at",
    ),
)  # fmt: skip
JOB = Source(
    noun="job",
    watched=("status",),
    inserted="array['job.' || new.status]",
    updated="array['job.' || new.status]",
    columns=(
        "id", "kind", "status", "goal", "context_hint", "surface", "conversation_id", "machine_id",
        "delegation", "report", "error_code", "report_message_id", "model_id", "authority_snapshot",
        "tool_call_count", "continuation_count", "usage", "token_budget", "cost_budget_microusd",
        "keep_boxes", "created_at", "started_at", "completed_at", "cancel_requested_at",
    ),
)  # fmt: skip
LEAK = Source(
    noun="leak",
    watched=("resolution", "reopened_at"),
    inserted="array['leak.found']",
    updated="""array[
        case when new.reopened_at is distinct from old.reopened_at then 'leak.reopened' end,
        case when new.resolution is distinct from old.resolution then 'leak.' || new.resolution end]""",
    columns=(
        "id", "provider_box_id", "event_type", "reason", "owned", "details", "observed_at", "last_seen_at",
        "handled_at", "resolution",
    ),
    only="new.event_type = 'leak'",
)  # fmt: skip
INCIDENT = Source(
    noun="incident",
    watched=("status",),
    inserted="array['incident.' || new.status]",
    updated="array['incident.' || new.status]",
    columns=(
        "id", "surface", "origin", "code", "severity", "summary", "correlation_ref", "context",
        "conversation_id", "status", "receipt_ref", "fixer_job_id", "created_at", "owner_user_id",
    ),
)  # fmt: skip
SOURCES = (BOX, RUN, ASSIGNMENT, JOB, LEAK, INCIDENT)
EVENTS_DRIVER = "webhook events"


def function(source: Source, types: str) -> str:
    """The body of a trigger: an event for each of `types` that somebody listens to, and a wake. Nobody listens: nothing."""
    kept = ", ".join(f"'{column}'" for column in source.columns)
    guard = f"if not ({source.only}) then return null; end if; " if source.only else ""
    return f"""{guard}insert into webhook_events (id, event_type, object_id, "row", occurred_at)
        select gen_random_uuid(), kind, new.id, (select jsonb_object_agg(key, value) from jsonb_each(to_jsonb(new))
                where key in ({kept})), clock_timestamp()
        from unnest({types}) kind where kind is not null and exists (
            select 1 from webhook_subscriptions s where s.disabled_at is null and (cardinality(s.event_types) = 0
                or kind = any(s.event_types) or '{source.noun}.*' = any(s.event_types)));
        if found then perform pg_notify('due', '{EVENTS_DRIVER}'); end if;
        return null;"""  # noqa: S608 - constants of ours


def names() -> Sequence[str]:
    return [source.noun for source in SOURCES]
