"""The forge over HTTP: what each address takes and answers, and what it keeps from whom."""

from __future__ import annotations

import uuid

import pytest

from base.clock import database_now
from forge.models import Assignment, Repository
from forge.receipts import append
from forge.services import create_comment, create_issue, set_member, update_repository
from tests.forge.machines import paired_machine
from tests.forge.over_http import API, address, code_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


@pytest.fixture
def client(api_of, owner):
    return api_of(owner)


def test_a_repository_is_made_ready_and_says_where_it_is(client, owner):
    made = client.post(
        f"{API}/repositories", {"name": "tool", "description": "a tool", "protected_branches": ["stable"]}
    )

    assert made.status_code == 201
    body = made.json()
    assert (body["owner"], body["name"], body["visibility"]) == ("owner", "tool", "private")
    assert (body["lifecycle_state"], body["default_branch"], body["protected_branches"]) == (
        "ready",
        "main",
        ["stable"],
    )
    assert body["clone_url"] == "http://testserver/owner/tool.git"
    assert client.get(f"{API}/repositories/{body['id']}").json() == body
    assert client.get(f"{API}/repositories").json()["results"] == [body]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"), ({"name": "Bad Name"}, "invalid_repository_name"), ({"name": "x", "visibility": "open"}, "invalid_request"),
        ({"name": "x", "default_branch": "a..b"}, "invalid_request"), ({"name": "x", "colour": "red"}, "invalid_request"),
        ({"name": "x", "description": "d" * 351}, "invalid_request"), ({"name": "x", "protected_branches": ["-x"]}, "invalid_request"),
    ],
    ids=str,
)  # fmt: skip
def test_a_repository_that_cannot_be_is_refused(client, body, code):
    answer = client.post(f"{API}/repositories", body)

    assert (answer.status_code, code_of(answer)) == (422, code)
    assert not Repository.objects.exists()


def test_a_name_is_taken_once_for_each_owner(client, api_of, stranger, repository):
    assert code_of(client.post(f"{API}/repositories", {"name": "project"})) == "repository_taken"
    assert api_of(stranger).post(f"{API}/repositories", {"name": "project"}).status_code == 201


@pytest.mark.parametrize("path", ["repositories", "issues"])
def test_the_same_key_gets_the_same_answer(client, repository, path):
    where = f"{API}/repositories" if path == "repositories" else address(repository, "issues")
    body, key = (
        {"name": "keyed"} if path == "repositories" else {"title": "keyed"},
        {"HTTP_IDEMPOTENCY_KEY": "k"},
    )

    first, again = client.post(where, body, **key), client.post(where, body, **key)
    other = client.post(where, {next(iter(body)): "another"}, **key)

    assert first.json() == again.json()
    assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")


def test_its_keepers_change_it(client, api_of, stranger, repository):
    changed = client.patch(address(repository), {"visibility": "public", "default_branch": "trunk"})

    assert (changed.json()["visibility"], changed.json()["default_branch"]) == ("public", "trunk")
    for role, status in (("contributor", 403), ("maintainer", 200)):
        set_member(repository, stranger, role)
        answer = api_of(stranger).patch(address(repository), {"description": role})
        assert answer.status_code == status
    assert code_of(client.patch(address(repository), {"name": "other"})) == "invalid_request"


def test_members_are_given_roles_and_lose_them(client, repository, stranger):
    where = address(repository, "members")
    assert client.post(where, {"user": "stranger", "role": "viewer"}).json()["role"] == "viewer"
    assert client.post(where, {"user": "stranger", "role": "maintainer"}).json()["role"] == "maintainer"
    assert [one["user"] for one in client.get(where).json()["results"]] == ["stranger", "owner"]

    assert client.delete(f"{where}/stranger").status_code == 204

    assert code_of(client.delete(f"{where}/stranger")) == "member_not_found"
    assert code_of(client.delete(f"{where}/owner")) == "repository_needs_an_owner"
    assert code_of(client.post(where, {"user": "owner", "role": "viewer"})) == "repository_needs_an_owner"
    assert code_of(client.post(where, {"user": "nobody", "role": "viewer"})) == "member_not_found"
    assert code_of(client.post(where, {"user": "stranger", "role": "king"})) == "invalid_request"


