"""Attempts over HTTP: what makes one, who sees and cancels it."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from base.clock import database_now
from forge import assignments
from forge.models import Assignment
from forge.receipts import append
from forge.services import create_comment, set_member
from tests.forge.machines import paired_machine
from tests.forge.over_http import API, address, code_of
from work.machines import revoke_machine

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_provider")]


@pytest.fixture
def client(api_of, owner):
    return api_of(owner)


def test_an_attempt_is_made_shown_and_cancelled_and_no_answer_has_its_secret(client, wanted, repository):
    made = client.post(f"{API}/assignments", wanted)
    assert made.status_code == 202
    body = made.json()
    assert (body["state"], body["branch"], body["issue_number"]) == ("running", "agent/issue-1", 1)
    assert (body["command"], body["credential_delivery_status"]) == ("make", "not_applicable")

    one, many = client.get(f"{API}/assignments/{body['id']}"), client.get(f"{API}/assignments")
    attempts = client.get(address(repository, "issues/1")).json()["attempts"]
    assert one.json() == body
    assert many.json()["results"] == [body]
    assert [(each["id"], each["state"]) for each in attempts] == [(body["id"], "running")]

    cancelled = client.post(f"{API}/assignments/{body['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert cancelled.json()["failure_reason"] == "cancelled_by_request"
    again = client.post(f"{API}/assignments/{body['id']}/cancel")
    assert again.json() == cancelled.json()
    everything = made.content + one.content + many.content + cancelled.content
    assert b"oa_assignment_" not in everything
    assert b"digest" not in everything


REFUSED = [
    ({"issue_number": 9}, 404, "issue_not_found"), ({"issue_number": "one"}, 404, "issue_not_found"),
    ({"repository": str(uuid.UUID(int=3))}, 404, "repository_not_found"), ({"repository": "x"}, 404, "repository_not_found"),
    ({"box": "bx_none"}, 404, "box_not_found"), ({"branch": "main"}, 403, "protected_branch"),
    ({"branch": "a b"}, 422, "invalid_assignment_branch"), ({"target_kind": "boat"}, 422, "invalid_assignment_target"),
    ({"command": " "}, 422, "invalid_command"), ({"deadline_at": "soon"}, 422, "invalid_deadline"),
    ({"deadline_at": "2001-01-01T00:00:00Z"}, 422, "invalid_deadline"), ({"secret": "x"}, 422, "invalid_request"),
    ({"conversation": str(uuid.UUID(int=4))}, 404, "conversation_not_found"),
    ({"machine": str(uuid.UUID(int=5)), "agent_id": "a", "cwd": "/"}, 404, "machine_not_found"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "status", "code"), REFUSED, ids=[f"{r[2]}-{next(iter(r[0]))}" for r in REFUSED]
)
def test_an_attempt_that_cannot_be_is_refused(client, wanted, changes, status, code):
    answer = client.post(f"{API}/assignments", wanted | changes)

    assert (answer.status_code, code_of(answer)) == (status, code)
    assert not Assignment.objects.exists()


def test_a_revoked_computer_takes_no_attempt(client, wanted, owner):
    machine, _ = paired_machine(owner)
    revoke_machine(machine)
    body = {name: value for name, value in wanted.items() if name not in {"box", "command"}}

    answer = client.post(
        f"{API}/assignments", body | {"machine": str(machine.pk), "agent_id": "a", "cwd": "/"}
    )

    assert (answer.status_code, code_of(answer)) == (409, "machine_revoked")


def test_a_deadline_as_text_narrows(client, wanted):
    soon = database_now() + timedelta(seconds=90)

    made = client.post(f"{API}/assignments", wanted | {"deadline_at": soon.isoformat()})

    assert made.json()["deadline_at"] == soon.isoformat().replace("+00:00", "Z")


def test_a_second_attempt_at_the_issue_is_refused(client, wanted, make_box, owner):
    client.post(f"{API}/assignments", wanted)

    answer = client.post(f"{API}/assignments", wanted | {"box": make_box(owner).label})

    assert (answer.status_code, code_of(answer)) == (409, "assignment_issue_claimed")


def test_the_same_key_makes_one_attempt(client, wanted):
    key = {"HTTP_IDEMPOTENCY_KEY": "once"}

    first, again = (client.post(f"{API}/assignments", wanted, **key) for _ in range(2))

    assert first.json() == again.json()
    assert Assignment.objects.count() == 1


def test_attempts_count_as_runs_do(client, wanted):
    for _ in range(10):
        client.post(f"{API}/assignments", wanted)

    answer = client.post(f"{API}/assignments", wanted)

    assert (answer.status_code, code_of(answer)) == (429, "rate_limited")
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_token_needs_the_scope_of_what_it_puts_to_work(api_of, owner, wanted):
    for scopes, code in (
        (["read", "box:control"], 403),
        (["read", "forge:write"], 403),
        (["forge:write", "box:control"], 202),
    ):
        assert api_of(owner, *scopes).post(f"{API}/assignments", wanted).status_code == code


def test_who_may_write_cancels_anybodys_attempt_from_the_issue(client, api_of, stranger, repository, wanted):
    made = client.post(f"{API}/assignments", wanted).json()
    where = address(repository, "issues/1/attempts", made["id"], "cancel")
    set_member(repository, stranger, "viewer")
    assert code_of(api_of(stranger).post(where)) == "repository_not_writable"

    set_member(repository, stranger, "contributor")
    answer = api_of(stranger).post(where)

    assert answer.status_code == 202
    assert answer.json()["attempts"][0]["failure_reason"] == "cancelled_by_viewer"
    assert code_of(api_of(stranger).post(where)) == "assignment_not_live"


def test_staff_pages_show_everything_and_cancel(client, staff, wanted, repository, issue):
    from django.test import Client

    client.post(f"{API}/assignments", wanted)
    create_comment(issue, body="x")
    append(
        repository,
        "user:1",
        {"refs/heads/x": {"old": None, "new": "a" * 40}},
        duration_ms=5,
        now=database_now(),
    )
    pages = Client()
    pages.force_login(staff)
    for name in (
        "repository",
        "membership",
        "machinegrant",
        "issue",
        "comment",
        "assignment",
        "assignmentcredential",
        "push",
    ):
        assert pages.get(f"/admin/forge/{name}/").status_code == 200
    one = Assignment.objects.get()
    assert pages.get(f"/admin/forge/assignment/{one.pk}/change/").status_code == 200
    credential = assignments.credential(one)
    assert (
        credential.token_digest.hex()
        not in pages.get(f"/admin/forge/assignmentcredential/{credential.pk}/change/").text
    )

    chosen = {"action": "cancel", "index": "0", "_selected_action": [str(one.pk)], "confirmed": "yes"}
    pages.post("/admin/forge/assignment/", chosen)

    assert Assignment.objects.get().state == "cancelled"


def test_a_token_puts_to_work_only_what_its_scopes_say(api_of, owner, repository, issue, box):
    machine, _ = paired_machine(owner)
    wanted = {
        "repository": str(repository.pk), "issue_number": "1", "target_kind": "box", "box": str(box.pk),
        "machine": str(machine.pk),
    }  # fmt: skip

    answer = api_of(owner, "forge:write", "computer:control").post(f"{API}/assignments", wanted)
    both = api_of(owner).post(f"{API}/assignments", wanted)

    assert (answer.status_code, code_of(answer)) == (403, "insufficient_scope")
    assert (both.status_code, list(both.json()["error"]["fields"])) == (422, ["machine"])
    assert not Assignment.objects.exists()
