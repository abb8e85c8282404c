"""Whoever is not its owner cannot tell a thing from one that was never there, by any address of the API."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
import responses
from django.urls import get_resolver

from accounts.models import User
from tests.security.belongings import belongings_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("repositories_apart")]
API = "/api/v1/"
METHODS = ("get", "post", "patch", "put", "delete")
STAFFS = {"leaks/<id:leak_id>/stop", "leaks/<id:leak_id>/adopt", "leaks/<id:leak_id>/dismiss"}
"""Leaks are nobody's: `test_what_is_for_staff_is_closed_to_owners`."""
WHOEVER_ASKS = {"pairings/<id:pairing_id>"}
"""A computer that asks to be paired is known by its secret: `tests/machines/test_pairing_api.py`."""
BODIES: dict[str, dict[str, Any]] = {
    "conversations/<id:conversation_id>/messages": {"content": "hello"},
    "boxes/<str:ref>/extend": {"seconds": 60},
    "boxes/<str:ref>/commands": {"command": "true"},
    "repositories/<id:repository_id>": {"visibility": "public"},
    "repositories/<id:repository_id>/members": {"user": "stranger", "role": "write"},
    "repositories/<id:repository_id>/machines": {"machine": str(uuid.UUID(int=0)), "operations": ["fetch"]},
    "repositories/<id:repository_id>/issues": {"title": "theirs now"},
    "repositories/<id:repository_id>/issues/<int:number>": {"state": "closed"},
    "repositories/<id:repository_id>/issues/<int:number>/comments": {"body": "theirs now"},
    "incidents/<id:incident_id>": {"status": "resolved"},
    "machines/<id:machine_id>": {"name": "theirs now"},
    "webhooks/<id:webhook_id>": {"enabled": False},
}
PART = re.compile(r"<\w+:(\w+)>")


def addresses() -> list[str]:
    """Every address of the API that names a thing."""
    patterns = [str(pattern.pattern) for pattern in get_resolver("openagents_site.api.urls").url_patterns]
    return [pattern for pattern in patterns if PART.search(pattern) and pattern not in STAFFS | WHOEVER_ASKS]


@pytest.fixture
def repositories_apart(settings: Any, tmp_path: Any) -> None:
    settings.FORGE = settings.FORGE | {"storage_root": str(tmp_path)}


@pytest.fixture
def theirs(owner: User) -> dict[str, Any]:
    return belongings_of(owner)


def answer(client: Any, method: str, address: str, ids: dict[str, Any]) -> tuple[int, str]:
    """What the address says of these things; bytes of ids struck out, for they differ."""
    asked = API + PART.sub(lambda part: str(ids[part[1]]), address)
    body = {} if method == "get" else BODIES.get(address, {})  # a GET's would be parameters
    given = getattr(client, method)(asked, body, format="json")
    told = b"".join(given.streaming_content) if given.streaming else given.content
    text = told.decode()
    for value in ids.values():
        text = text.replace(str(value), "ID")
    return given.status_code, text


def missing_like(ids: dict[str, Any]) -> dict[str, Any]:
    """Ids of the same kinds that name nothing."""
    return {
        name: uuid.uuid4()
        if isinstance(value, uuid.UUID)
        else 987_654
        if isinstance(value, int)
        else "bx_none"
        for name, value in ids.items()
    }


def told_apart(client: Any, address: str, theirs: dict[str, Any]) -> list[str]:
    """The methods by which the address tells others' things from none, or opens them."""
    nothing, wrong = missing_like(theirs), []
    for method in METHODS:
        of_theirs, of_nothing = (answer(client, method, address, ids) for ids in (theirs, nothing))
        staffs = of_theirs[0] == 403 and "staff" in of_theirs[1]
        if of_theirs != of_nothing or not (staffs or of_theirs[0] in {404, 405}):
            wrong.append(f"{method}: {of_theirs} and {of_nothing}")
    return wrong


@responses.activate  # nothing is registered: whoever asked the provider would fail
def test_every_address_answers_a_stranger_as_if_it_were_not_there(
    theirs: dict[str, Any], stranger: User, api_of: Any
) -> None:
    client = api_of(stranger)
    unknown = {name for address in addresses() for name in PART.findall(address)} - set(theirs)
    assert not unknown, "belongings_of must give an owner one of these too"

    wrong = {address: found for address in addresses() if (found := told_apart(client, address, theirs))}

    assert wrong == {}
    assert not responses.calls


LISTS = (
    "tokens",
    "conversations",
    "boxes",
    "fanouts",
    "runs",
    "repositories",
    "assignments",
    "jobs",
    "incidents",
    "machines",
    "webhooks",
)


