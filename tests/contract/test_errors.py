"""Every family of errors is provoked, with a secret where it could come from; the answer tells nothing of what is behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import InterfaceError, OperationalError
from rest_framework.test import APIClient

from accounts.models import User
from base import pump
from base.api.errors import LONGEST_TOLD
from boxes.provisioning import ProvisioningDriver
from tests.fakes.fixtures import fake, provider
from tests.fakes.provider import FakeProvider

__all__ = ["fake", "provider"]

pytestmark = pytest.mark.django_db
API = "/api/v1"
ApiOf = Callable[..., APIClient]
SECRET = "sk-live-0123456789abcdef0123456789"
PROVIDERS_TEXT = f"upstream says: token {SECRET} at postgres://root:hunter2@db.internal/boxes"
BEHIND = re.compile(
    r"Traceback|File \"|site-packages|psycopg|django|SELECT|INSERT|UPDATE|relation|sk-live|hunter2|upstream|db\.internal"
    r"|box-tests|ZeroDivision|127\.0\.0\.1:\d+|box-api\.internal"
)


def refused(response: Any, status: int, code: str) -> None:
    """The answer is this error in the one shape, and neither its body nor a header tells more."""
    told = response.content.decode() + json.dumps(dict(response.headers))
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), told
    assert set(response.json()["error"]) <= {"code", "detail", "fields"}
    assert not BEHIND.search(told), told


@pytest.fixture
def client(owner: User, api_of: ApiOf) -> APIClient:
    made = api_of(owner)
    made.raise_request_exception = False
    return made


@pytest.fixture
def box(client: APIClient, provider: FakeProvider) -> str:
    made = client.post(f"{API}/boxes", {}).json()
    pump.run_once([ProvisioningDriver()])
    return str(made["id"])


FAMILIES = [
    ("GET", "/nothing", None, 404, "not_found"),
    ("GET", f"/runs/{uuid4()}", None, 404, "box_run_not_found"),
    ("GET", f"/jobs/{uuid4()}", None, 404, "work_job_not_found"),
    ("GET", f"/repositories/{uuid4()}", None, 404, "repository_not_found"),
    ("GET", f"/machines/{uuid4()}", None, 404, "machine_not_found"),
    ("GET", "/boxes?cursor=x'%20or%201=1--", None, 422, "invalid_cursor"),
    ("GET", "/boxes?label=%00", None, 422, "invalid_request"),
    ("GET", "/boxes?created_after=x'%20or%201=1--", None, 422, "invalid_request"),
    ("GET", "/runs?page_size=99999999999999999999999", None, 422, "invalid_request"),
    ("PUT", "/boxes", {}, 405, "method_not_allowed"),
    ("POST", "/tokens", {"nmae": SECRET}, 422, "invalid_request"),
    ("POST", "/runs", {"box": "x' or 1=1--", "command": "ls", "idempotency_key": "k"}, 404, "box_not_found"),
    ("POST", "/runs", {"box": "b\0x", "command": "ls", "idempotency_key": "k"}, 422, "invalid_request"),
    ("POST", "/jobs", {"goal": "x" * 9000}, 422, "invalid_work_job"),
    ("POST", "/pairings/approve", {"code": "AAAA-AAAA"}, 404, "pairing_not_found"),
    ("POST", f"/leaks/{uuid4()}/stop", {}, 403, "staff_only"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    FAMILIES,
    ids=[f"{each[4]}-{n}" for n, each in enumerate(FAMILIES)],
)
def test_a_refusal_tells_nothing(
    client: APIClient, method: str, path: str, body: Any, status: int, code: str
) -> None:
    refused(client.generic(method, API + path, json.dumps(body or {}), "application/json"), status, code)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (rb'{"goal": "g", "surface": "\ud800"}', "surface"),
        (b'{"goal": "g", "surface": "' + b"s" * 100_000 + b'"}', "surface"),
        (rb'{"\udfff": 1}', "?"),
        (b'{"' + b"n" * 100_000 + b'": 1}', "n" * (LONGEST_TOLD - 1) + "…"),
    ],
    ids=["no character", "long", "name of no character", "long name"],
)
def test_what_is_repeated_of_a_body_is_short_and_can_be_sent(
    client: APIClient, content: bytes, field: str
) -> None:
    answer = client.generic("POST", f"{API}/jobs", content, "application/json")

    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, [field])
    assert len(answer.content) < 5 * LONGEST_TOLD


@pytest.mark.parametrize("header", ["Bearer oa_pat_" + "0" * 64, f"Bearer {SECRET}", "Bearer \xff"])
def test_a_token_that_is_none_is_not_repeated(header: str) -> None:
    refused(APIClient().get(f"{API}/me", headers={"Authorization": header}), 401, "invalid_api_token")


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b'{"name": "\xff"}', "application/json", 400, "invalid_json"),
        (b"<a/>", "application/xml", 415, "unsupported_media_type"),
        (b'{"name": "' + b"x" * (3 << 20) + b'"}', "application/json", 413, "body_too_large"),
    ],
)
def test_a_body_that_cannot_be_read_is_not_repeated(
    client: APIClient, content: bytes, kind: str, status: int, code: str
) -> None:
    refused(client.generic("POST", f"{API}/tokens", content, kind), status, code)


@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (401, 502, "box_provider_unauthorized"),
        (402, 402, "box_billing_required"),
        (404, 404, "box_not_found"),
        (422, 502, "box_provider_request_refused"),
        (429, 429, "box_provider_rate_limited"),
    ],
)
def test_what_the_provider_says_of_a_create_stays_behind(
    client: APIClient, provider: FakeProvider, status: int, shown: int, code: str
) -> None:
    provider.next(
        "create", status=status, json={"code": SECRET, "message": PROVIDERS_TEXT, "error": PROVIDERS_TEXT}
    )

    refused(client.post(f"{API}/boxes", {}), shown, code)


@pytest.mark.parametrize(
    ("what", "shown", "code"),
    [
        ({"status": 500, "json": {"message": PROVIDERS_TEXT}}, 502, "box_provider_request_refused"),
        ({"html": True}, 502, "box_provider_response_invalid"),
        ({"drop_before": True}, 503, "box_unreachable"),
    ],
)
def test_what_the_provider_says_of_a_command_stays_behind(
    client: APIClient, provider: FakeProvider, box: str, what: dict[str, Any], shown: int, code: str
) -> None:
    provider.always("command", **what)

    refused(client.post(f"{API}/boxes/{box}/commands", {"command": "true"}), shown, code)
    provider.heal()


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_a_database_that_is_away_is_503_without_its_words(
    client: APIClient, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def away(*_: object) -> None:
        raise kind(f'connection to server at "db.internal" failed: password "{SECRET}" for user "root"')

    monkeypatch.setattr("runs.api.runs_of", away)

    answer = client.get(f"{API}/runs/{uuid4()}")

    refused(answer, 503, "temporarily_unavailable")
    assert answer["Retry-After"] == "2"


@pytest.mark.parametrize("error", [ZeroDivisionError(SECRET), ValueError(PROVIDERS_TEXT), KeyError(SECRET)])
def test_what_nobody_expected_is_500_without_a_word(
    client: APIClient, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("runs.api.runs_of", broken)

    refused(client.get(f"{API}/runs/{uuid4()}"), 500, "internal_error")


def test_a_rate_limit_says_when_to_come_again(client: APIClient, provider: FakeProvider) -> None:
    answers = [client.post(f"{API}/boxes", {"label": ""}) for _ in range(11)]

    refused(answers[-1], 429, "box_api_rate_limited")
    assert 1 <= int(answers[-1]["Retry-After"]) <= 60
