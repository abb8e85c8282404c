"""What every address of the API keeps: who may call, one shape of errors, strict bodies, cursor pages."""

from __future__ import annotations

import json
import re

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from rest_framework.test import APIClient

from accounts.services import create_token
from conversations.services import add_user_message, ensure_conversation

pytestmark = pytest.mark.django_db
API = "/api/v1"
FOR_EVERYBODY = {"pairings", "pairings/<id:pairing_id>"}
"""A computer that asks to be paired has no token yet."""


def error_of(response) -> str:
    body = response.json()
    assert set(body) == {"error"}
    assert {"code", "detail"} <= set(body["error"]) <= {"code", "detail", "fields"}
    return body["error"]["code"]


def addresses() -> list[str]:
    patterns = get_resolver("openagents_site.api.urls").url_patterns
    named = [str(pattern.pattern) for pattern in patterns if pattern.name not in {"missing", "index"}]
    assert set(named) >= FOR_EVERYBODY
    named = [address for address in named if address not in FOR_EVERYBODY]
    some = "00000000-0000-0000-0000-000000000000"
    return [
        f"{API}/"
        + re.sub(r"<id:\w+>", some, re.sub(r"<str:\w+>", "none", re.sub(r"<int:\w+>", "1", address)))
        for address in named
    ]


@pytest.mark.parametrize(
    "header", [None, "Bearer oa_pat_wrong", "Bearer", "Bearer a b", "Basic eDp5", "oa_pat_x"]
)
def test_no_address_answers_a_caller_without_a_good_token(header):
    client = APIClient()
    if header:
        client.credentials(HTTP_AUTHORIZATION=header)

    for address in addresses():
        for method in (client.get, client.post, client.delete):
            response = method(address)
            assert response.status_code in {401, 405}, address
            assert error_of(response) in {"invalid_api_token", "method_not_allowed"}, address


def test_a_token_that_may_only_read_changes_nothing(owner, api_of):
    client = api_of(owner, "read")

    for address in ("/boxes", "/boxes/none/stop", "/boxes/none/extend", "/boxes/none/commands", "/runs"):
        response = client.post(f"{API}{address}", {})
        assert (response.status_code, error_of(response)) == (403, "insufficient_scope"), address


def test_a_scope_does_not_contain_another(owner, api_of):
    assert error_of(api_of(owner, "box:control").get(f"{API}/boxes")) == "insufficient_scope"
    assert api_of(owner, "box:control", "read").get(f"{API}/boxes").status_code == 200


def test_a_signed_in_session_needs_the_csrf_token_to_change_something(owner):
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)

    assert client.get(f"{API}/me").status_code == 200
    response = client.post(f"{API}/conversations")
    assert (response.status_code, error_of(response)) == (403, "forbidden")


@pytest.mark.parametrize("address", ["/nothing", "/boxes/", "/runs/not-a-uuid", "/boxes/a/b/c"])
def test_what_is_not_there_is_a_404_of_the_same_shape(owner, api_of, address):
    for client in (api_of(owner), APIClient(enforce_csrf_checks=True)):
        for method in (client.get, client.post, client.delete):
            response = method(f"{API}{address}")
            assert (response.status_code, error_of(response)) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "invalid_json"),
        ('{"name": NaN}', 400, "invalid_json"),
        (b"\xff\xfe", 400, "invalid_json"),
        ("[]", 422, "invalid_request"),
        ('"text"', 422, "invalid_request"),
        ('{"nmae": "x"}', 422, "invalid_request"),
        ('{"name": "a\\u0000b"}', 422, "invalid_request"),
        ('{"scopes": ["root"]}', 422, "invalid_request"),
        ('{"scopes": "read"}', 422, "invalid_request"),
        ('{"expires_in_days": 0}', 422, "invalid_request"),
        ('{"expires_in_days": 1e400}', 422, "invalid_request"),
        ('{"name": ' + "[" * 50 + "]" * 50 + "}", 422, "invalid_request"),
        ('{"name": ' + "[" * 90_000 + "]" * 90_000 + "}", 400, "invalid_json"),
    ],
)
def test_a_bad_body_is_named_and_changes_nothing(owner, api_of, body, status, code):
    response = api_of(owner).post(f"{API}/tokens", data=body, content_type="application/json")

    assert (response.status_code, error_of(response)) == (status, code)
    assert owner.auth_token_set.count() == 1


