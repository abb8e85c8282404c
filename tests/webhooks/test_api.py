"""Webhooks over the API: the caller's own, the secret once, every bad input a clear answer."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import IdempotencyKey, User
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.models import Attempt, Delivery, Event, Subscription
from tests.webhooks.conftest import BoxOf, deliver, only_delivery, secret_of
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db
API = "/api/v1/webhooks"
URL = "https://example.com/hook"


@pytest.fixture
def client(owner: User, api_of: Any) -> APIClient:
    return api_of(owner)


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_it_is_made_and_its_secret_shown_once(client: APIClient, owner: User) -> None:
    answer = client.post(API, {"url": URL, "description": "mine", "event_types": ["run.*", "run.*"]})

    made = answer.json()
    assert answer.status_code == 201
    assert made["secret"].startswith("whsec_")
    assert made["secret"] == secret_of(Subscription.objects.get(owner=owner))
    assert answer["Cache-Control"] == "no-store"
    shown = client.get(f"{API}/{made['id']}").json()
    assert shown == {key: value for key, value in made.items() if key != "secret"}
    assert (shown["enabled"], shown["event_types"], shown["all_owners"]) == (True, ["run.*"], False)
    assert "secret" not in client.get(API).json()["results"][0]


def test_a_repeated_request_is_answered_as_the_first(client: APIClient) -> None:
    first = client.post(API, {"url": URL}, headers={"Idempotency-Key": "k"})
    second = client.post(API, {"url": URL}, headers={"Idempotency-Key": "k"})

    assert first.json() == second.json()
    assert Subscription.objects.count() == 1
    assert first.json()["secret"] not in str(IdempotencyKey.objects.values())
    assert code_of(client.post(API, {"url": URL + "2"}, headers={"Idempotency-Key": "k"})) == (
        409,
        "idempotency_conflict",
    )


@pytest.mark.parametrize(("body", "expected"), [
    ({}, (422, "invalid_request")),
    ({"url": 5}, (422, "invalid_request")),
    ({"url": "ftp://x/"}, (422, "invalid_webhook_url")),
    ({"url": "https://user:pw@example.com/"}, (422, "invalid_webhook_url")),
    ({"url": "https://example.com/\r\nX: y"}, (422, "invalid_webhook_url")),
    ({"url": "https://example.com/" + "x" * 3000}, (422, "invalid_request")),
    ({"url": URL, "event_types": ["box.nothing"]}, (422, "invalid_request")),
    ({"url": URL, "event_types": "run.*"}, (422, "invalid_request")),
    ({"url": URL, "event_types": ["*"]}, (422, "invalid_request")),
    ({"url": URL, "description": "x" * 201}, (422, "invalid_request")),
    ({"url": URL, "secret": "mine"}, (422, "invalid_request")),
    ({"url": URL, "all": True}, (403, "staff_only")),
])  # fmt: skip
def test_bad_bodies_are_named(client: APIClient, body: dict[str, Any], expected: tuple[int, str]) -> None:
    assert code_of(client.post(API, body)) == expected
    assert not Subscription.objects.exists()


def test_private_targets_are_refused_by_default(client: APIClient, settings: Any) -> None:
    settings.WEBHOOKS = {}

    for url in ("http://example.com/", "https://127.0.0.1/", "https://localhost/x", "https://[::1]/"):
        assert code_of(client.post(API, {"url": url})) == (422, "invalid_webhook_url")


def test_there_is_a_limit_of_how_many(client: APIClient, settings: Any, stranger: User, api_of: Any) -> None:
    settings.WEBHOOKS = settings.WEBHOOKS | {"maximum_per_owner": 2}
    for _ in range(2):
        assert client.post(API, {"url": URL}).status_code == 201

    assert code_of(client.post(API, {"url": URL})) == (409, "too_many_webhooks")
    assert api_of(stranger).post(API, {"url": URL}).status_code == 201


def test_anothers_webhook_is_not_there(hook: Subscription, stranger: User, api_of: Any) -> None:
    client, paths = api_of(stranger), ("", "/deliveries")
    for path in paths:
        assert code_of(client.get(f"{API}/{hook.pk}{path}")) == (404, "webhook_not_found")
    for path in ("/rotate", "/test", f"/deliveries/{uuid.uuid4()}/replay"):
        assert code_of(client.post(f"{API}/{hook.pk}{path}")) == (404, "webhook_not_found")
    assert code_of(client.patch(f"{API}/{hook.pk}", {"enabled": False})) == (404, "webhook_not_found")
    assert code_of(client.delete(f"{API}/{hook.pk}")) == (404, "webhook_not_found")
    assert client.get(API).json()["results"] == []
    assert client.get(f"{API}?all=true").json()["results"] == []


def test_staff_see_everybodys_when_they_ask(hook: Subscription, staff: User, api_of: Any) -> None:
    client = api_of(staff)

    assert client.get(f"{API}/{hook.pk}").status_code == 404
    assert client.get(f"{API}/{hook.pk}?all=true").status_code == 200
    assert client.post(f"{API}/{hook.pk}/test?all=true").status_code == 201
    assert code_of(client.post(f"{API}/{hook.pk}/rotate?all=true")) == (404, "webhook_not_found")
    assert client.post(API, {"url": URL, "all": True}).json()["all_owners"] is True


def test_staff_see_of_anothers_address_no_more_than_stands_before_its_query(
    owner: User, staff: User, api_of: Any
) -> None:
    hook, _ = subscriptions.create(owner, url=f"{URL}?token=hidden")
    client = api_of(staff)

    answers = [
        client.get(f"{API}?all=true").json()["results"][0],
        client.get(f"{API}/{hook.pk}?all=true").json(),
        client.patch(f"{API}/{hook.pk}?all=true", {"description": "theirs"}).json(),
    ]

    assert {answer["url"] for answer in answers} == {URL}
    assert api_of(owner).get(f"{API}/{hook.pk}").json()["url"] == f"{URL}?token=hidden"


def test_reading_takes_one_scope_and_changing_another(hook: Subscription, owner: User, api_of: Any) -> None:
    reader = api_of(owner, "read")

    assert reader.get(f"{API}/{hook.pk}").status_code == 200
    for call in (
        reader.post(API, {"url": URL}),
        reader.patch(f"{API}/{hook.pk}", {"enabled": False}),
        reader.delete(f"{API}/{hook.pk}"),
        reader.post(f"{API}/{hook.pk}/rotate"),
        reader.post(f"{API}/{hook.pk}/test"),
    ):
        assert code_of(call) == (403, "insufficient_scope")


def test_it_is_changed_and_switched(hook: Subscription, client: APIClient) -> None:
    changed = client.patch(
        f"{API}/{hook.pk}", {"event_types": ["job.*"], "description": "x", "enabled": False}
    )
    assert (changed.json()["event_types"], changed.json()["description"]) == (["job.*"], "x")
    assert (changed.json()["enabled"], changed.json()["disabled_reason"]) == (False, "owner")

    assert client.patch(f"{API}/{hook.pk}", {"enabled": True}).json()["disabled_at"] is None
    assert code_of(client.patch(f"{API}/{hook.pk}", {"url": "nowhere"})) == (422, "invalid_webhook_url")
    assert code_of(client.patch(f"{API}/{hook.pk}", {"all": True})) == (422, "invalid_request")


def test_it_is_deleted_with_what_it_was_told(
    hook: Subscription, client: APIClient, owner: User, box_of: BoxOf
) -> None:
    box_of(owner)
    deliver()

    assert client.delete(f"{API}/{hook.pk}").status_code == 204
    assert not Subscription.objects.exists()
    assert not Delivery.objects.exists()
    assert not Attempt.objects.exists()


def test_the_secret_is_changed_and_shown_once(hook: Subscription, client: APIClient) -> None:
    before = secret_of(hook)

    answer = client.post(f"{API}/{hook.pk}/rotate", headers={"Idempotency-Key": "again"})
    again = client.post(f"{API}/{hook.pk}/rotate", headers={"Idempotency-Key": "again"})

    assert answer.status_code == 200
    assert answer.json()["secret"] == again.json()["secret"] == secret_of(hook) != before


def test_the_log_of_deliveries(hook: Subscription, client: APIClient, owner: User, box_of: BoxOf) -> None:
    box = box_of(owner)
    deliver()

    (row,) = client.get(f"{API}/{hook.pk}/deliveries").json()["results"]

    assert (row["event_type"], row["object"], row["state"]) == ("box.created", str(box.pk), "delivered")
    assert row["event_id"] == only_delivery().event.message_id
    (attempt,) = row["attempt_log"]
    assert (attempt["number"], attempt["status"], attempt["error"]) == (1, 200, None)
    assert client.get(f"{API}/{hook.pk}/deliveries?state=pending").json()["results"] == []
    assert code_of(client.get(f"{API}/{hook.pk}/deliveries?state=x")) == (422, "invalid_request")


@pytest.mark.parametrize("number", [1, 8])
def test_the_log_costs_the_same_however_long_it_is(
    hook: Subscription,
    client: APIClient,
    owner: User,
    box_of: BoxOf,
    number: int,
    django_assert_num_queries: Any,
) -> None:
    for _ in range(number):
        box_of(owner)
    while deliver():
        pass
    client.get(f"{API}/{hook.pk}/deliveries")

    with django_assert_num_queries(4):  # the token, the webhook, the page, its tries
        assert len(client.get(f"{API}/{hook.pk}/deliveries").json()["results"]) == number


def test_a_delivery_is_replayed(
    hook: Subscription, client: APIClient, owner: User, box_of: BoxOf, receiver: Receiver
) -> None:
    box_of(owner)
    deliver()

    answer = client.post(f"{API}/{hook.pk}/deliveries/{only_delivery().pk}/replay")
    assert (answer.status_code, answer.json()["state"], answer.json()["replays"]) == (200, "pending", 1)
    deliver()

    assert len({each.message_id for each in receiver.received}) == 1
    assert len(receiver.received) == 2
    assert code_of(client.post(f"{API}/{hook.pk}/deliveries/{uuid.uuid4()}/replay")) == (
        404,
        "webhook_delivery_not_found",
    )


def test_a_test_is_sent(hook: Subscription, client: APIClient, receiver: Receiver) -> None:
    answer = client.post(f"{API}/{hook.pk}/test", headers={"Idempotency-Key": "t"})
    client.post(f"{API}/{hook.pk}/test", headers={"Idempotency-Key": "t"})
    assert (answer.status_code, answer.json()["event_type"]) == (201, "webhook.test")
    deliver()

    (got,) = receiver.received
    assert got.verified(secret_of(hook))["type"] == "webhook.test"
    client.patch(f"{API}/{hook.pk}", {"enabled": False})
    assert code_of(client.post(f"{API}/{hook.pk}/test")) == (409, "webhook_disabled")


def test_sending_on_demand_is_bounded(
    hook: Subscription, client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openagents_site.webhooks.api.views.SENDS_PER_MINUTE", 1)
    answers = [client.post(f"{API}/{hook.pk}/test").status_code for _ in range(3)]

    assert answers.count(429) >= 1
    assert Event.objects.count() == answers.count(201)


def test_the_history_tells_who_switched_it(hook: Subscription, client: APIClient, owner: User) -> None:
    client.patch(f"{API}/{hook.pk}", {"enabled": False})

    newest = hook.history.order_by("-pgh_id").first()
    assert newest.disabled_reason == "owner"
    assert newest.pgh_context["user"] == str(owner.pk)
    shown = client.get(f"/api/v1/history?object=webhook:{hook.pk}").json()["results"]
    assert [(row["event"], row["actor"]["type"]) for row in shown] == [
        ("changed", "token"),
        ("created", "system"),
    ]