def test_a_maintainer_makes_no_owner(api_of, repository, stranger, owner):
    set_member(repository, stranger, "maintainer")
    client = api_of(stranger)

    for body in ({"user": "stranger", "role": "owner"}, {"user": "owner", "role": "viewer"}):
        assert code_of(client.post(address(repository, "members"), body)) == "repository_not_yours_to_change"
    assert code_of(client.delete(address(repository, "members/owner"))) == "repository_not_yours_to_change"


def test_computers_are_granted_and_lose_it(client, repository, owner, stranger):
    machine, _ = paired_machine(owner)
    theirs, _ = paired_machine(stranger)
    where = address(repository, "machines")

    made = client.post(where, {"machine": str(machine.pk), "operations": ["write", "read"]})

    assert made.json()["operations"] == ["read", "write"]
    assert client.get(where).json()["results"][0]["machine"] == str(machine.pk)
    assert (
        code_of(client.post(where, {"machine": str(theirs.pk), "operations": ["read"]}))
        == "machine_not_found"
    )
    assert (
        code_of(client.post(where, {"machine": str(machine.pk), "operations": ["own"]})) == "invalid_request"
    )
    assert client.delete(f"{where}/{machine.pk}").status_code == 204
    assert code_of(client.delete(f"{where}/{machine.pk}")) == "machine_not_found"


def test_an_issue_lives(client, repository):
    where = address(repository, "issues")
    made = client.post(where, {"title": " Mend it ", "body": "please", "labels": ["bug", "bug "]}).json()
    assert (made["number"], made["title"], made["labels"], made["author"]) == (1, "Mend it", ["bug"], "owner")
    assert (made["state"], made["attempts"], made["comment_count"]) == ("open", [], 0)

    closed = client.patch(f"{where}/1", {"state": "closed", "state_reason": "done"}).json()
    assert (closed["state"], closed["state_reason"]) == ("closed", "done")
    assert closed["closed_at"] is not None
    opened = client.patch(f"{where}/1", {"state": "open"}).json()
    assert (opened["state"], opened["state_reason"], opened["closed_at"]) == ("open", None, None)

    comment = client.post(f"{where}/1/comments", {"body": "I see"})
    assert (comment.status_code, comment.json()["author"]) == (201, "owner")
    assert client.get(f"{where}/1").json()["comment_count"] == 1
    assert [one["body"] for one in client.get(f"{where}/1/comments").json()["results"]] == ["I see"]


@pytest.mark.parametrize(
    "body",
    [{}, {"title": ""}, {"title": "  "}, {"title": "x" * 257}, {"title": "x", "body": "b" * 65_537}, {"title": "x\0"},
     {"title": "x", "labels": ["l"] * 21}, {"title": "x", "labels": [""]}, {"title": "x", "number": 7}],
    ids=lambda body: str(body)[:30],
)  # fmt: skip
def test_an_issue_that_cannot_be_uses_up_no_number(client, repository, body):
    answer = client.post(address(repository, "issues"), body)

    assert (answer.status_code, code_of(answer)) == (422, "invalid_request")
    assert client.post(address(repository, "issues"), {"title": "x"}).json()["number"] == 1


def test_issues_are_filtered_and_paged(client, repository):
    for number in range(1, 6):
        create_issue(repository, title=f"{number}", labels=["even"] if number % 2 == 0 else [])
    client.patch(address(repository, "issues", 1), {"state": "closed"})

    def numbers(query: str) -> list[int]:
        return [one["number"] for one in client.get(address(repository, f"issues?{query}")).json()["results"]]

    assert numbers("") == [5, 4, 3, 2, 1]
    assert numbers("state=closed") == [1]
    assert numbers("label=even") == [4, 2]
    assert numbers("author=nobody") == []
    assert numbers("page_size=2") == [5, 4]


def test_lists_take_the_same_queries_however_long(client, repository, django_assert_max_num_queries):
    for number in range(30):
        create_comment(create_issue(repository, title=f"{number}"), body="x")

    for path in ("issues", "issues/1/comments", "members", "pushes"):
        with django_assert_max_num_queries(8):
            assert client.get(address(repository, path)).status_code == 200
    with django_assert_max_num_queries(6):
        client.get(f"{API}/repositories")


