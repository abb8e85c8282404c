"""What is sent: the event's row as the API would have shown it right after the change, without secrets, within a bound."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from django.db import DatabaseError, models, transaction
from rest_framework.renderers import JSONRenderer
from rest_framework.serializers import BaseSerializer

from base.redaction import redact_mapping
from boxes.api.leaks import LeakSerializer
from boxes.models import Box, ReconciliationEvent
from boxes.serializers import BoxSerializer
from forge.api.assignments import AssignmentSerializer
from forge.models import Assignment
from openagents_site.webhooks.models import Event
from openagents_site.webhooks.states import TEST
from runs.models import Run
from runs.serializers import RunSerializer
from work.api.serializers import IncidentSerializer, JobSerializer
from work.models import Incident, Job

log = structlog.get_logger(__name__)
LONGEST_PAYLOAD_BYTES = 65_536
TEXT_BOUNDS = (16_384, 4_096, 1_024, 256)
SHORTENED = "…"

SHOWN: dict[str, tuple[type[models.Model], Callable[..., BaseSerializer[Any]]]] = {
    "box": (Box, BoxSerializer),
    "run": (Run, RunSerializer),
    "assignment": (Assignment, AssignmentSerializer),
    "job": (Job, JobSerializer),
    "leak": (ReconciliationEvent, LeakSerializer),
    "incident": (Incident, IncidentSerializer),
}


def payloads_of(events: Sequence[Event]) -> list[str]:
    """The bodies of these events' deliveries. One that the database has an error for is told by its id, and costs no other.

    To be called in a transaction, which stays good: one savepoint, and one an event only where something is wrong.
    """
    try:
        with transaction.atomic():
            return [payload_of(event) for event in events]
    except DatabaseError:
        return [_payload_or_id(event) for event in events]


def payload_of(event: Event) -> str:
    """The body of the event's deliveries: `{"type", "timestamp", "data"}`, at most 64 KiB. Raises DatabaseError."""
    return _body(event, _data(event))


def _payload_or_id(event: Event) -> str:
    try:
        with transaction.atomic():
            return payload_of(event)
    except DatabaseError:
        return _body(event, _only_id(event))


def _body(event: Event, data: dict[str, Any]) -> str:
    happened = event.occurred_at.isoformat().replace("+00:00", "Z")
    return bounded({"type": event.event_type, "timestamp": happened, "data": data})


def bounded(body: dict[str, Any]) -> str:
    """The body as text. One that is too large has its texts shortened, `data.shortened` says so; at the worst only `id` is left."""
    text = _text(body)
    for longest in TEXT_BOUNDS:
        if len(text.encode()) <= LONGEST_PAYLOAD_BYTES:
            return text
        text = _text(body | {"data": _short(body["data"], longest) | {"shortened": True}})
    if len(text.encode()) <= LONGEST_PAYLOAD_BYTES:
        return text
    return _text(body | {"data": {"id": body["data"].get("id"), "shortened": True}})


def instance_of(model: type[models.Model], row: dict[str, Any]) -> models.Model:
    """The ledger's row as it was; a column that the event does not hold is read from the ledger when it is asked for."""
    fields = [field for field in model._meta.concrete_fields if field.column in row]
    values = [field.to_python(row[str(field.column)]) for field in fields]
    return model.from_db(None, [field.attname for field in fields], values)


def _data(event: Event) -> dict[str, Any]:
    if event.event_type == TEST:
        return dict(event.row)
    try:
        return _shown(event)
    except DatabaseError:
        raise
    except Exception:
        return _only_id(event)


def _only_id(event: Event) -> dict[str, Any]:
    """It is told all the same: the receiver can ask the API. To be called where the error is caught."""
    log.exception("webhook_not_rendered", event_type=event.event_type, object=str(event.object_id))
    return {"id": str(event.object_id)}


def _shown(event: Event) -> dict[str, Any]:
    model, serializer = SHOWN[event.event_type.partition(".")[0]]
    answer = serializer(instance_of(model, event.row)).data
    shown: dict[str, Any] = json.loads(JSONRenderer().render(answer))
    return dict(_numbers_kept(shown, redact_mapping(shown)))


def _numbers_kept(shown: Any, redacted: Any) -> Any:
    """The redacted value with the numbers of the one before: a `token_budget` is no token, and a number no secret."""
    if isinstance(shown, dict) and isinstance(redacted, dict):
        return {key: _numbers_kept(item, redacted[key]) for key, item in shown.items()}
    if isinstance(shown, list) and isinstance(redacted, list):
        return [_numbers_kept(one, other) for one, other in zip(shown, redacted, strict=True)]
    return shown if isinstance(shown, int | float) else redacted


def _short(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + SHORTENED
    if isinstance(value, dict):
        return {key: _short(item, longest) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item, longest) for item in value]
    return value


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)
