"""Writing down what went wrong, without secrets and without ever getting in the way of whoever reports it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import EllipsisType
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from accounts.models import User
from base.clock import database_now
from base.redaction import MARK, URL_MARK, redact, redact_mapping
from base.text import storable
from conversations.models import Conversation, Visitor
from work import digests, limits
from work.models import Incident
from work.states import IncidentStatus, IncidentSurface, JobStatus, Severity

log = structlog.get_logger(__name__)

REDACTED = "[redacted]"
NO_CODE = "task_exit"
EXPECTED = frozenset({"cancelled", "missing_terminal_event", "machine_offline", "machine_not_found", "ambiguous_machine",
                      "agent_not_available", "rate_limited", "turn_in_progress", "owner_not_signed_in",
                      "delegation_refused", "delegation_cancelled"})  # fmt: skip
DEGRADED = frozenset({"provider_timeout", "provider_failure", "provider_error", "turn_timeout", "machine_disconnected",
                      "machine_timeout", "machine_revoked", "runtime_restarted", "delegation_timeout", "task_exit",
                      "transport", "provider_task_exited"})  # fmt: skip
_DELEGATION_CODES = {
    "timeout": "delegation_timeout",
    "refused": "delegation_refused",
    "cancelled": "delegation_cancelled",
    "machine_offline": "machine_offline",
}


def severity_of(code: str | None) -> Severity:
    """How bad a code is, by what stands before its first colon. What is not known, no code included, is anomalous."""
    name = (code or "").split(":", 1)[0]
    if name in EXPECTED:
        return Severity.EXPECTED
    return Severity.DEGRADED if name in DEGRADED else Severity.ANOMALOUS


def delegation_code(status: str, error_code: str | None) -> str | None:
    """The code under which the end of a delegation is recorded; None for one that completed."""
    if status == JobStatus.COMPLETED:
        return None
    known = _DELEGATION_CODES.get(error_code or "") or _DELEGATION_CODES.get(status)
    return known or "delegation_failed"


def report(incident: Mapping[str, Any]) -> Incident | None:
    """Record an incident given as a map; what every app calls by `base.hooks.incident_reporter`.

    Keys: `surface, origin, code, correlation_ref, owner_user, owner_visitor, conversation` (rows or ids), `summary,
    context`. What is missing or unknown is made good, other keys go to the context. Never raises; None: not recorded.
    """
    try:
        known = {key: incident[key] for key in _KEYS if key in incident}
        rest = {key: value for key, value in incident.items() if key not in _KEYS}
        context = known.pop("context", None)
        merged = {**rest, **context} if isinstance(context, Mapping) else rest
        return record(**known, context=merged)
    except Exception:
        log.exception("incident_not_recorded")
        return None


def record(
    *,
    surface: str = IncidentSurface.CONTROLLER,
    origin: str = "unknown",
    code: str | None = None,
    correlation_ref: Any = None,
    owner_user: Any = None,
    owner_visitor: Any = None,
    conversation: Any = None,
    summary: str = "",
    context: Mapping[Any, Any] | None = None,
) -> Incident | None:
    """Record an incident, in the caller's transaction if there is one. Never raises; None: it could not be recorded.

    An owner who is not named is found by the conversation. The code's severity decides whether anybody is called.
    """
    try:
        with transaction.atomic():
            owner = _owner(owner_user, owner_visitor, conversation)
            known_code = storable(str(code or NO_CODE))[:128]
            return Incident.objects.create(
                **owner,
                surface=surface if surface in IncidentSurface.values else IncidentSurface.CONTROLLER,
                origin=storable(str(origin))[:64],
                correlation_ref=None if correlation_ref is None else storable(str(correlation_ref))[:128],
                code=known_code,
                severity=severity_of(known_code),
                summary=redact(storable(str(summary)))[: limits.INCIDENT_TEXT_CHARACTERS],
                context=_kept_context(context or {}),
            )
    except Exception:
        log.exception("incident_not_recorded")
        return None


def list_recent(owner_user: User | UUID | None, limit: int = 20) -> list[Incident]:
    """The owner's incidents, newest first; at most 100. Nobody's for a browser without an account. One query."""
    if owner_user is None:
        return []
    owner_id = owner_user.pk if isinstance(owner_user, User) else owner_user
    return list(Incident.objects.filter(owner_user_id=owner_id)[: max(1, min(limit, 100))])


def change(
    incident: Incident, *, status: str | None = None, receipt_ref: str | EllipsisType | None = ...
) -> Incident:
    """Say what became of an incident, and by what; what is not given stays. Returns it. Each change is kept in its history."""
    values: dict[str, Any] = {} if status is None else {"status": IncidentStatus(status)}
    if not isinstance(receipt_ref, EllipsisType):
        values["receipt_ref"] = receipt_ref and storable(receipt_ref)
    if values:
        Incident.objects.filter(pk=incident.pk).update(**values)
    incident.refresh_from_db()
    return incident


def recurrence(incident: Incident) -> int:
    """How many incidents with its code its owner had in the 24 hours before it, itself included. One query."""
    since = incident.created_at - timedelta(seconds=limits.RECURRENCE_SECONDS)
    same = Incident.objects.filter(code=incident.code, owner_user_id=incident.owner_user_id)
    return same.filter(created_at__gt=since, created_at__lte=incident.created_at).count()


def happened_recently(code: str, owner_user: User | None) -> bool:
    """Whether the owner had an incident with this code in the last 24 hours."""
    since = database_now() - timedelta(seconds=limits.RECURRENCE_SECONDS)
    return Incident.objects.filter(code=code, owner_user=owner_user, created_at__gt=since).exists()


def _kept_context(context: Mapping[Any, Any]) -> dict[str, Any]:
    """A context that nobody can read costs only itself, not the incident."""
    try:
        return scrubbed(context)
    except Exception:
        log.exception("incident_context_not_kept")
        return {"truncated": True}


def scrubbed(context: Mapping[Any, Any]) -> dict[str, Any]:
    """The context as it may be kept: keys are texts, what looks like a secret is `[redacted]`, texts are cut to 500
    characters; a map of more than 8,192 bytes is replaced by a note that says so."""
    plain = {str(key): value for key, value in context.items()}
    kept = {key: _scrubbed_value(value) for key, value in redact_mapping(_json_like(plain)).items()}
    size = len(digests.canonical(kept).encode())
    return kept if size <= limits.INCIDENT_CONTEXT_BYTES else {"truncated": True, "bytes": size}


def _json_like(value: Any) -> Any:
    """The value with everything that JSON does not have as text."""
    if isinstance(value, Mapping):
        return digests.storable_json({str(key): _json_like(item) for key, item in value.items()})
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_like(item) for item in value]
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _scrubbed_value(value: Any) -> Any:
    if isinstance(value, str):
        hidden = MARK in value or URL_MARK in value
        return REDACTED if hidden else value[: limits.INCIDENT_TEXT_CHARACTERS]
    if isinstance(value, dict):
        return {key: _scrubbed_value(item) for key, item in value.items()}
    return [_scrubbed_value(item) for item in value] if isinstance(value, list) else value


_KEYS = ("surface", "origin", "code", "correlation_ref", "owner_user", "owner_visitor", "conversation", "summary", "context")  # fmt: skip


def _owner(user: Any, visitor: Any, conversation: Any) -> dict[str, Any]:
    """Whose incident it is, as far as the rows exist: a foreign key is checked only at commit, where it would undo the
    caller's work."""
    conversation_id = _existing(Conversation, conversation)
    visitor_id = _existing(Visitor, visitor)
    if visitor_id is None and conversation_id is not None:
        visitor_id = Conversation.objects.values_list("visitor_id", flat=True).get(pk=conversation_id)
    user_id = _existing(User, user)
    if user_id is None and visitor_id is not None:
        user_id = Visitor.objects.values_list("user_id", flat=True).get(pk=visitor_id)
    return {"conversation_id": conversation_id, "owner_visitor_id": visitor_id, "owner_user_id": user_id}


def _existing(model: type[Any], row: Any) -> Any:
    if row is None:
        return None
    key = getattr(row, "pk", row)
    try:
        return model.objects.filter(pk=UUID(str(key))).values_list("pk", flat=True).first()
    except ValueError:
        return None
