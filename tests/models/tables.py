"""What may happen to a row, written down once and apart from the product: from each state to which, and what never changes.

The product has tables of its own, from which its triggers are made. These say what was promised; the two are compared by trying.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Moves = dict[str, frozenset[str]]
Columns = Mapping[str, Any]
Shapes = Sequence[tuple[str, Columns]]
"""A constraint's name and what breaks it, as often as there are ways."""


def counted(table: str, *columns: str) -> Iterator[tuple[str, Columns]]:
    """None of these counts is below nothing."""
    return ((f"{table}_{column}_check", {column: -1}) for column in columns)


def long(most: int) -> str:
    """A text of fewer characters than `most`, and of more bytes."""
    return "é" * (most // 2 + 1)


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
BOX_SHAPES: Shapes = (
    *counted(
        "conversation_boxes",
        "create_attempts", "provision_failures", "ready_checks", "settlement_attempts", "undone_sightings",
    ),
    ("conversation_boxes_label_check", {"label": ""}),
    ("conversation_boxes_state_check", {"state": "paused"}),
    ("conversation_boxes_setup_status_check", {"setup_status": "paused"}),
    ("conversation_boxes_stop_reason_check", {"stop_reason": "none"}),
    ("conversation_boxes_usage_check", {"reconciliation_failures": -1}),
    ("conversation_boxes_usage_check", {"estimated_burn_rate_microusd": -1}),
    ("conversation_boxes_usage_check", {"lifetime_seconds": -1}),
    ("conversation_boxes_usage_check", {"settled_cost_microusd": -1}),
)  # fmt: skip

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
RUN_SHAPES: Shapes = (
    *counted("box_runs", "probe_attempts", "step_failures", "dead_sightings", "kill_attempts", "quiet_polls"),
    ("box_runs_state_check", {"state": "paused"}),
    ("box_runs_command_check", {"command": ""}),
    ("box_runs_command_check", {"command": long(8000)}),
    ("box_runs_idempotency_key_check", {"idempotency_key": ""}),
    ("box_runs_idempotency_key_check", {"idempotency_key": long(256)}),
    ("box_runs_offsets_check", {"output_base_offset": -1}),
    ("box_runs_offsets_check", {"output_base_offset": 8, "last_output_offset": 7}),
    ("box_runs_offsets_check", {"dropped_bytes": -1}),
)

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
JOB_SHAPES: Shapes = (
    *counted(
        "work_jobs",
        "attempts", "continuation_count", "cost_budget_microusd", "failures", "generation", "start_failures", "token_budget",
        "tool_call_count",
    ),
    ("work_jobs_status_check", {"status": "paused", "completed_at": None}),
    ("work_jobs_terminal_report_check", {"status": "queued", "completed_at": "2001-01-01T00:00:00Z"}),
    ("work_jobs_terminal_report_check", {"status": "failed", "completed_at": None, "report": "told"}),
    ("work_jobs_terminal_report_check", {"status": "failed", "completed_at": "2001-01-01T00:00:00Z", "report": " "}),
    ("work_jobs_kind_check", {"kind": "play"}),
    ("work_jobs_surface_check", {"surface": "stone"}),
    ("work_jobs_goal_check", {"goal": ""}),
    ("work_jobs_goal_check", {"goal": long(2_000)}),
    ("work_jobs_context_hint_check", {"context_hint": long(2_000)}),
    ("work_jobs_step_ref_check", {"requesting_tool_step_ref": long(256)}),
    ("work_jobs_report_check", {"report": long(8_000)}),
    ("work_jobs_error_code_check", {"error_code": long(128)}),
    ("work_jobs_delegation_check", {"delegation": {"a": long(32_768)}}),
    ("work_jobs_authority_check", {"authority_snapshot": {"a": long(32_768)}}),
    ("work_jobs_budget_check", {"budget_snapshot": {"a": long(4_096)}}),
    ("work_jobs_usage_check", {"usage": {"a": long(16_384)}}),
    ("work_jobs_usage_check", {"usage": []}),
    ("work_jobs_digests_check", {"instruction_digest": "A" * 64}),
    ("work_jobs_digests_check", {"tool_catalog_digest": "a" * 63}),
)  # fmt: skip

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
_TOLD: Columns = {
    "completed_at": "2001-01-01T00:00:00Z", "outcome_digest": "a" * 64, "executor_id": "host", "error": {}, "result": None,
}  # fmt: skip
STEP_SHAPES: Shapes = (
    *counted("work_job_steps", "report_offset"),
    ("work_job_steps_status_check", {"status": "paused", **_TOLD}),
    ("work_job_steps_shape_check", {"status": "succeeded", **_TOLD}),
    ("work_job_steps_shape_check", {"status": "failed", **_TOLD, "executor_id": ""}),
    ("work_job_steps_order_check", {"sequence": 0}),
    ("work_job_steps_order_check", {"sequence": 65}),
    ("work_job_steps_digests_check", {"argument_digest": "a" * 63}),
    ("work_job_steps_digests_check", {"outcome_digest": "A" * 64}),
    ("work_job_steps_digests_check", {"module_artifact_digest": "a" * 63}),
    ("work_job_steps_digests_check", {"catalog_digest": "a" * 63}),
    ("work_job_steps_names_check", {"tool_name": ""}),
    ("work_job_steps_names_check", {"provider_call_id": ""}),
    ("work_job_steps_arguments_check", {"arguments": long(262_144)}),
    ("work_job_steps_result_check", {"result": long(262_144)}),
    ("work_job_steps_lists_check", {"target_receipt_refs": {}}),
    ("work_job_steps_lists_check", {"attribution_refs": {}}),
)

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
ATTEMPT_SHAPES: Shapes = (
    *counted("forge_assignments", "step_failures"),
    ("forge_assignments_state_check", {"state": "lost", "finished_at": None}),
    ("forge_assignments_finished_check", {"state": "completed", "finished_at": None}),
    ("forge_assignments_delivery_check", {"credential_delivery_status": "flown"}),
    ("forge_assignments_branch_check", {"branch": ""}),
    ("forge_assignments_branch_check", {"branch": long(255)}),
    ("forge_assignments_commit_check", {"terminal_commit": "a" * 39}),
    ("forge_assignments_target_check", {"conversation_box_id": None}),
    ("forge_assignments_target_check", {"target_kind": "computer"}),
    ("forge_assignments_target_check", {"target_kind": "moon"}),
)

# --- the secret of an attempt
CREDENTIAL_IDENTITY = ("assignment_id", "repository_id", "branch", "expires_at", "created_at")
CREDENTIAL_SHAPES: Shapes = (
    *counted("forge_assignment_credentials", "deliveries"),
    ("forge_assignment_credentials_digest_check", {"token_digest": "\\x07"}),
    ("forge_assignment_credentials_last_four_check", {"last_four": "end"}),
)