def test_only_json_is_taken(owner, api_of):
    response = api_of(owner).post(
        f"{API}/tokens", data="a=b", content_type="application/x-www-form-urlencoded"
    )

    assert (response.status_code, error_of(response)) == (415, "unsupported_media_type")


def test_an_unexpected_error_tells_nothing(owner, api_of, monkeypatch):
    monkeypatch.setattr("openagents_site.api.me.box_api", lambda: 1 // 0)
    client = api_of(owner)
    client.raise_request_exception = False

    response = client.get(f"{API}/me")

    assert (response.status_code, error_of(response)) == (500, "internal_error")
    assert "ZeroDivision" not in response.content.decode()


def test_pages_are_newest_first_and_never_repeat_or_skip(owner, api_of):
    conversation = ensure_conversation(owner)
    for n in range(7):
        add_user_message(conversation, f"message {n}")
    client, address, seen = api_of(owner), f"{API}/conversations/{conversation.id}/messages?page_size=3", []
    while address:
        page = client.get(address).json()
        assert set(page) == {"results", "next", "previous"}
        seen += [message["content"] for message in page["results"]]
        address = page["next"]

    assert seen == [f"message {n}" for n in reversed(range(7))]


@pytest.mark.parametrize("cursor", ["!!", "cD0y", "cD1ub3doZXJl"])  # the last two say p=2 and p=nowhere
def test_a_cursor_that_is_not_ours_is_refused(owner, api_of, cursor):
    answer = api_of(owner).get(f"{API}/boxes?cursor={cursor}")

    assert (answer.status_code, error_of(answer)) == (422, "invalid_cursor")


def test_the_page_size_has_a_ceiling(owner, api_of):
    conversation = ensure_conversation(owner)
    for n in range(3):
        add_user_message(conversation, str(n))
    client = api_of(owner)

    for size, shown in (("2", 2), ("100000", 3)):
        page = client.get(f"{API}/conversations/{conversation.id}/messages?page_size={size}").json()
        assert len(page["results"]) == shown


@pytest.mark.parametrize("size", ["0", "-1", "x", "1e3", "9" * 30, ""])
def test_a_page_size_that_is_none_is_refused(owner, api_of, size):
    answer = api_of(owner).get(f"{API}/boxes?page_size={size}")

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")
    assert "page_size" in answer.json()["error"]["fields"]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00", "soon"])
@pytest.mark.parametrize("address", ["/boxes", "/runs", "/jobs", "/incidents", "/machines", "/usage"])
def test_a_time_that_no_calendar_has_is_refused(owner, api_of, address, moment):
    answer = api_of(owner).get(f"{API}{address}", {"created_after": moment})

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")


@pytest.mark.parametrize(
    "address",
    [
        "/runs?box=",
        "/boxes?label=",
        "/fleet?conversation=",
        "/usage?created_after=",
        "/usage?group=",
        "/boxes?active=yes",
    ],
)
def test_an_empty_filter_is_refused_and_does_not_list_everything(owner, api_of, address):
    answer = api_of(owner).get(f"{API}{address}")

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("/boxes?labels=web", "labels"),
        ("/runs?box_id=box_1&state=failed", "box_id"),
        ("/webhooks?state=on", "state"),
        ("/tokens?all=true", "all"),
        ("/usage?groups=day", "groups"),
        ("/history?object=run:1&state=x", "state"),
        ("/runs?state=failed&state=lost", "state"),
        ("/boxes?all=yes", "all"),
        ("/boxes/mine?wiat=5", "wiat"),
    ],
)
def test_a_parameter_that_a_call_does_not_take_is_refused_by_name(owner, api_of, address, named):
    answer = api_of(owner).get(f"{API}{address}")

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")
    assert list(answer.json()["error"]["fields"]) == [named]


def test_no_address_takes_a_parameter_that_it_does_not_know(staff, api_of):
    client = api_of(staff)

    for address in addresses():
        answers = [ask(f"{address}?odd=1") for ask in (client.get, client.post, client.patch, client.delete)]
        assert {answer.status_code for answer in answers} <= {405, 422}, address


def test_a_parameter_that_a_change_does_not_take_is_refused_and_nothing_is_made(owner, api_of):
    answer = api_of(owner).post(f"{API}/tokens?name=x", {"name": "y", "scopes": ["read"]})

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")
    names = {token["name"] for token in api_of(owner).get(f"{API}/tokens").json()["results"]}
    assert "y" not in names


