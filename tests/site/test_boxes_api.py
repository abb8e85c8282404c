"""Boxes over HTTP, with a provider behind that counts what it is asked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from base import pump
from boxes.models import Box, ReconciliationEvent
from boxes.provisioning import ProvisioningDriver
from conversations.services import ensure_conversation

pytestmark = pytest.mark.django_db
API = "/api/v1"
FIELDS = {
    "id", "box_id", "conversation", "label", "state", "setup_status", "created_at", "stopped_at", "stop_reason",
    "stop_requested_at", "lifetime_seconds", "settled_cost_microusd", "usage_settled_at", "last_reconciled_at",
    "reconciliation_failures", "reconciliation_error", "next_reconciliation_at", "expires_at", "expires_because",
    "idle_since",
}  # fmt: skip


def code(response) -> str:
    return response.json()["error"]["code"]


@pytest.fixture
def client(owner, api_of):
    return api_of(owner)


@pytest.fixture
def box(client, provider):
    response = client.post(f"{API}/boxes", {})
    assert response.status_code == 202, response.content
    pump.run_once([ProvisioningDriver()])
    return client.get(f"{API}/boxes/{response.json()['id']}").json()


def test_a_box_is_made_named_and_shown_whole(box, provider):
    assert set(box) == FIELDS
    assert (box["state"], box["label"], box["expires_because"]) == ("ready", "box-1", "ttl")
    assert len(provider.existing()) == 1


@pytest.mark.parametrize("ref", ["id", "box_id", "label"])
def test_it_is_found_by_each_of_its_names_and_reading_asks_nobody(box, client, provider, ref):
    provider.forget_calls()

    assert client.get(f"{API}/boxes/{box[ref]}").json()["id"] == box["id"]
    assert provider.calls() == []


def test_a_stranger_is_answered_as_if_there_were_none_and_nobody_is_asked(box, stranger, api_of, provider):
    other = api_of(stranger)
    provider.forget_calls()

    for method, path, body in (
        ("get", "", None),
        ("post", "/stop", {}),
        ("post", "/extend", {"seconds": 60}),
        ("post", "/commands", {"command": "true"}),
    ):
        for ref in (box["id"], box["box_id"], "bx_22222222"):
            response = getattr(other, method)(f"{API}/boxes/{ref}{path}", body)
            assert (response.status_code, code(response)) == (404, "box_not_found")
    assert other.get(f"{API}/boxes").json()["results"] == []
    assert provider.calls() == []


def test_the_same_key_gives_the_same_box(client, provider):
    answers = [
        client.post(f"{API}/boxes", {"label": "mine"}, headers={"Idempotency-Key": "k"}) for _ in range(3)
    ]

    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert provider.count("POST /boxes") == 1
    other = client.post(f"{API}/boxes", {"label": "other"}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, code(other)) == (409, "idempotency_conflict")


def test_a_quota_is_said_before_the_provider_is_asked(client, provider, box_api):
    box_api(default_maximum_active_boxes=1)
    client.post(f"{API}/boxes", {})
    provider.forget_calls()

    refused = client.post(f"{API}/boxes", {})

    assert (refused.status_code, code(refused)) == (409, "box_quota_reached")
    assert provider.calls() == []


def test_too_many_creations_are_put_off(client, provider, box_api):
    box_api(default_maximum_active_boxes=0)

    answers = [client.post(f"{API}/boxes", {}) for _ in range(11)]

    assert {code(answer) for answer in answers[:10]} == {"box_quota_reached"}
    assert (answers[10].status_code, code(answers[10])) == (429, "box_api_rate_limited")
    assert int(answers[10]["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("status", "answered", "said"),
    [
        (402, 402, "box_billing_required"),
        (401, 502, "box_provider_unauthorized"),
        (429, 429, "box_provider_rate_limited"),
    ],
)
def test_a_refusal_of_the_provider_is_named_and_leaves_nothing(client, provider, status, answered, said):
    provider.next("POST /boxes", status=status)

    response = client.post(f"{API}/boxes", {})

    assert (response.status_code, code(response)) == (answered, said)
    assert not Box.objects.exists()


def test_without_a_key_nobody_is_asked(client, box_api):
    box_api(api_key="")

    response = client.post(f"{API}/boxes", {})

    assert (response.status_code, code(response)) == (503, "box_not_configured")


@pytest.mark.parametrize(
    "body", [{"label": ""}, {"label": "x" * 129}, {"wait": 26}, {"wait": -1}, {"budgeted": 7}]
)
def test_a_bad_body_makes_no_box(client, provider, body):
    assert client.post(f"{API}/boxes", body).status_code == 422
    assert provider.count("POST /boxes") == 0


def test_stopping_frees_the_label_and_twice_is_said(client, box, provider):
    stopped = client.post(f"{API}/boxes/{box['id']}/stop")
    again = client.post(f"{API}/boxes/{box['id']}/stop")

    assert (stopped.status_code, stopped.json()["stop_reason"]) == (200, "user_requested")
    assert (again.status_code, code(again)) == (409, "box_stopped")
    assert provider.count("POST /boxes/{id}/stop") == 1


def test_extending_moves_the_end_here_and_at_the_provider(client, box, provider):
    longer = client.post(f"{API}/boxes/{box['id']}/extend", {"seconds": 600}).json()

    assert longer["expires_at"] > box["expires_at"]
    assert longer["expires_because"] == "extended"


def test_a_command_answers_with_what_it_said(client, box, provider):
    provider.execute_commands()

    answer = client.post(
        f"{API}/boxes/{box['id']}/commands", {"command": "echo out; echo err >&2; exit 3"}
    ).json()

    assert answer == {
        "exit_status": 3,
        "stdout": "out\n",
        "stderr": "err\n",
        "timed_out": False,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"command": ""}, "invalid_command"),
        ({"command": " \n"}, "invalid_command"),
        ({"command": "é" * 2001}, "invalid_command"),
        ({"command": "true", "timeout_seconds": 0}, "invalid_command_timeout"),
        ({"command": "true", "timeout_seconds": 571}, "invalid_command_timeout"),
        ({}, "invalid_request"),
    ],
)
def test_a_bad_command_is_named(client, box, body, said):
    response = client.post(f"{API}/boxes/{box['id']}/commands", body)

    assert (response.status_code, code(response)) == (422, said)


def test_lists_are_filtered_and_cost_the_same_however_long(client, owner, provider):
    conversation = ensure_conversation(owner)
    Box.objects.bulk_create(
        Box(
            conversation=conversation,
            box_id=f"bx_{n}",
            label=f"box-{n}",
            state="ready",
            stopped_at=timezone.now(),
        )
        for n in range(3)
    )

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert client.get(f"{API}/boxes?page_size=200").status_code == 200
        return len(captured)

    queries()  # the token's use is noted once a minute
    few = queries()
    Box.objects.bulk_create(
        Box(conversation=conversation, box_id=f"bx_more_{n}", label=f"more-{n}", state="ready",
            stopped_at=timezone.now() - timedelta(days=1))
        for n in range(150)
    )  # fmt: skip

    assert queries() == few
    assert len(client.get(f"{API}/boxes?label=box-1").json()["results"]) == 1
    assert client.get(f"{API}/boxes?active=true").json()["results"] == []
    assert client.get(f"{API}/boxes?state=nonsense").status_code == 422


def test_staff_see_everything_when_they_ask_and_owners_do_not(box, staff, stranger, api_of):
    assert len(api_of(staff).get(f"{API}/boxes?all=true").json()["results"]) == 1
    assert api_of(staff).get(f"{API}/boxes").json()["results"] == []
    assert api_of(stranger).get(f"{API}/boxes?all=true").json()["results"] == []


def test_only_staff_forget_a_box_handle_leaks_and_reconcile(box, client, staff, api_of):
    leak = ReconciliationEvent.objects.create(
        provider_box_id="bx_leak", event_type="leak", reason="x", observed_at=timezone.now()
    )
    for path in (
        f"/boxes/{box['id']}/forget",
        f"/leaks/{leak.pk}/dismiss",
        f"/leaks/{leak.pk}/stop",
        "/reconcile",
    ):
        assert code(client.post(f"{API}{path}")) == "staff_only"
    assert code(client.get(f"{API}/leaks")) == "staff_only"

    assert api_of(staff).post(f"{API}/boxes/{box['id']}/forget").json()["stop_reason"] == "forgotten"
    dismissed = api_of(staff).post(f"{API}/leaks/{leak.pk}/dismiss").json()
    again = api_of(staff).post(f"{API}/leaks/{leak.pk}/dismiss")
    assert dismissed["resolution"] == "dismissed"
    assert (again.status_code, code(again)) == (409, "leak_handled")


def test_staff_adopt_a_leak_into_a_conversation(owner, staff, api_of, provider):
    conversation = ensure_conversation(owner)
    leak = ReconciliationEvent.objects.create(
        provider_box_id="bx_leak", event_type="leak", reason="x", observed_at=timezone.now()
    )

    adopted = api_of(staff).post(f"{API}/leaks/{leak.pk}/adopt", {"conversation": str(conversation.id)})

    assert adopted.json()["resolution"] == "adopted"
    assert Box.objects.get(box_id="bx_leak").conversation == conversation


def test_usage_never_counts_what_is_not_known_as_zero(client, box, owner):
    conversation = ensure_conversation(owner)
    Box.objects.create(
        conversation=conversation, box_id="bx_old", stopped_at=timezone.now(), state="archived",
        lifetime_seconds=90, settled_cost_microusd=12, usage_settled_at=timezone.now(),
    )  # fmt: skip

    answer = client.get(f"{API}/usage?group=box").json()

    assert (answer["boxes"], answer["unsettled_boxes"], answer["settled_cost_microusd"]) == (2, 1, 12)
    assert {group["key"] for group in answer["groups"]} == set(
        map(str, Box.objects.values_list("id", flat=True))
    )
    assert client.get(f"{API}/usage?group=colour").status_code == 422
    assert client.get(f"{API}/usage?conversation=nonsense").status_code == 422


def test_a_plan_admits_what_fits_and_queues_the_rest(client, provider, box_api):
    box_api(default_maximum_active_boxes=2)

    plan = client.post(f"{API}/fanouts", {"count": 3, "labels": ["a", "b", "c"]}).json()

    assert [item["label"] for item in plan["admitted"]] == ["a", "b"]
    assert [(item["label"], item["queue_reason"]) for item in plan["queued"]] == [
        ("c", "conversation_active_limit")
    ]
    listed = [
        client.get(f"{API}/fanouts?{wanted}").json()["results"]
        for wanted in ("state=queued", f"conversation={plan['conversation']}", "state=admitted")
    ]
    assert [[each["id"] for each in found] for found in listed] == [[plan["id"]], [plan["id"]], []]
    ended = client.post(f"{API}/fanouts/{plan['id']}/cancel").json()
    assert ended["queued"] == []
    assert client.post(f"{API}/fanouts", {"count": 0}).json()["error"]["code"] == "invalid_box_count"
    assert (
        client.post(f"{API}/fanouts", {"count": 2, "labels": ["x"]}).json()["error"]["code"]
        == "invalid_box_labels"
    )
