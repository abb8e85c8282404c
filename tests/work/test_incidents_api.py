"""Incidents over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from work.incidents import record
from work.models import Incident

pytestmark = pytest.mark.django_db
API = "/api/v1"
ApiOf = Callable[..., APIClient]


@pytest.fixture
def client(owner: User, api_of: ApiOf) -> APIClient:
    return api_of(owner)


@pytest.fixture
def incident(owner: User) -> Incident:
    made = record(surface="job", origin="job_server", code="transport", owner_user=owner, summary="It broke")
    assert made is not None
    return made


def test_an_owner_sees_what_went_wrong_newest_first(
    client: APIClient, owner: User, incident: Incident
) -> None:
    record(surface="job", origin="job_server", code="tool_failed", owner_user=owner)
    shown = client.get(f"{API}/incidents").json()["results"]
    assert [(one["code"], one["severity"]) for one in shown] == [
        ("tool_failed", "anomalous"),
        ("transport", "degraded"),
    ]
    assert [one["id"] for one in client.get(f"{API}/incidents?severity=degraded").json()["results"]] == [
        str(incident.pk)
    ]


def test_one_is_shown_with_how_often_it_happened(client: APIClient, owner: User, incident: Incident) -> None:
    record(surface="job", origin="job_server", code="transport", owner_user=owner)
    shown = client.get(f"{API}/incidents/{incident.pk}").json()
    assert (shown["summary"], shown["status"], shown["recurrence"]) == ("It broke", "open", 1)
    newest = client.get(f"{API}/incidents").json()["results"][0]
    assert client.get(f"{API}/incidents/{newest['id']}").json()["recurrence"] == 2


def test_what_became_of_it_is_said_and_kept(client: APIClient, incident: Incident) -> None:
    changed = client.patch(
        f"{API}/incidents/{incident.pk}", {"status": "resolved", "receipt_ref": "commit:abc"}
    )
    assert changed.status_code == 200
    assert (changed.json()["status"], changed.json()["receipt_ref"]) == ("resolved", "commit:abc")
    kept = client.patch(f"{API}/incidents/{incident.pk}", {"status": "open"}).json()
    assert (kept["status"], kept["receipt_ref"]) == ("open", "commit:abc")
    assert client.patch(f"{API}/incidents/{incident.pk}", {"receipt_ref": None}).json()["receipt_ref"] is None


@pytest.mark.parametrize("body", [{"status": "odd"}, {"code": "other"}, {"receipt_ref": "x" * 257}], ids=str)
def test_nothing_else_can_be_said(client: APIClient, incident: Incident, body: dict[str, Any]) -> None:
    assert client.patch(f"{API}/incidents/{incident.pk}", body).status_code == 422


def test_a_stranger_sees_nothing_of_it(stranger: User, api_of: ApiOf, incident: Incident) -> None:
    theirs = api_of(stranger)
    foreign = theirs.get(f"{API}/incidents/{incident.pk}")
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "incident_not_found")
    assert theirs.patch(f"{API}/incidents/{incident.pk}", {"status": "resolved"}).status_code == 404
    assert theirs.get(f"{API}/incidents").json()["results"] == []


def test_nobodys_incidents_are_for_staff(staff: User, client: APIClient, api_of: ApiOf) -> None:
    record(surface="controller", origin="worker", code="pass_late")
    assert client.get(f"{API}/incidents?all=true").json()["results"] == []
    assert len(api_of(staff).get(f"{API}/incidents?all=true").json()["results"]) == 1


def test_a_change_needs_the_scope(owner: User, api_of: ApiOf, incident: Incident) -> None:
    answer = api_of(owner, "read").patch(f"{API}/incidents/{incident.pk}", {"status": "resolved"})
    assert answer.status_code == 403
