"""Pairing over HTTP: a computer that nobody knows asks, its owner approves, it fetches its token once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import RateWindow, User
from tests.conftest import ApiOf
from work.machines import expire_pairings, forget_pairings
from work.models import Machine, MachinePairing

pytestmark = pytest.mark.django_db
ASKED = {"name": "laptop", "tier": "curated", "platform": "linux-x86_64", "agent_version": "0.1.0", "roots": ["/srv"]}  # fmt: skip


def ask(**changes: Any) -> Any:
    return APIClient().post("/api/v1/pairings", ASKED | changes)


def look(started: dict[str, Any], secret: str | None = None) -> Any:
    secret = started["poll_secret"] if secret is None else secret
    return APIClient().get(f"/api/v1/pairings/{started['id']}", HTTP_X_PAIRING_SECRET=secret)


def approve(api_of: ApiOf, user: User, code: str) -> Any:
    return api_of(user).post("/api/v1/pairings/approve", {"code": code})


def code_of(answer: Any) -> str:
    return answer.json()["error"]["code"]


def test_it_pairs_a_computer_and_hands_its_token_over_once(owner: User, api_of: ApiOf) -> None:
    started = ask().json()
    assert look(started).json() == {"id": started["id"], "status": "pending"}

    approved = approve(api_of, owner, started["code"].lower().replace("-", " "))
    assert (approved.status_code, approved.json()["name"]) == (200, "laptop")

    claimed = look(started)
    assert (claimed.json()["status"], claimed.json()["token"][:5]) == ("approved", "smct_")
    assert claimed.json()["machine"]["id"] == approved.json()["id"]
    assert (look(started).status_code, code_of(look(started))) == (404, "pairing_consumed")


def test_no_answer_of_pairing_may_be_kept_on_the_way(owner: User, api_of: ApiOf) -> None:
    answers = [ask(), ask()]
    answers += [look(answers[0].json()), approve(api_of, owner, answers[0].json()["code"])]

    assert {answer["Cache-Control"] for answer in answers} == {"no-store"}


def test_another_secret_and_another_pairing_look_the_same(owner: User) -> None:
    started = ask().json()

    wrong = [look(started, "other"), look(started, ""), look(started | {"id": "00000000-0000-0000-0000-000000000000"})]  # fmt: skip

    assert {(answer.status_code, code_of(answer)) for answer in wrong} == {(404, "pairing_not_found")}


def test_what_was_not_claimed_in_time_is_gone_and_its_machine_revoked(owner: User, api_of: ApiOf) -> None:
    started = ask().json()
    approve(api_of, owner, started["code"])
    long_ago = timezone.now() - timedelta(hours=1)
    replacement = MachinePairing.objects.get()
    MachinePairing.objects.filter(pk=replacement.pk).update(status="expired", sealed_token=None)
    expire_pairings()

    answer = look(started)

    assert (answer.status_code, code_of(answer)) == (410, "pairing_expired")
    assert Machine.objects.get().status == "revoked"
    assert Machine.objects.get().revoked_at > long_ago


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"tier": "root"}, "tier"),
        ({"roots": "/srv"}, "roots"),
        ({"roots": ["a\0b"]}, "roots"),
        ({"platform": 5}, "platform"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_description_is_named(wrong: dict[str, Any], field: str) -> None:
    answer = ask(**wrong)

    assert (answer.status_code, code_of(answer)) == (422, "invalid_pairing")
    assert list(answer.json()["error"]["fields"]) == [field]


@pytest.mark.parametrize("body", [[], "text", 5])
def test_a_body_that_is_no_map_is_refused(body: Any) -> None:
    answer = APIClient().post("/api/v1/pairings", body, format="json")

    assert (answer.status_code, code_of(answer)) == (422, "invalid_pairing")


def test_one_address_asks_ten_times_a_minute(settings: Any) -> None:
    answers = [ask().status_code for _ in range(11)]

    assert answers == [200] * 10 + [429]
    assert ask()["Retry-After"].isdigit()
    assert MachinePairing.objects.count() == 10


def test_all_addresses_together_have_a_limit_too(settings: Any) -> None:
    settings.MACHINES = {"pairing_starts_per_minute_global": 3, "client_address_header": "X-Real-IP"}

    answers = [
        APIClient().post("/api/v1/pairings", ASKED, HTTP_X_REAL_IP=f"10.0.0.{n}").status_code
        for n in range(4)
    ]

    assert answers == [200, 200, 200, 429]


def test_the_header_of_a_client_counts_only_where_a_proxy_is_trusted(settings: Any) -> None:
    settings.MACHINES = {"pairing_starts_per_minute": 1}

    answers = [
        APIClient().post("/api/v1/pairings", ASKED, HTTP_X_REAL_IP=f"10.0.0.{n}").status_code
        for n in range(2)
    ]

    assert answers == [200, 429]


def test_codes_cannot_be_guessed_at_will_and_a_right_one_does_not_get_through_then(
    owner: User, stranger: User, api_of: ApiOf
) -> None:
    started = ask().json()
    tried = [approve(api_of, stranger, "ABCD-EFGH").status_code for _ in range(20)]

    late = approve(api_of, stranger, started["code"])

    assert (set(tried), late.status_code, code_of(late)) == ({404}, 429, "rate_limited")
    assert approve(api_of, owner, started["code"]).status_code == 200
    assert RateWindow.objects.filter(operation="pairing_code", principal="everybody").exists()


def test_approving_needs_the_scope_and_a_caller(owner: User, api_of: ApiOf) -> None:
    started = ask().json()

    for client, status in ((APIClient(), 401), (api_of(owner, "read", "work:control"), 403)):
        answer = client.post("/api/v1/pairings/approve", {"code": started["code"]})
        assert answer.status_code == status

    assert not Machine.objects.exists()


@pytest.mark.parametrize("body", [{}, {"code": 5}, {"code": None}, {"code": "AAAA-BBBB", "more": 1}, []])
def test_a_bad_approval_is_refused(owner: User, api_of: ApiOf, body: Any) -> None:
    answer = api_of(owner).post("/api/v1/pairings/approve", body, format="json")

    assert (answer.status_code, code_of(answer)) == (422, "invalid_pairing")


def test_switched_off_nothing_is_paired(owner: User, api_of: ApiOf, settings: Any) -> None:
    settings.MACHINES = {"enabled": False}

    for answer in (ask(), approve(api_of, owner, "AAAA-BBBB")):
        assert (answer.status_code, code_of(answer)) == (403, "computer_controller_disabled")


def test_what_came_to_nothing_is_forgotten_after_a_day(owner: User, api_of: ApiOf) -> None:
    approve(api_of, owner, ask().json()["code"])
    old = timezone.now() - timedelta(days=1, minutes=1)
    for number in range(2):
        MachinePairing.objects.create(
            code_digest=bytes([number]) * 32, poll_secret_digest=b"x" * 32, name="old", tier="probe",
            status=["expired", "pending"][number], created_at=old - timedelta(minutes=1), expires_at=old,
        )  # fmt: skip

    assert forget_pairings() == 1

    assert sorted(MachinePairing.objects.values_list("name", "status")) == [
        ("laptop", "approved"),
        ("old", "pending"),
    ]
