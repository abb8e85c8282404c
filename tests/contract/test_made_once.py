"""Idempotency keys and rate limits over HTTP, by every route that makes something."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from accounts.models import IdempotencyKey, RateWindow, User
from base import pump
from boxes.provisioning import ProvisioningDriver
from conversations.services import ensure_conversation
from forge.services import create_issue, create_repository
from tests.fakes.fixtures import fake, provider
from tests.fakes.provider import FakeProvider
from tests.forge.machines import paired_machine

__all__ = ["fake", "provider"]

pytestmark = pytest.mark.django_db
API = "/api/v1"


@dataclass
class Places:
    """What the routes are about."""

    owner: User
    client: APIClient
    box: str
    conversation: str
    repository: str
    machine: str


@pytest.fixture
def places(
    owner: User,
    stranger: User,
    api_of: Callable[..., APIClient],
    provider: FakeProvider,
    settings: Any,
    tmp_path: Any,
) -> Places:
    settings.FORGE = {"storage_root": str(tmp_path / "git")}
    client = api_of(owner)
    box = client.post(f"{API}/boxes", {}).json()["id"]
    pump.run_once([ProvisioningDriver()])
    repository = create_repository(owner, name="project")
    create_issue(repository, title="one", author=owner)
    machine, _ = paired_machine(owner)
    RateWindow.objects.all().delete()
    return Places(owner, client, box, str(ensure_conversation(owner).id), str(repository.pk), str(machine.pk))


MAKES: dict[str, Callable[[Places], tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "tokens": lambda it: ("/tokens", {"name": "ci"}, {"name": "other"}),
    "messages": lambda it: (f"/conversations/{it.conversation}/messages", {"content": "a"}, {"content": "b"}),
    "boxes": lambda it: ("/boxes", {"label": "a"}, {"label": "b"}),
    "fanouts": lambda it: ("/fanouts", {"count": 1}, {"count": 2}),
    "runs": lambda it: ("/runs", {"box": it.box, "command": "true"}, {"box": it.box, "command": "false"}),
    "repositories": lambda it: ("/repositories", {"name": "a"}, {"name": "b"}),
    "issues": lambda it: (f"/repositories/{it.repository}/issues", {"title": "a"}, {"title": "b"}),
    "comments": lambda it: (f"/repositories/{it.repository}/issues/1/comments", {"body": "a"}, {"body": "b"}),
    "members": lambda it: (
        f"/repositories/{it.repository}/members", {"user": "stranger", "role": "viewer"},
        {"user": "stranger", "role": "maintainer"},
    ),
    "machines": lambda it: (
        f"/repositories/{it.repository}/machines", {"machine": it.machine, "operations": ["read"]},
        {"machine": it.machine, "operations": ["write"]},
    ),
    "assignments": lambda it: (
        "/assignments", {"repository": it.repository, "issue_number": 1, "box": it.box, "command": "true"},
        {"repository": it.repository, "issue_number": 1, "box": it.box, "command": "false"},
    ),
    "webhooks": lambda it: (
        "/webhooks", {"url": "https://hooks.example.org/a"}, {"url": "https://hooks.example.org/b"}
    ),
    "jobs": lambda it: ("/jobs", {"goal": "a"}, {"goal": "b"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKES)
def test_the_same_key_gets_the_first_answer_and_another_body_a_conflict(places: Places, name: str) -> None:
    path, body, other = MAKES[name](places)
    keyed = {"headers": {"Idempotency-Key": "once"}}

    first = places.client.post(API + path, body, **keyed)
    again = places.client.post(API + path, body, **keyed)
    conflict = places.client.post(API + path, other, **keyed)

    assert first.status_code in {201, 202}, first.content
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert conflict.status_code == 409
    assert conflict.json()["error"]["code"].endswith("idempotency_conflict")


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("key", ["", "x" * 257, "é" * 200])
def test_a_key_that_is_none_is_refused_and_nothing_is_made(places: Places, name: str, key: str) -> None:
    path, body, _ = MAKES[name](places)

    refused = places.client.post(API + path, body, HTTP_IDEMPOTENCY_KEY=key)

    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_idempotency_key")


def test_the_answer_that_is_kept_of_a_token_does_not_show_it(places: Places) -> None:
    made = places.client.post(f"{API}/tokens", {"name": "ci"}, headers={"Idempotency-Key": "once"}).json()

    [kept] = IdempotencyKey.objects.filter(route="POST /tokens").values_list("answer", flat=True)
    assert made["token"].startswith("oa_pat_")
    assert made["token"] not in str(kept)


LIMITS = {"boxes": 10, "fanouts": 10, "runs": 10, "assignments": 10, "jobs": 10, "messages": 50}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_counted_in_the_database_for_all_processes(places: Places, name: str) -> None:
    path, body, _ = MAKES[name](places)
    places.client.post(API + path, body, headers={"Idempotency-Key": "first"})
    assert RateWindow.objects.update(count=LIMITS[name]) == 1  # as if other processes had taken the rest

    over = places.client.post(API + path, body, headers={"Idempotency-Key": "second"})

    assert over.status_code == 429, over.content
    assert over.json()["error"]["code"] in {"box_api_rate_limited", "rate_limited"}
    assert int(over["Retry-After"]) >= 1


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_with_one_key_one_makes_it(owner: User, api_of: Callable[..., APIClient]) -> None:
    clients, answers = [api_of(owner) for _ in range(8)], []
    start = threading.Barrier(len(clients))

    def ask(client: APIClient) -> None:
        start.wait()
        answers.append(client.post(f"{API}/tokens", {"name": "ci"}, headers={"Idempotency-Key": "once"}))
        connection.close()

    threads = [threading.Thread(target=ask, args=[client]) for client in clients]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert owner.auth_token_set.filter(name="ci").count() == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["token"] for answer in answers if answer.status_code == 201}) == 1