def test_pushes_are_shown_with_their_links(client, repository):
    moved = {"refs/heads/x": {"old": None, "new": "a" * 40}}
    first = append(repository, "user:1", moved, duration_ms=5, now=database_now())
    append(
        repository,
        "user:1",
        {"refs/heads/x": {"old": "a" * 40, "new": "b" * 40}},
        duration_ms=5,
        now=database_now(),
    )

    newest, oldest = client.get(address(repository, "pushes")).json()["results"]

    assert (newest["sequence"], oldest["sequence"], oldest["refs"]) == (1, 0, moved)
    assert newest["previous_link"] == oldest["link"] == bytes(first.link).hex()


def test_a_token_that_may_only_read_writes_nothing(api_of, owner, repository, issue):
    client = api_of(owner, "read")

    for path in ("", "/members", "/machines", "/issues", "/issues/1/comments"):
        method = client.patch if path == "" else client.post
        assert code_of(method(address(repository) + path, {})) == "insufficient_scope"
    assert code_of(client.patch(address(repository, "issues/1"), {})) == "insufficient_scope"
    assert client.get(address(repository, "issues/1")).status_code == 200


def test_what_is_another_owners_is_not_there(client, api_of, stranger, repository, issue, wanted):
    made = client.post(f"{API}/assignments", wanted).json()
    theirs = api_of(stranger)

    for path in ("", "/pushes", "/members", "/machines", "/issues", "/issues/1", "/issues/1/comments"):
        absent = theirs.get(f"{API}/repositories/{uuid.UUID(int=7)}{path}")
        answer = theirs.get(address(repository) + path)
        assert (answer.status_code, answer.json()) == (404, absent.json()), path
    for path in ("/issues", "/issues/1/comments"):
        assert (
            theirs.post(
                address(repository) + path, {"title": "x"} if path == "/issues" else {"body": "x"}
            ).status_code
            == 404
        )
    assert code_of(theirs.get(f"{API}/assignments/{made['id']}")) == "assignment_not_found"
    assert code_of(theirs.post(f"{API}/assignments/{made['id']}/cancel")) == "assignment_not_found"
    assert theirs.get(f"{API}/assignments").json()["results"] == []
    assert theirs.get(f"{API}/repositories").json()["results"] == []
    assert Assignment.objects.get().state == "running"


def test_what_is_public_is_read_and_commented_and_not_changed(api_of, stranger, repository, issue):
    update_repository(repository, visibility="public")
    theirs = api_of(stranger)

    assert theirs.get(address(repository, "issues/1")).status_code == 200
    assert theirs.post(address(repository, "issues/1/comments"), {"body": "x"}).status_code == 201
    assert (
        code_of(theirs.patch(address(repository, "issues/1"), {"state": "closed"}))
        == "repository_not_writable"
    )
    assert (
        code_of(theirs.patch(address(repository), {"visibility": "private"}))
        == "repository_not_yours_to_change"
    )
    assert code_of(theirs.get(address(repository, "machines"))) == "repository_not_yours_to_change"


def test_staff_see_all(api_of, staff, repository, client, wanted):
    client.post(f"{API}/assignments", wanted)

    assert len(api_of(staff).get(f"{API}/repositories?all=true").json()["results"]) == 1
    assert len(api_of(staff).get(f"{API}/assignments?all=true").json()["results"]) == 1
    assert api_of(staff).get(f"{API}/repositories").json()["results"] == []
    assert api_of(staff).get(address(repository, "machines") + "?all=true").json()["results"] == []
    machine = {"machine": str(uuid.uuid4()), "operations": ["read"]}
    refused = api_of(staff).post(address(repository, "machines") + "?all=true", machine)
    assert code_of(refused) == "repository_not_yours_to_change"


def test_a_member_whose_name_nobody_can_have_is_not_there(client, repository):
    answer = client.delete(address(repository, "members", "%00"))

    assert (answer.status_code, code_of(answer)) == (404, "member_not_found")
