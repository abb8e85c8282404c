"""What happens in the ledgers becomes events, in the transaction in which it happens, and only if somebody listens."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer

from accounts.models import User
from boxes.models import Box, ReconciliationEvent
from boxes.serializers import BoxSerializer
from conversations.services import ensure_conversation
from openagents_site.webhooks import states, subscriptions
from openagents_site.webhooks.models import Event, Subscription
from openagents_site.webhooks.rendering import SHOWN, bounded, instance_of, payload_of
from openagents_site.webhooks.sources import SOURCES
from runs.models import Run
from runs.serializers import RunSerializer
from tests.webhooks.conftest import BoxOf, RunOn
from work import incidents
from work.api.serializers import IncidentSerializer, JobSerializer
from work.models import Job

pytestmark = pytest.mark.django_db


def kinds() -> list[str]:
    return list(Event.objects.order_by("occurred_at").values_list("event_type", flat=True))


def shown(data: Any) -> Any:
    return json.loads(JSONRenderer().render(data))


def test_a_box_from_its_creation_to_its_cost(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    box, now = box_of(owner), timezone.now()
    rows = Box.objects.filter(pk=box.pk)

    rows.update(state="ready")
    rows.update(state="running")  # up as before
    rows.update(reconciliation_failures=1)
    rows.update(stop_requested_at=now)
    rows.update(stopped_at=now, stop_reason="user_requested", state="archived", lifetime_seconds=5)
    rows.update(settled_cost_microusd=7, usage_settled_at=now)

    assert kinds() == list(states.BOX_EVENTS)


def test_a_run_by_its_states(hook: Subscription, owner: User, box_of: BoxOf, run_on: RunOn) -> None:
    run = run_on(box_of(owner))
    for state in ("dispatched", "running", "running", "completed"):
        Run.objects.filter(pk=run.pk).update(state=state)

    assert kinds()[1:] == ["run.admitted", "run.dispatched", "run.running", "run.completed"]


def test_one_statement_for_many_rows_is_an_event_for_each(
    hook: Subscription, owner: User, box_of: BoxOf
) -> None:
    boxes = [box_of(owner) for _ in range(3)]
    Event.objects.all().delete()

    Box.objects.filter(pk__in=[box.pk for box in boxes]).update(state="ready")

    assert set(Event.objects.values_list("object_id", flat=True)) == {box.pk for box in boxes}


def test_jobs_incidents_and_leaks(hook: Subscription, owner: User) -> None:
    conversation = ensure_conversation(owner)
    job = Job.objects.create(
        conversation=conversation,
        owner_visitor=conversation.visitor,
        surface="text",
        goal="x",
        kind="deep_work",
    )
    Job.objects.filter(pk=job.pk).update(report="half")
    incident = incidents.record(code="cancelled", owner_user=owner)
    assert incident is not None
    incidents.change(incident, status="resolved")
    leak = ReconciliationEvent.objects.create(
        provider_box_id="box_1", event_type="leak", reason="unclaimed", observed_at=timezone.now()
    )
    ReconciliationEvent.objects.create(
        provider_box_id="box_1", event_type="unknown_state", reason="odd", observed_at=timezone.now()
    )
    ReconciliationEvent.objects.filter(pk=leak.pk).update(handled_at=timezone.now(), resolution="stopped")
    ReconciliationEvent.objects.filter(pk=leak.pk).update(
        handled_at=None, resolution=None, reopened_at=timezone.now()
    )

    assert kinds() == [
        "job.queued", "incident.open", "incident.resolved", "leak.found", "leak.stopped", "leak.reopened"
    ]  # fmt: skip


def test_what_is_rolled_back_did_not_happen(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    with transaction.atomic():
        box_of(owner)
        assert kinds() == ["box.created"]
        transaction.set_rollback(True)

    assert kinds() == []


def test_nothing_is_kept_while_nobody_listens(owner: User, box_of: BoxOf) -> None:
    box_of(owner)

    assert kinds() == []


@pytest.mark.parametrize(
    ("listed", "kept"),
    [
        ([], True),
        (["box.created"], True),
        (["run.*", "box.*"], True),
        (["box.ready"], False),
        (["leak.*"], False),
    ],
)
def test_only_what_somebody_listed_is_kept(
    hook: Subscription, owner: User, box_of: BoxOf, listed: list[str], kept: bool
) -> None:
    subscriptions.change(hook, event_types=listed)

    box_of(owner)

    assert bool(kinds()) == kept


def test_a_webhook_that_is_off_does_not_listen(hook: Subscription, owner: User, box_of: BoxOf) -> None:
    subscriptions.change(hook, enabled=False)

    box_of(owner)

    assert kinds() == []


def test_every_listed_type_belongs_to_a_ledger() -> None:
    assert {source.noun for source in SOURCES} == set(states.NOUNS) == set(SHOWN)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.noun)
def test_the_columns_kept_are_of_the_ledger(source: Any) -> None:
    model, _ = SHOWN[source.noun]
    columns = {field.column for field in model._meta.concrete_fields}

    assert set(source.columns) <= columns
    assert not set(source.columns) & {"output", "output_state", "create_body", "create_key", "run_directory"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.noun)
def test_the_columns_kept_are_all_that_the_api_shows(source: Any) -> None:
    """What is missing would be read from the ledger later on, and tell of another time."""
    model, serializer = SHOWN[source.noun]
    columns = {field.name: field.column for field in model._meta.concrete_fields}
    wanted = {columns[name] for name in serializer().fields if name in columns}
    wanted |= {columns[part] for field in serializer().fields.values()
               if (part := str(field.source).partition(".")[0].removesuffix("_id")) in columns}  # fmt: skip

    assert wanted <= set(source.columns)


def test_it_tells_what_the_api_shows_as_it_was_then(
    hook: Subscription, owner: User, box_of: BoxOf, run_on: RunOn
) -> None:
    box = box_of(owner, state="ready")
    run = Run.objects.get(pk=run_on(box, command="echo hello").pk)
    as_it_was = shown(RunSerializer(run).data), shown(BoxSerializer(Box.objects.get(pk=box.pk)).data)
    Run.objects.filter(pk=run.pk).update(state="running", started_at=timezone.now())
    Box.objects.filter(pk=box.pk).update(last_reconciled_at=timezone.now())

    of_run = json.loads(payload_of(Event.objects.get(event_type="run.admitted")))
    of_box = json.loads(payload_of(Event.objects.get(event_type="box.created")))

    assert of_run["data"] == as_it_was[0]
    assert {**of_box["data"], "idle_since": 0} == {**as_it_was[1], "idle_since": 0}
    assert (of_run["type"], of_run["timestamp"][-1]) == ("run.admitted", "Z")


def test_numbers_stay_numbers_whatever_they_are_called(hook: Subscription, owner: User) -> None:
    conversation = ensure_conversation(owner)
    job = Job.objects.create(
        conversation=conversation, owner_visitor=conversation.visitor, surface="text", goal="x",
        token_budget=5_000, usage={"input_tokens": 3, "api_key": "abcdef"},
    )  # fmt: skip
    event = Event.objects.get(event_type="job.queued")

    told = json.loads(payload_of(event))["data"]

    as_the_api = shown(JobSerializer(Job.objects.get(pk=job.pk)).data)
    assert told == as_the_api | {"usage": {"input_tokens": 3, "api_key": "[REDACTED]"}}


def test_an_incident_is_told_as_the_api_shows_it(hook: Subscription, owner: User) -> None:
    incident = incidents.record(code="cancelled", owner_user=owner, context={"tries": 3}, summary="gone")
    assert incident is not None
    event = Event.objects.get(event_type="incident.open")

    assert json.loads(payload_of(event))["data"] == shown(IncidentSerializer(incident).data)


def test_secrets_are_struck_out(hook: Subscription, owner: User, box_of: BoxOf, run_on: RunOn) -> None:
    token = "ghp_" + "a1B2" * 9
    run_on(box_of(owner), command=f"git clone https://user:{token}@github.com/x/y")

    payload = payload_of(Event.objects.get(event_type="run.admitted"))

    assert token not in payload
    assert "REDACTED" in payload


@pytest.mark.parametrize("data", [
    {"id": "1", "report": "é" * 200_000},
    {"id": "1", "list": ["x" * 400] * 2_000},
    {"id": "1", **{f"key-{n}": n for n in range(20_000)}},
])  # fmt: skip
def test_a_payload_is_bounded_whatever_is_in_it(data: dict[str, Any]) -> None:
    text = bounded({"type": "job.completed", "timestamp": "2026-01-01T00:00:00Z", "data": data})

    assert len(text.encode()) <= 65_536
    told = json.loads(text)["data"]
    assert (told["id"], told["shortened"]) == ("1", True)


def test_a_row_that_cannot_be_shown_is_told_by_its_id() -> None:
    event = Event(
        event_type="run.failed", object_id=uuid.uuid4(), row={"id": "no uuid"}, occurred_at=timezone.now()
    )

    assert json.loads(payload_of(event))["data"] == {"id": str(event.object_id)}


def test_times_come_back_as_they_were(owner: User, box_of: BoxOf) -> None:
    made = timezone.now() - timedelta(days=3, microseconds=17)
    box = box_of(owner, created_at=made)
    with connection.cursor() as cursor:
        cursor.execute("select to_jsonb(b) from conversation_boxes b where id = %s", [box.pk])
        row = json.loads(cursor.fetchone()[0])

    again = instance_of(Box, row)

    assert (again.created_at, again.pk) == (made, box.pk)
