"""What may happen to a row, written down once and apart from the product: from each state to which, and what never changes.

The product has tables of its own, from which its triggers are made. These say what was promised; the two are compared by trying.
"""

from __future__ import annotations

Moves = dict[str, frozenset[str]]

# --- boxes: what the provider says of one. A row that is stopped can only be seen going down.
BOX_STATES = frozenset(
    [
        "init",
        "provisioning",
        "provisioned",
        "cloning",
        "ready",
        "idle",
        "running",
        "archiving",
        "archived",
        "error",
    ]
)
BOX_DOWN = frozenset({"archiving", "archived", "error"})
BOX_IDENTITY = ("conversation_id",)
BOX_ONCE = ("box_id", "create_key")
"""Null until it is known, and then for ever."""
BOX_END = ("stopped_at", "stop_reason", "lifetime_seconds")
BOX_COST = ("settled_cost_microusd", "usage_settled_at")

# --- runs
RUN_ENDS = frozenset({"completed", "failed", "cancelled", "timed_out", "lost"})
RUN_MOVES: Moves = {
    "admitted": frozenset({"dispatched", "running"}) | RUN_ENDS,
    "dispatched": frozenset({"running"}) | RUN_ENDS,
    "running": RUN_ENDS,
    **dict.fromkeys(RUN_ENDS, frozenset()),
}
RUN_IDENTITY = (
    "conversation_id", "conversation_box_id", "requesting_principal", "command", "idempotency_key", "run_directory",
    "admitted_at",
)  # fmt: skip
RUN_ACCOUNT = (
    "exit_status", "exit_signal", "timed_out", "failure_reason", "output", "output_base_offset", "last_output_offset",
    "received_offset", "dropped_bytes", "pid", "dispatch_attempted_at", "probe_attempted_at", "dispatched_at", "started_at",
    "finished_at", "cancellation_requested_at", "cancellation_effective_at",
)  # fmt: skip
"""What is said of a run that has ended, and never said otherwise."""
RUN_ONCE = ("cancellation_requested_at", "dispatched_at", "started_at")
"""Also of a run that goes on: once it is said, it is said."""

# --- jobs. The same state again is a move: a job that is taken over was running and is running.
JOB_ENDS = frozenset({"completed", "failed", "interrupted", "budget_exhausted", "cancelled"})
JOB_MOVES: Moves = {
    "queued": frozenset({"queued", "running", "failed", "interrupted", "cancelled"}),
    "running": frozenset({"running"}) | JOB_ENDS,
    **{end: frozenset({end}) for end in JOB_ENDS},
}
JOB_IDENTITY = (
    "conversation_id", "owner_visitor_id", "surface", "goal", "context_hint", "requesting_tool_step_ref", "kind",
    "authority_snapshot", "budget_snapshot", "token_budget", "cost_budget_microusd", "keep_boxes", "created_at",
)  # fmt: skip
JOB_ACCOUNT = (
    "report", "error_code", "usage", "completed_at", "model_id", "instruction_digest", "tool_catalog_digest",
    "memory_snapshot_ref", "tool_call_count", "continuation_count", "started_at", "generation", "lease_owner",
    "lease_expires_at", "next_step_at", "cancel_requested_at", "cancel_code", "attempts", "failures", "failure_code",
    "start_failures", "recovered_generation",
)  # fmt: skip
JOB_ONCE = ("started_at", "cancel_requested_at")

# --- steps of a job
STEP_ENDS = frozenset({"succeeded", "failed", "refused", "cancelled", "unavailable", "interrupted"})
STEP_MOVES: Moves = {
    "requested": frozenset({"requested", "running"}) | STEP_ENDS,
    "running": frozenset({"running"}) | STEP_ENDS,
    **{end: frozenset({end}) for end in STEP_ENDS},
}
STEP_IDENTITY = (
    "work_job_id", "sequence", "provider_call_id", "provider_item_id", "provider_response_id", "tool_name", "tool_version",
    "module_id", "module_artifact_digest", "catalog_digest", "arguments", "argument_digest", "report_offset", "requested_at",
)  # fmt: skip
STEP_ACCOUNT = (
    "outcome_digest", "result", "error", "usage", "executor_id", "executor_disclosure", "sealed_arguments",
    "target_receipt_refs", "attribution_refs", "started_at", "completed_at",
)  # fmt: skip

# --- attempts: among its living states one moves freely; an end is an end.
ATTEMPT_LIVE = frozenset({"admitted", "running"})
ATTEMPT_ENDS = frozenset({"completed", "failed", "cancelled"})
ATTEMPT_MOVES: Moves = {
    **dict.fromkeys(ATTEMPT_LIVE, ATTEMPT_LIVE | ATTEMPT_ENDS),
    **{end: frozenset({end}) for end in ATTEMPT_ENDS},
}
ATTEMPT_IDENTITY = (
    "target_kind", "conversation_id", "conversation_box_id", "machine_id", "repository_id", "issue_id",
    "requesting_principal", "creation_key", "branch", "command", "prompt", "agent_id", "cwd", "admitted_at", "deadline_at",
)  # fmt: skip
ATTEMPT_ACCOUNT = (
    "run_id", "work_job_id", "terminal_branch", "terminal_commit", "failure_reason", "started_at", "finished_at",
    "credential_delivery_status", "credential_delivery_reason",
)  # fmt: skip

# --- the secret of an attempt
CREDENTIAL_IDENTITY = ("assignment_id", "repository_id", "branch", "expires_at", "created_at")
