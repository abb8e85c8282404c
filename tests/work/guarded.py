"""Writing past the models, for tests of what the database itself refuses."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import connection, transaction

DIGEST = "a" * 64
OTHER: dict[str, Any] = {
    "conversation": uuid.uuid4(), "owner_visitor": uuid.uuid4(), "machine": uuid.uuid4(), "surface": "voice",
    "goal": "another", "context_hint": "another", "requesting_tool_step_ref": "another", "kind": "delegation",
    "authority_snapshot": '{"a": 1}', "budget_snapshot": '{"a": 1}', "token_budget": 7, "cost_budget_microusd": 7,
    "keep_boxes": True, "created_at": "2020-01-01T00:00:00Z", "status": "running", "report": "another",
    "error_code": "another", "usage": '{"a": 1}', "completed_at": "2020-01-01T00:00:00Z",
    "delegation": '{"resume_session_id": "late"}', "model_id": "another", "instruction_digest": DIGEST,
    "tool_catalog_digest": DIGEST, "memory_snapshot_ref": "another", "tool_call_count": 9, "continuation_count": 9,
    "started_at": "2020-01-01T00:00:00Z", "generation": 99, "lease_owner": 5,
    "lease_expires_at": "2030-01-01T00:00:00Z", "next_step_at": "2020-01-01T00:00:00Z",
    "cancel_requested_at": "2020-01-01T00:00:00Z", "cancel_code": "another", "attempts": 9, "failures": 9,
    "failure_code": "another", "start_failures": 9, "recovered_generation": 9,
    "work_job": uuid.uuid4(), "sequence": 9, "provider_call_id": "another", "provider_item_id": "another",
    "provider_response_id": "another", "tool_name": "another", "tool_version": "another", "module_id": "another",
    "module_artifact_digest": DIGEST, "catalog_digest": DIGEST, "arguments": "another", "argument_digest": DIGEST,
    "report_offset": 9, "requested_at": "2020-01-01T00:00:00Z", "outcome_digest": DIGEST, "result": '{"a": 1}',
    "error": '{"a": 1}', "executor_id": "another", "executor_disclosure": '{"a": 1}',
    "target_receipt_refs": '["a"]', "attribution_refs": '["a"]', "id": uuid.uuid4(), "sealed_arguments": b"another",
}  # fmt: skip


def sql(statement: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def put(row: Any, **columns: Any) -> None:
    assignments = ", ".join(f'"{column}" = %s' for column in columns)
    sql(f"update {row._meta.db_table} set {assignments} where id = %s", *columns.values(), row.pk)


def change(row: Any, field: str) -> None:
    put(row, **{row._meta.get_field(field).column: OTHER[field]})


WRONG_DELEGATIONS = [
    ("delegation", {"prompt": ""}), ("delegation", {"prompt": "x" * 8_001}), ("delegation", {"prompt": 5}),
    ("delegation", {"machine_id": str(uuid.uuid4())}), ("delegation", {"agent_id": "another"}),
    ("delegation", {"cwd": "/elsewhere"}), ("delegation", {"machine_name": "another"}),
    ("delegation", {"timeout_ms": None}), ("delegation", {"timeout_ms": "3600000"}),
    ("authority_snapshot", {"agent_id": ""}), ("authority_snapshot", {"agent_id": "x" * 65}),
    ("authority_snapshot", {"cwd": "/" * 501}), ("authority_snapshot", {"cwd": None}),
    ("budget_snapshot", {"maximum_prompt_bytes": 3}), ("budget_snapshot", {"maximum_prompt_bytes": 8_001}),
    ("budget_snapshot", {"maximum_prompt_bytes": "8000"}), ("budget_snapshot", {"maximum_report_bytes": 7_999}),
    ("budget_snapshot", {"maximum_report_bytes": None}), ("budget_snapshot", {"wall_clock_ms": 0}),
    ("budget_snapshot", {"wall_clock_ms": 3_600_001}), ("budget_snapshot", {"wall_clock_ms": "soon"}),
    ("budget_snapshot", {"wall_clock_ms": 1.5}),
]  # fmt: skip
