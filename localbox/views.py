"""What the API shows of a row. Types are exact: clients of this API refuse a body over one wrong field."""

from __future__ import annotations

from typing import Any

from . import states
from .bodies import ENVIRONMENT
from .dialects import Dialect
from .runtime.interface import CommandResult, DetachedCommand, DetachedStatus
from .sizes import SECONDS_PER_DOLLAR, SIZES
from .store.boxes import BoxRow
from .store.deletions import Deletion
from .store.webhooks import Webhook
from .times import iso, iso_or_none
from .usage import Usage

View = dict[str, Any]


def box(row: BoxRow) -> View:
    """A box. What this provider has not got (an address, a desktop) is null or false."""
    size = SIZES[row.size]
    saved = row.saved_at is not None and row.pruned_at is None
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "type": size.name,
        "vcpu": size.vcpu,
        "memoryGB": size.memory_gb,
        "billingMultiplier": size.multiplier,
        "url": None,
        "ip": None,
        "subdomain": row.subdomain,
        "createdAt": iso(row.created_at),
        "updatedAt": iso(row.updated_at),
        "archiveAfter": iso_or_none(row.archive_after if row.state in states.ACTIVE else None),
        "desktopAvailable": False,
        "desktopUrl": None,
        "snapshotAvailable": saved,
        "snapshotCompletedAt": iso_or_none(row.saved_at),
        "lastSnapshotAttemptAt": iso_or_none(row.saved_at),
        "lastSnapshotStatus": None if row.saved_at is None else "completed",
        "setupStatus": row.setup_status,
        "setupError": row.setup_error,
        "environment": None if row.no_env else ENVIRONMENT,
        "environmentVersion": None if row.no_env else 1,
        "error": row.error,
    }


def command_finished(result: CommandResult) -> View:
    return {
        "success": result.exit_code == 0 and not result.timed_out,
        "exitCode": result.exit_code,
        "signal": result.signal,
        "stdout": _text(result.stdout),
        "stderr": _text(result.stderr),
        "stdoutTruncated": result.stdout_truncated,
        "stderrTruncated": result.stderr_truncated,
        "timedOut": result.timed_out,
        "cwd": result.cwd,
        "startedAt": iso(result.started_at),
        "finishedAt": iso(result.finished_at),
    }


def command_started(started: DetachedCommand, command: str) -> View:
    return {
        "success": True,
        "processId": started.process_id,
        "pid": started.pid,
        "command": command,
        "cwd": started.cwd,
        "startedAt": iso(started.started_at),
        "logPath": started.log_path,
        "errLogPath": started.err_path,
    }


def command_status(status: DetachedStatus) -> View:
    return {
        "success": status.status == "running" or status.exit_code == 0,
        "processId": status.process_id,
        "pid": status.pid,
        "status": status.status,
        "known": status.status != "lost",
        "running": status.status == "running",
        "exitCode": status.exit_code,
        "signal": status.signal,
        "command": status.command,
        "cwd": status.cwd,
        "startedAt": iso(status.started_at),
        "finishedAt": iso_or_none(status.finished_at),
        "stdout": _text(status.stdout),
        "stderr": _text(status.stderr),
        "stdoutTruncated": status.stdout_truncated,
        "stderrTruncated": status.stderr_truncated,
        "logPath": status.log_path,
        "errLogPath": status.err_path,
    }


def usage(row: BoxRow, used: Usage, dialect: Dialect) -> View:
    return {
        dialect.id_field: row.id,
        dialect.size_field: row.size,
        "billingMultiplier": SIZES[row.size].multiplier,
        "since": iso(used.since),
        "until": iso(used.until),
        "seconds": used.seconds,
        "dollars": used.dollars,
        "secondsPerDollar": SECONDS_PER_DOLLAR,
        "running": used.running,
    }


def deletion(operation: Deletion) -> View:
    return {
        "id": operation.id,
        "kind": "box",
        "targetId": operation.box_id,
        "reason": "explicit",
        "status": operation.status,
        "attemptCount": operation.attempts,
        "requestedAt": iso(operation.requested_at),
        "completedAt": iso_or_none(operation.completed_at),
    }


def webhook(hook: Webhook, dialect: Dialect) -> View:
    return {
        "id": hook.id,
        "name": hook.name,
        "url": hook.url,
        "events": [dialect.kind(event) for event in hook.events],
        "createdAt": iso(hook.created_at),
        "updatedAt": iso(hook.updated_at),
    }


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