def test_a_time_of_a_far_zone_is_taken(owner, api_of):
    answer = api_of(owner).get(f"{API}/boxes", {"created_after": "0110-11-11T09:19:55+21:18"})

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("address", "body", "field"),
    [
        ("/tokens", {"name": 1}, "name"),
        ("/tokens", {"scopes": [1]}, "scopes"),
        ("/tokens", {"expires_in_days": "7"}, "expires_in_days"),
        ("/boxes", {"budgeted": "yes"}, "budgeted"),
        ("/boxes", {"wait": True}, "wait"),
        ("/boxes", {"conversation": 7}, "conversation"),
        ("/fanouts", {"count": 1.5}, "count"),
        ("/runs", {"box": "box-1", "command": ["ls"]}, "command"),
        ("/jobs", {"goal": "x", "surface": 1}, "surface"),
    ],
)
def test_a_value_of_another_type_is_refused(owner, api_of, address, body, field):
    answer = api_of(owner).post(f"{API}{address}", body)

    assert (answer.status_code, error_of(answer)) == (422, "invalid_request")
    assert list(answer.json()["error"]["fields"]) == [field]


def test_an_id_is_taken_in_either_case_and_without_its_dashes(owner, api_of):
    client, conversation = api_of(owner), ensure_conversation(owner)

    for form in (str(conversation.id), str(conversation.id).upper(), conversation.id.hex):
        assert client.get(f"{API}/conversations/{form}").json()["id"] == str(conversation.id)
        assert client.get(f"{API}/fleet?conversation={form}").json()["conversation"] == str(conversation.id)
        assert client.get(f"{API}/boxes?conversation={form}").status_code == 200


def test_the_index_says_where_everything_is_and_asks_for_nothing(client):
    found = client.get(f"{API}/").json()

    assert (found["name"], found["version"]) == ("OpenAgents Boxes", "1")
    for name in ("schema", "docs", "sign_in"):
        assert client.get(found[name].removeprefix("http://testserver")).status_code == 200
    assert error_of(client.post(f"{API}/")) == "method_not_allowed"


def test_me_says_who_calls_and_under_which_limits(owner, api_of):
    answer = api_of(owner, "read").get(f"{API}/me").json()

    assert answer["user"]["slug"] == "owner"
    assert answer["scopes"] == ["read"]
    assert answer["conversation"] == str(ensure_conversation(owner).id)
    assert answer["limits"]["ttl_seconds"] == 3600


def test_a_token_is_shown_once_and_gives_no_more_than_it_has(owner, api_of):
    client = api_of(owner, "read", "box:control")

    made = client.post(f"{API}/tokens", {"name": "ci", "scopes": ["box:control"], "expires_in_days": 7})
    beyond = client.post(f"{API}/tokens", {"scopes": ["forge:write"]})

    assert made.status_code == 201
    assert made.json()["token"].startswith("oa_pat_")
    assert "token" not in client.get(f"{API}/tokens").json()["results"][0]
    assert (beyond.status_code, error_of(beyond)) == (403, "insufficient_scope")


def test_a_stranger_cannot_revoke_a_token(owner, stranger, api_of):
    token = api_of(owner).post(f"{API}/tokens", {"name": "ci"}).json()

    assert api_of(stranger).delete(f"{API}/tokens/{token['id']}").status_code == 404
    assert api_of(owner).delete(f"{API}/tokens/{token['id']}").status_code == 204


def test_the_openapi_description_is_valid_and_names_the_scope_of_each_call(tmp_path):
    target = tmp_path / "openapi.json"

    call_command(
        "spectacular", "--file", str(target), "--format", "openapi-json", "--validate", "--fail-on-warn"
    )

    document = json.loads(target.read_text())
    assert document["openapi"].startswith("3.1")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            who = "Without a token." if operation["security"] == [{}] else "Scope: `"
            assert who in operation["description"], f"{method} {path}"


def test_a_token_ends_itself_and_none_that_may_do_more(owner, api_of):
    reader, _ = create_token(owner, scopes=["read"])
    writer, _ = create_token(owner, scopes=["read", "box:control"])
    client = api_of(owner, "read")

    refused = client.delete(f"{API}/tokens/{writer.id}")

    assert (refused.status_code, error_of(refused)) == (403, "insufficient_scope")
    assert client.delete(f"{API}/tokens/{reader.id}").status_code == 204
    writer.refresh_from_db()
    assert writer.revoked_at is None
