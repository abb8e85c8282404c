"""What must not be there once the load has ended: rows that are stuck, processes that are left, lines that tell of an error."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

from base.embedded_postgres import Connection
from benchmarks.long.embedded import Embedded

QUIET_SECONDS = 180.0  # for what is due after an end: costs that are settled, deliveries of webhooks
STUCK = {
    "boxes that are not stopped": "select count(*) from conversation_boxes where stopped_at is null",
    "stopped boxes without a settled cost": "select count(*) from conversation_boxes"
    " where stopped_at is not null and usage_settled_at is null",
    "runs that have not ended": "select count(*) from box_runs where finished_at is null or next_step_at is not null",
    "runs that were not killed for certain": "select count(*) from box_runs where kill_confirmed = false",
    "jobs that have not ended": "select count(*) from work_jobs where completed_at is null or next_step_at is not null",
    "steps that have not ended": "select count(*) from work_job_steps where status in ('requested', 'running')",
    "attempts that are not over": "select count(*) from forge_assignments where state in ('admitted', 'running')",
    "credentials that still open a branch": "select count(*) from forge_assignment_credentials where revoked_at is null",
    "pushes without an end": "select count(*) from forge_push_intents",
    "deliveries that wait": "select count(*) from webhook_deliveries where state = 'pending'",
    "requests that were never answered": "select count(*) from api_idempotency_keys where status is null",
    "leaks and other sightings": "select count(*) from box_reconciliation_events where handled_at is null",
    "incidents": "select count(*) from incidents",
    "tasks that failed": "select count(*) from django_q_task where not success",
}
LEASED = "select table_name from information_schema.columns where column_name = 'lease_expires_at' and table_schema = 'public'"
POSTGRES_ERROR = re.compile(r"\b(?:ERROR|FATAL|PANIC): .*")
BAD = frozenset({"error", "critical"})


def stuck_rows(database: Connection) -> dict[str, int]:
    """What is still there, by what it is; empty if nothing is."""
    with psycopg.connect(**database.parameters(), autocommit=True) as link:
        found = {what: _count(link, query) for what, query in STUCK.items()}
        for (table,) in link.execute(LEASED).fetchall():
            if table != "schedule_slots":  # a pass may be under way
                query = f"select count(*) from {table} where lease_expires_at is not null"  # noqa: S608 - from the catalogue
                found[f"leases in {table}"] = _count(link, query)
    return {what: count for what, count in found.items() if count}


def once_quiet(database: Connection) -> dict[str, int]:
    """What is stuck after it had time to come to its end."""
    deadline = time.monotonic() + QUIET_SECONDS
    while (found := stuck_rows(database)) and time.monotonic() < deadline:
        time.sleep(1.0)
    return found


def doctor(installation: Embedded) -> list[str]:
    """What `manage.py doctor` calls bad."""
    told: dict[str, Any] = json.loads(installation.run("manage.py", "doctor", "--json", check=False))
    return [
        f"{finding['check']}: {finding['seen']}" for finding in told["findings"] if finding["level"] == "bad"
    ]


def error_lines(state: Path) -> tuple[Counter[str], Counter[str]]:
    """Lines of the logs that tell of an error, and those that warn, each with how often it is there."""
    errors: Counter[str] = Counter()
    warnings: Counter[str] = Counter()
    for path in sorted((state / "logs").iterdir()):
        for line in path.read_text(errors="replace").splitlines():
            level, what = _level(line)
            if level in BAD:
                errors[f"{path.name}: {what}"] += 1
            elif level == "warning":
                warnings[f"{path.name}: {what}"] += 1
    for line in (state / "postgres" / "postgres.log").read_text(errors="replace").splitlines():
        if found := POSTGRES_ERROR.search(line):
            errors[f"postgres.log: {found[0][:200]}"] += 1
    return errors, warnings


def _level(line: str) -> tuple[str, str]:
    """Level and event of a structured line; of any other, whether it looks like an error."""
    try:
        fields = json.loads(line) if line.startswith("{") else None
    except ValueError:
        fields = None
    if isinstance(fields, dict):
        return str(fields.get("level", "")).lower(), str(fields.get("event", ""))[:200]
    plain = re.search(r"\b(Traceback|ERROR|CRITICAL|Error)\b", line)
    return ("error", line[:200]) if plain else ("", "")


def _count(link: psycopg.Connection[Any], query: str) -> int:
    row = link.execute(query).fetchone()
    assert row is not None
    return int(row[0])