@responses.activate
def test_every_list_is_looked_at(theirs: dict[str, Any], owner: User, api_of: Any) -> None:
    patterns = {str(pattern.pattern) for pattern in get_resolver("openagents_site.api.urls").url_patterns}
    answers = {address: api_of(owner).get(API + address) for address in patterns if not PART.search(address)}
    lists = {
        address
        for address, given in answers.items()
        if given.status_code == 200 and "results" in given.json()
    }

    assert lists == set(LISTS)


@pytest.mark.parametrize("address", LISTS)
def test_a_list_holds_nothing_of_others(
    address: str, theirs: dict[str, Any], owner: User, stranger: User, api_of: Any
) -> None:
    mine = api_of(owner).get(API + address).json()["results"]
    seen = api_of(stranger).get(f"{API}{address}").json()["results"]

    assert mine
    assert not {one["id"] for one in mine} & {one["id"] for one in seen}


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("boxes?conversation={}", "conversation_id"),
        ("runs?conversation={}", "conversation_id"),
        ("runs?box={}", "ref"),
        ("fanouts?conversation={}", "conversation_id"),
        ("jobs?conversation={}", "conversation_id"),
        ("assignments?repository={}", "repository_id"),
        ("usage?conversation={}", "conversation_id"),
        ("fleet?conversation={}", "conversation_id"),
        ("history?object=box:{}", "ref"),
        ("history?object=run:{}", "run_id"),
        ("history?object=job:{}", "job_id"),
        ("history?object=assignment:{}", "assignment_id"),
    ],
)
def test_a_filter_opens_nothing_of_others(
    address: str, name: str, theirs: dict[str, Any], stranger: User, api_of: Any
) -> None:
    client = api_of(stranger)

    told = [client.get(API + address.format(ids[name])) for ids in (theirs, missing_like(theirs))]

    texts = {
        given.content.decode().replace(str(theirs[name]), "ID").replace("bx_none", "ID") for given in told
    }
    assert len({given.status_code for given in told}) == 1
    assert len({re.sub(r"[0-9a-f-]{36}", "ID", text) for text in texts}) == 1


@responses.activate
@pytest.mark.parametrize(
    ("address", "body", "names"),
    [
        ("boxes", {}, {"conversation": "conversation_id"}),
        ("fanouts", {"count": 1}, {"conversation": "conversation_id"}),
        ("runs", {"command": "true", "idempotency_key": "once"}, {"box": "ref"}),
        ("jobs", {"goal": "look"}, {"conversation": "conversation_id"}),
        (
            "jobs",
            {"kind": "delegation", "agent_id": "claude", "prompt": "look", "cwd": "/home/mine"},
            {"machine": "machine_id"},
        ),
        (
            "assignments",
            {"issue_number": 1, "target_kind": "box", "command": "true"},
            {"repository": "repository_id", "box": "ref"},
        ),
    ],
)
def test_nothing_is_made_with_what_is_anothers(
    address: str,
    body: dict[str, Any],
    names: dict[str, str],
    theirs: dict[str, Any],
    stranger: User,
    api_of: Any,
) -> None:
    client, nothing = api_of(stranger), missing_like(theirs)

    told = [
        client.post(
            API + address, body | {field: str(ids[name]) for field, name in names.items()}, format="json"
        )
        for ids in (theirs, nothing)
    ]

    assert told[0].status_code == told[1].status_code == 404, told[0].content
    assert told[0].json()["error"]["code"] == told[1].json()["error"]["code"]
    assert not responses.calls


@pytest.mark.parametrize(
    "address",
    ["leaks", "leaks/{}/stop", "leaks/{}/adopt", "leaks/{}/dismiss", "reconcile", "boxes/{}/forget"],
)
def test_what_is_for_staff_is_closed_to_owners(address: str, owner: User, api_of: Any) -> None:
    asked = API + address.format(uuid.uuid4())
    client = api_of(owner)

    given = client.get(asked) if address == "leaks" else client.post(asked, {}, format="json")

    assert given.status_code == 403, given.content


@pytest.mark.parametrize("address", LISTS)
def test_everything_of_everybody_is_for_staff(
    address: str, theirs: dict[str, Any], stranger: User, api_of: Any
) -> None:
    given = api_of(stranger).get(f"{API}{address}?all=true")

    assert given.status_code in {403, 422} or not _ids(given) & {str(value) for value in theirs.values()}


def _ids(given: Any) -> set[str]:
    return {str(one["id"]) for one in given.json()["results"]}
