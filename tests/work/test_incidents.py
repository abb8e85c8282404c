"""What went wrong is written down, without secrets and without ever getting in the way."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import User
from base import hooks
from conversations.services import ensure_conversation
from work import incidents
from work.models import Incident

pytestmark = pytest.mark.django_db

CODES = {
    "expected": "cancelled missing_terminal_event machine_offline machine_not_found ambiguous_machine"
    " agent_not_available rate_limited turn_in_progress owner_not_signed_in delegation_refused delegation_cancelled",
    "degraded": "provider_timeout provider_failure provider_error turn_timeout machine_disconnected machine_timeout"
    " machine_revoked runtime_restarted delegation_timeout task_exit transport provider_task_exited",
    "anomalous": "duplicate_tool_execution_claim delegation_failed mass_absence Cancelled cancel",
}


@pytest.mark.parametrize(
    ("severity", "code"), [(name, code) for name, codes in CODES.items() for code in codes.split()]
)
def test_the_code_decides_how_bad_it_is(severity: str, code: str) -> None:
    assert incidents.severity_of(code) == severity
    assert incidents.severity_of(f"{code}: and more") == severity


def test_no_code_is_anomalous_and_kept_as_a_task_that_exited() -> None:
    assert incidents.severity_of(None) == incidents.severity_of("") == "anomalous"
    assert incidents.record(surface="job", origin="x").code == "task_exit"


def test_it_is_what_every_part_reports_to(owner: User) -> None:
    hooks.incident_reporter(
        {
            "surface": "controller",
            "origin": "budget",
            "code": "owner_budget_reached",
            "correlation_ref": "user:1",
            "owner_user": owner.pk,
            "summary": "spent",
            "context": {"spent_microusd": 5},
        }
    )

    (incident,) = incidents.list_recent(owner)
    assert (incident.origin, incident.code, incident.severity) == (
        "budget",
        "owner_budget_reached",
        "anomalous",
    )
    assert (incident.correlation_ref, incident.context, incident.status) == (
        "user:1",
        {"spent_microusd": 5},
        "open",
    )


def test_the_owner_is_found_by_the_conversation(owner: User) -> None:
    conversation = ensure_conversation(owner)

    incident = incidents.record(surface="text", origin="x", code="transport", conversation=conversation)

    assert (incident.owner_user, incident.owner_visitor_id) == (owner, conversation.visitor_id)


def test_an_anonymous_visitor_has_no_feed() -> None:
    incident = incidents.record(origin="x", code="transport", conversation=ensure_conversation("a browser"))

    assert (incident.owner_user_id, incidents.list_recent(None)) == (None, [])


@pytest.mark.parametrize(
    "incident",
    [
        {},
        {"surface": "the moon", "origin": None, "code": 5, "summary": None, "correlation_ref": uuid.uuid4()},
        {"code": "x" * 5_000, "origin": "é" * 5_000, "summary": "y" * 5_000, "correlation_ref": "z" * 5_000},
        {"code": "a\0b", "summary": "\0\ud800", "origin": "\0", "context": {"\0": "\0\ud800"}},
        {"owner_user": uuid.uuid4(), "conversation": uuid.uuid4(), "owner_visitor": uuid.uuid4()},
        {"owner_user": "nobody", "conversation": 5, "context": "no map"},
        {"context": {"set": {1, 2}, "object": object(), "nan": float("nan"), 5: None, "inf": float("inf")}},
        {"something": "else"},
    ],
)
def test_whatever_is_reported_is_recorded(incident: dict[str, Any]) -> None:
    assert incidents.report(incident) is not None

    connection.check_constraints()  # what would be said at commit


def test_it_never_raises_into_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise DatabaseError("no")

    monkeypatch.setattr(Incident.objects, "create", fail)

    with transaction.atomic():
        assert incidents.record(origin="x", code="transport") is None
        assert incidents.report({"code": "transport"}) is None
        assert incidents.report(5) is None  # type: ignore[arg-type]
        assert User.objects.count() == 0  # the caller's transaction is whole


def test_what_looks_like_a_secret_is_not_kept() -> None:
    context = {
        "token": "oa_pat_" + "a" * 40,
        "nested": {"api_key": "anything", "list": ["Bearer " + "b" * 40, "plain"]},
        "code": "machine_offline",
    }

    kept = incidents.record(origin="x", summary="with ghp_" + "c" * 36, context=context)

    assert kept.context["token"] == "[redacted]"
    assert kept.context["nested"] == {"api_key": "[redacted]", "list": ["[redacted]", "plain"]}
    assert kept.context["code"] == "machine_offline"
    assert "ccc" not in kept.summary


def test_texts_are_cut_and_a_large_map_is_replaced() -> None:
    assert incidents.scrubbed({1: "é" * 501}) == {"1": "é" * 500}

    large = incidents.scrubbed({str(number): "word " * 50 for number in range(40)})
    assert large["truncated"] is True
    assert set(large) == {"truncated", "bytes"}


def test_lists_are_the_owners_newest_first_and_bounded(owner: User, stranger: User) -> None:
    made = [incidents.record(origin="x", code=f"code-{number}", owner_user=owner) for number in range(25)]
    incidents.record(origin="x", code="theirs", owner_user=stranger)

    assert [incident.pk for incident in incidents.list_recent(owner)] == [row.pk for row in reversed(made)][
        :20
    ]
    assert len(incidents.list_recent(owner.pk, limit=1_000)) == 25
    assert len(incidents.list_recent(owner, limit=-1)) == 1


def test_it_recurs_by_code_and_owner_within_a_day(owner: User, stranger: User) -> None:
    day_old = timezone.now() - timedelta(days=1, minutes=1)
    Incident.objects.create(
        owner_user=owner, surface="job", origin="x", code="a", severity="anomalous", created_at=day_old
    )
    first, second = (incidents.record(origin="x", code="a", owner_user=owner) for _ in range(2))
    incidents.record(origin="x", code="b", owner_user=owner)
    incidents.record(origin="x", code="a", owner_user=stranger)

    assert (incidents.recurrence(first), incidents.recurrence(second)) == (1, 2)


def test_what_was_recorded_does_not_change_but_for_its_status(owner: User) -> None:
    incident = incidents.record(origin="x", code="transport", owner_user=owner)

    Incident.objects.filter(pk=incident.pk).update(status="resolved", receipt_ref="commit:abc")

    assert incident.history.get().status == "resolved"
    with pytest.raises(DatabaseError, match="incident identity is immutable"), transaction.atomic():
        Incident.objects.filter(pk=incident.pk).update(summary="nothing happened")
    with pytest.raises(DatabaseError, match="incident identity is immutable"), transaction.atomic():
        Incident.objects.filter(pk=incident.pk).update(id=uuid.uuid4())
