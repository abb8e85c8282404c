"""Every change of an object says when, why and by whom, to its owner and to staff."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pghistory
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pghistory.models import Context
from rest_framework.test import APIClient

from accounts.models import User
from boxes.models import Box, ReconciliationEvent
from conversations.services import ensure_conversation
from forge.models import Assignment
from runs.models import Run
from tests.fakes.provider import FakeProvider
from work.models import Incident, Job, Machine

pytestmark = pytest.mark.django_db


@pytest.fixture
def box(owner: User) -> Box:
    return Box.objects.create(conversation=ensure_conversation(owner), box_id="bx_1", state="provisioning")


def history(client: APIClient, of: Any, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/history", {"object": str(of), **query})
    assert answer.status_code == 200, answer.json()
    return answer.json()["results"]


def test_it_tells_each_change_newest_first(api_of: Callable[..., APIClient], owner: User, box: Box):
    Box.objects.update(state="ready")
    Box.objects.update(setup_status="done")

    newest, middle, first = history(api_of(owner), box.pk)

    assert (first["event"], first["state"], first["previous_state"]) == ("created", "provisioning", None)
    assert (middle["event"], middle["state"], middle["previous_state"]) == (
        "changed",
        "ready",
        "provisioning",
    )
    assert newest["values"]["setup_status"] == "done"
    assert newest["object"] == {"kind": "box", "id": str(box.pk)}
    assert newest["actor"] == {"type": "system", "id": None, "name": None}


def test_a_change_by_token_names_the_token_and_the_request(
    api_of: Callable[..., APIClient], owner: User, box: Box, provider: FakeProvider
):
    Box.objects.update(state="ready", setup_status="done")
    provider.add_box("bx_1")
    client = api_of(owner)

    answer = client.post(f"/api/v1/boxes/{box.pk}/stop")

    assert answer.status_code == 200, answer.json()
    change = history(client, box.pk)[0]
    token = owner.auth_token_set.get()
    assert change["actor"] == {"type": "token", "id": str(token.id), "name": owner.username}
    assert change["reason"] == "user_requested"
    assert UUID(change["request_id"])


def test_a_change_by_session_names_the_user(
    client: Client, owner: User, box: Box, provider: FakeProvider, api_of: Any
):
    Box.objects.update(state="ready", setup_status="done")
    client.force_login(owner)

    client.post(f"/api/v1/boxes/{box.pk}/stop")

    assert history(api_of(owner), box.pk)[0]["actor"] == {
        "type": "user",
        "id": str(owner.pk),
        "name": owner.username,
    }


def test_a_part_of_the_system_is_named(api_of: Callable[..., APIClient], owner: User, box: Box):
    with pghistory.context(actor="reconciler", why="ttl_expired"):
        Box.objects.update(state="archiving")

    change = history(api_of(owner), box.pk)[0]

    assert change["actor"] == {"type": "system", "id": None, "name": "reconciler"}
    assert change["reason"] == "ttl_expired"


def test_a_change_leaves_no_row_beside_that_of_the_history(box: Box):
    with pghistory.context(actor="reconciler", why="ttl_expired"):
        Box.objects.update(state="archiving")

    assert box.history.latest("pgh_id").pgh_context == {"actor": "reconciler", "why": "ttl_expired"}
    assert not Context.objects.exists()


def test_owners_are_not_told_who_of_staff_acted(
    api_of: Callable[..., APIClient], owner: User, staff: User, box: Box
):
    with pghistory.context(user=str(staff.pk)):
        Box.objects.update(state="archiving")

    assert history(api_of(owner), box.pk)[0]["actor"] == {"type": "user", "id": None, "name": "staff"}
    seen = history(api_of(staff), box.pk, all="true")[0]["actor"]
    assert seen == {"type": "user", "id": str(staff.pk), "name": "staff"}


@pytest.mark.parametrize("wanted", ["{pk}", "box:{pk}", "run:{pk}"])
def test_what_is_anothers_is_not_there(
    api_of: Callable[..., APIClient], stranger: User, staff: User, box: Box, wanted: str
):
    for user in (stranger, staff):
        answer = api_of(user).get("/api/v1/history", {"object": wanted.format(pk=box.pk)})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "object_not_found")


@pytest.mark.parametrize("wanted", ["", "box", "box:", "nothing:0198f7a2-6a52-7000-8000-2f4f3a3f1b11", "\0"])
def test_what_names_no_object_is_refused(api_of: Callable[..., APIClient], owner: User, wanted: str):
    answer = api_of(owner).get("/api/v1/history", {"object": wanted})

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_object")


def test_leaks_are_shown_to_staff_alone(api_of: Callable[..., APIClient], owner: User, staff: User):
    leak = ReconciliationEvent.objects.create(
        provider_box_id="bx_9", event_type="leak", reason="x", observed_at="2026-01-01T00:00:00Z"
    )
    ReconciliationEvent.objects.update(last_seen_at="2026-01-02T00:00:00Z")
    ReconciliationEvent.objects.update(
        handled_at="2026-01-03T00:00:00Z", resolution="dismissed", handled_by=staff
    )

    newest, first = history(api_of(staff), leak.pk, all="true")

    assert (newest["state"], newest["previous_state"], first["state"]) == ("dismissed", None, None)
    assert newest["values"]["handled_by"] == str(staff.pk)
    assert api_of(owner).get("/api/v1/history", {"object": leak.pk}).status_code == 404


def test_it_is_paged_and_costs_the_same_however_long_it_is(
    api_of: Callable[..., APIClient], owner: User, box: Box
):
    client = api_of(owner)
    history(client, box.pk)
    with CaptureQueriesContext(connection) as few:
        history(client, box.pk)
    for number in range(20):
        Box.objects.update(state=["ready", "running"][number % 2])

    with CaptureQueriesContext(connection) as many:
        answer = client.get("/api/v1/history", {"object": f"box:{box.pk}", "page_size": 10}).json()

    assert len(many) <= len(few)
    second = client.get(answer["next"]).json()["results"]
    assert answer["results"][-1]["previous_state"] == second[0]["state"]
    assert len({row["id"] for row in answer["results"] + second}) == 20


@pytest.mark.parametrize("model", [Box, Run, Job, Assignment, Machine, Incident, ReconciliationEvent])
def test_every_kind_of_the_api_keeps_a_history(model: Any):
    assert model._meta.get_field("history").related_model._meta.db_table == f"{model._meta.db_table}_history"


def test_the_staff_page_of_an_object_shows_it(client: Client, staff: User, box: Box):
    client.force_login(staff)
    with pghistory.context(user=str(staff.pk), request_id="<b>request</b>"):
        Box.objects.update(state="ready")

    page = client.get(f"/admin/boxes/box/{box.pk}/change/").content.decode()

    assert "provisioning → ready" in page
    assert "user staff" in page
    assert "<b>request</b>" not in page


def test_what_an_operator_does_by_hand_names_the_command(monkeypatch: pytest.MonkeyPatch):
    from openagents_site import command_line

    seen: list[Any] = []
    monkeypatch.setattr(command_line._Utility, "execute", lambda _: seen.append(current_context()))

    command_line.main(["manage.py", "runs", "list"])
    command_line.main(["manage.py", "check"])

    assert seen[0]["command"] == "manage.py runs"
    assert seen[1] is None


def current_context() -> dict[str, Any] | None:
    from pghistory.runtime import _tracker

    context = getattr(_tracker, "value", None)
    return None if context is None else json.loads(json.dumps(context.metadata))


def test_the_recorded_example_has_the_fields_of_an_answer():
    from openagents_site.api.examples import recorded
    from openagents_site.api.history import TransitionSerializer

    answers = recorded()["GET /api/v1/history"]["answer"]["results"]
    assert answers
    assert all(set(answer) == set(TransitionSerializer().fields) for answer in answers)
