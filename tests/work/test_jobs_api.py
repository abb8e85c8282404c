"""Jobs over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.models import User
from base.wakeups import wait_until
from conversations.models import Conversation
from conversations.services import ensure_conversation
from tests.work.conftest import delegation_attributes, in_thread, machine_for
from tests.work.scripted import Recaller, ScriptedModel, asks, one_after_the_other, registry, said
from work.model_client import Text
from work.models import Job
from work.services import claim_for_run, create_job, get_job
from work.watching import key_of
from work.worker import drive

pytestmark = pytest.mark.django_db
API = "/api/v1"
ApiOf = Callable[..., APIClient]


def code(response: Any) -> str:
    return str(response.json()["error"]["code"])


@pytest.fixture
def client(owner: User, api_of: ApiOf) -> APIClient:
    return api_of(owner)


@pytest.fixture
def job(client: APIClient) -> dict[str, Any]:
    made: dict[str, Any] = client.post(f"{API}/jobs", {"goal": "find the failing test"}).json()
    return made


def done(job: dict[str, Any], *answers: list[Any]) -> Job:
    script = one_after_the_other(*answers) if answers else None
    return drive(job["id"], client=ScriptedModel(script), registry=registry())


def test_a_job_goes_from_202_to_its_report(client: APIClient) -> None:
    started = client.post(f"{API}/jobs", {"goal": "find the failing test", "context_hint": "in tests/"})
    assert started.status_code == 202
    queued = started.json()
    assert (queued["kind"], queued["status"], queued["is_terminal"]) == ("deep_work", "queued", False)

    done(queued, said(Text("Found it.")))

    ended = client.get(f"{API}/jobs/{queued['id']}").json()
    assert (ended["status"], ended["report"], ended["is_terminal"]) == ("completed", "Found it.", True)
    messages = client.get(f"{API}/conversations/{ended['conversation']}/messages").json()["results"]
    assert [message["content"] for message in messages] == ["Found it."]
    assert ended["report_message"] == messages[0]["id"]


def test_a_job_may_do_what_the_token_that_started_it_may(owner: User, api_of: ApiOf) -> None:
    narrow = api_of(owner, "read", "work:control").post(f"{API}/jobs", {"goal": "look"}).json()
    assert narrow["scopes"] == ["read", "work:control"]
    (_, model) = Job.objects.get(pk=narrow["id"]), ScriptedModel()
    drive(narrow["id"], client=model)
    assert [offer.name for offer in model.requests[0].offers] == ["recall_messages"]


def test_the_steps_are_in_order_with_what_came_of_them(client: APIClient, job: dict[str, Any]) -> None:
    done(job, said(asks("a", "call-1")), said(asks("b", "call-2", "nothing")), said(Text("Done.")))
    answer = client.get(f"{API}/jobs/{job['id']}/steps").json()
    assert [(step["sequence"], step["tool_name"], step["status"]) for step in answer["results"]] == [
        (1, "recall_messages", "succeeded"),
        (2, "nothing", "unavailable"),
    ]
    assert answer["results"][0]["result"] == {"matches": ["Found a in this conversation."]}
    assert answer["results"][0]["arguments"] == '{"query": "a"}'
    assert answer["results"][1]["error"]["code"] == "unsupported_tool_call"
    assert answer["next"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "goal"),
        ({"goal": " "}, "goal"),
        ({"goal": "x" * 2001}, "goal"),
        ({"goal": "x", "kind": "coding"}, "kind"),
        ({"goal": "x", "machine": "8e4e4ef8-0f3e-4a2b-9b9c-0d7f0b3d3c11"}, "machine"),
        ({"goal": "x", "token_budget": 0}, "token_budget"),
        ({"goal": "x", "context_hint": "x" * 2001}, "context_hint"),
        ({"goal": "x", "sooner": True}, "sooner"),
        ({"kind": "delegation"}, "machine"),
        ({"kind": "delegation", "keep_boxes": True}, "keep_boxes"),
    ],
    ids=str,
)
def test_a_bad_body_is_named_by_field_and_makes_nothing(
    client: APIClient, body: dict[str, Any], field: str
) -> None:
    refused = client.post(f"{API}/jobs", body)
    assert refused.status_code == 422
    assert field in refused.json()["error"]["fields"]
    assert not Job.objects.exists()


def test_a_budget_of_money_needs_a_price(client: APIClient, settings: Any) -> None:
    settings.WORK = {"model": "gpt-x", "model_api_key": "key"}
    refused = client.post(f"{API}/jobs", {"goal": "x", "cost_budget_microusd": 10})
    assert (refused.status_code, code(refused)) == (422, "invalid_work_job")
    assert "no price is set" in refused.json()["error"]["fields"]["cost_budget_microusd"][0]


def test_the_same_key_and_body_is_the_same_job(client: APIClient) -> None:
    first = client.post(f"{API}/jobs", {"goal": "once"}, headers={"Idempotency-Key": "k"})
    again = client.post(f"{API}/jobs", {"goal": "once"}, headers={"Idempotency-Key": "k"})
    other = client.post(f"{API}/jobs", {"goal": "twice"}, headers={"Idempotency-Key": "k"})
    assert again.json()["id"] == first.json()["id"]
    assert (other.status_code, code(other)) == (409, "idempotency_conflict")
    assert Job.objects.count() == 1


def test_an_attempt_that_died_before_it_answered_made_the_job_of_its_key(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accounts.models import IdempotencyKey

    first = client.post(f"{API}/jobs", {"goal": "once"}, headers={"Idempotency-Key": "k"}).json()
    IdempotencyKey.objects.update(status=None, answer=None, locked_until="2020-01-01T00:00:00Z")
    again = client.post(f"{API}/jobs", {"goal": "once"}, headers={"Idempotency-Key": "k"}).json()
    assert (again["id"], Job.objects.count()) == (first["id"], 1)


def test_ten_jobs_a_minute(client: APIClient) -> None:
    answers = [client.post(f"{API}/jobs", {"goal": "x"}) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [202] * 10 + [429]
    assert int(answers[-1]["Retry-After"]) > 0


@pytest.mark.parametrize("path", ["", "/steps", "/cancel"])
def test_a_stranger_meets_a_404_as_for_what_does_not_exist(
    job: dict[str, Any], stranger: User, api_of: ApiOf, path: str
) -> None:
    theirs = api_of(stranger)
    call = theirs.post if path == "/cancel" else theirs.get
    foreign = call(f"{API}/jobs/{job['id']}{path}")
    missing = call(f"{API}/jobs/8e4e4ef8-0f3e-4a2b-9b9c-0d7f0b3d3c11{path}")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.json() == missing.json()
    assert code(foreign) == "work_job_not_found"
    assert theirs.get(f"{API}/jobs").json()["results"] == []
    assert not get_job(job["id"]).cancel_requested_at


def test_nobody_works_in_the_conversation_of_another(owner: User, stranger: User, api_of: ApiOf) -> None:
    mine = ensure_conversation(owner)
    refused = api_of(stranger).post(f"{API}/jobs", {"goal": "x", "conversation": str(mine.pk)})
    assert (refused.status_code, code(refused)) == (404, "conversation_not_found")


def test_staff_see_all_if_they_ask(job: dict[str, Any], staff: User, api_of: ApiOf) -> None:
    client = api_of(staff)
    assert client.get(f"{API}/jobs").json()["results"] == []
    assert [one["id"] for one in client.get(f"{API}/jobs?all=true").json()["results"]] == [job["id"]]
    assert client.get(f"{API}/jobs/{job['id']}?all=true").status_code == 200


@pytest.mark.parametrize(
    ("scopes", "method", "status"),
    [
        (("read",), "get", 200),
        (("read",), "post", 403),
        (("work:control",), "post", 202),
        (("work:control",), "get", 403),
    ],
    ids=str,
)
def test_each_call_needs_its_scope(
    owner: User, api_of: ApiOf, scopes: tuple[str, ...], method: str, status: int
) -> None:
    answer = getattr(api_of(owner, *scopes), method)(
        f"{API}/jobs", {"goal": "x"} if method == "post" else None
    )
    assert answer.status_code == status


def test_a_delegation_needs_the_scope_of_computers_too(owner: User, api_of: ApiOf) -> None:
    machine = machine_for(owner, "scope")
    body = {
        "kind": "delegation",
        "machine": str(machine.pk),
        "agent_id": "claude",
        "prompt": "x",
        "cwd": "/tmp",
    }
    refused = api_of(owner, "read", "work:control").post(f"{API}/jobs", body)
    assert (refused.status_code, code(refused)) == (403, "insufficient_scope")
    assert not Job.objects.exists()


def test_a_delegation_to_a_machine_of_another_is_not_found(stranger: User, client: APIClient) -> None:
    machine = machine_for(stranger, "theirs")
    body = {
        "kind": "delegation",
        "machine": str(machine.pk),
        "agent_id": "claude",
        "prompt": "x",
        "cwd": "/tmp",
    }
    refused = client.post(f"{API}/jobs", body)
    assert (refused.status_code, code(refused)) == (404, "machine_not_found")


def test_a_delegation_is_shown_with_what_it_asks_for(owner: User, client: APIClient) -> None:
    conversation = ensure_conversation(owner)
    made = create_job(**delegation_attributes(conversation, machine_for(owner, "shown"), "Delegate it"))
    shown = client.get(f"{API}/jobs/{made.pk}").json()
    assert (shown["kind"], shown["machine"], shown["scopes"]) == ("delegation", str(made.machine_id), None)
    assert shown["delegation"]["agent_id"] == "claude"
    assert shown["delegation"]["prompt"] == "do work"


def test_lists_can_be_narrowed(client: APIClient, job: dict[str, Any]) -> None:
    done(job)
    other = client.post(f"{API}/jobs", {"goal": "another"}).json()

    def found(query: str) -> list[str]:
        return [one["id"] for one in client.get(f"{API}/jobs?{query}").json()["results"]]

    assert found("") == [other["id"], job["id"]]
    assert found("status=completed") == [job["id"]]
    assert found("kind=delegation") == []
    assert found(f"conversation={job['conversation']}&status=queued") == [other["id"]]
    assert found(f"created_after={other['created_at'].replace('+', '%2B')}") == [other["id"]]
    assert client.get(f"{API}/jobs?status=odd").status_code == 422


def test_a_list_costs_the_same_however_long(client: APIClient, owner: User) -> None:
    conversation = ensure_conversation(owner)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert client.get(f"{API}/jobs").status_code == 200
        return len(captured)

    make(conversation, 1)
    queries()  # the first call of a token also notes its use
    few = queries()
    make(conversation, 10)
    assert queries() == few


def make(conversation: Conversation, number: int) -> None:
    for n in range(number):
        create_job(
            conversation_id=conversation.pk, owner_visitor_id=conversation.visitor_id, goal=f"goal {n}"
        )


def test_a_queued_job_ends_at_once_when_it_is_cancelled(client: APIClient, job: dict[str, Any]) -> None:
    cancelled = client.post(f"{API}/jobs/{job['id']}/cancel")
    assert cancelled.status_code == 202
    assert (cancelled.json()["status"], cancelled.json()["error_code"]) == ("cancelled", "cancelled")
    assert client.post(f"{API}/jobs/{job['id']}/cancel").json() == cancelled.json()


def test_a_running_job_is_asked_to_stop(client: APIClient, job: dict[str, Any]) -> None:
    claim_for_run(job["id"])
    asked = client.post(f"{API}/jobs/{job['id']}/cancel").json()
    assert asked["status"] == "running"
    assert asked["cancel_requested_at"]


def test_the_jobs_of_a_deleted_conversation_are_gone(client: APIClient, job: dict[str, Any]) -> None:
    assert client.delete(f"{API}/conversations/{job['conversation']}").status_code in (200, 204)
    assert client.get(f"{API}/jobs/{job['id']}").status_code == 404
    assert get_job(job["id"]).status == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_a_wait_ends_with_the_next_status(client: APIClient, job: dict[str, Any]) -> None:
    answers: list[Any] = []
    waiting = threading.Thread(
        target=in_thread(lambda: answers.append(client.get(f"{API}/jobs/{job['id']}?wait=25").json()))
    )
    waiting.start()
    recaller = Recaller()
    worker = threading.Thread(
        target=in_thread(
            lambda: drive(
                job["id"], client=ScriptedModel(one_after_the_other(said(asks("block", "1")), said(Text("Done.")))),
                registry=registry(recaller),
            )
        )
    )  # fmt: skip
    worker.start()
    waiting.join(60)
    recaller.released.set()
    worker.join(60)
    assert [answer["status"] for answer in answers] in (["running"], ["completed"])
    assert wait_until(key_of(job["id"]), lambda: get_job(job["id"]).is_terminal, seconds=60)
