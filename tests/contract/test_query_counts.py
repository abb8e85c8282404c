"""Every list and detail costs the same number of queries however many rows there are."""

from __future__ import annotations

import itertools
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from accounts.models import User
from accounts.services import create_token, upsert_github_user
from boxes import fanout
from boxes.models import Box, ReconciliationEvent
from boxes.states import EventType
from conversations.models import Conversation
from conversations.services import add_user_message, ensure_conversation
from forge.models import Assignment, Comment, Issue, MachineGrant, Membership, Push, Repository
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.models import Subscription
from runs.models import Run
from tests.forge.machines import paired_machine
from work import incidents
from work.models import Job, JobStep, Machine
from work.services import claim_for_run, create_job, request_job_step

pytestmark = pytest.mark.django_db
API = "/api/v1"
FEW, MANY = 1, 30
_numbers = itertools.count(2)


@dataclass
class House:
    """Everything that an owner may have, made row by row."""

    owner: User
    conversation: Conversation
    repository: Repository
    issue: Issue
    job: Job
    hook: Subscription

    def token(self) -> Any:
        return create_token(self.owner, name="more")[0]

    def message(self) -> Any:
        return add_user_message(self.conversation, "more")

    def box(self) -> Box:
        number = next(_numbers)
        return Box.objects.create(
            conversation=self.conversation, box_id=f"bx_count{number}", label=f"count-{number}", state="ready",
            setup_status="done",
        )  # fmt: skip

    def run(self) -> Run:
        box, now = self.box(), timezone.now()
        return Run.objects.create(
            conversation=self.conversation, conversation_box=box, requesting_principal={"type": "user"}, command="true",
            idempotency_key=str(box.pk), run_directory="/x", admitted_at=now, deadline_at=now + timedelta(hours=1),
        )  # fmt: skip

    def plan(self) -> Any:
        return fanout.admit(self.conversation.pk, {"type": "user", "id": str(self.owner.pk)}, 3)

    def leak(self) -> Any:
        return ReconciliationEvent.objects.create(
            provider_box_id=f"bx_{next(_numbers)}",
            event_type=EventType.LEAK,
            reason="x",
            observed_at=timezone.now(),
        )

    def repository_more(self) -> Repository:
        return Repository.objects.create(
            owner=self.owner, name=f"r{next(_numbers)}", lifecycle_state="ready", ready_at=timezone.now(),
            storage_key=f"{next(_numbers):032x}",
        )  # fmt: skip

    def issue_more(self) -> Issue:
        number = next(_numbers) + 1000
        made = Issue.objects.create(repository=self.repository, number=number, title="x", author=self.owner)
        self.assignment(made)
        return made

    def comment(self) -> Comment:
        return Comment.objects.create(
            issue=self.issue, repository=self.repository, body="x", author=self.owner
        )

    def assignment(self, issue: Issue | None = None) -> Assignment:
        if issue is None:
            return self.assignment(self.issue_more_alone())
        box, now = self.box(), timezone.now()
        return Assignment.objects.create(
            conversation=self.conversation, conversation_box=box, repository=self.repository, issue=issue,
            branch="agent/x", requesting_principal={"type": "user"}, admitted_at=now, deadline_at=now + timedelta(hours=1),
        )  # fmt: skip

    def issue_more_alone(self) -> Issue:
        return Issue.objects.create(
            repository=self.repository, number=next(_numbers) + 1000, title="x", author=self.owner
        )

    def push(self) -> Push:
        last = Push.objects.filter(repository=self.repository).order_by("-sequence").first()
        return Push.objects.create(
            repository=self.repository, sequence=last.sequence + 1 if last else 0, principal="user:x", refs={"refs/heads/main": {"old": None, "new": "a" * 40}},
            duration_ms=1, recorded_at=timezone.now(), previous_link=bytes(last.link) if last else bytes(32),
            link=secrets.token_bytes(32),
        )  # fmt: skip

    def member(self) -> Membership:
        user = upsert_github_user(github_id=next(_numbers) + 5000, github_login=f"member-{next(_numbers)}")
        return Membership.objects.create(repository=self.repository, user=user, role="viewer")

    def machine(self) -> Machine:
        """One more than may be paired, after the first."""
        known = Machine.objects.filter(user=self.owner).first() or paired_machine(self.owner)[0]
        known.pk, known.token_digest = uuid.uuid4(), secrets.token_bytes(32)
        known.save(force_insert=True)
        return known

    def grant(self) -> MachineGrant:
        return MachineGrant.objects.create(
            repository=self.repository, machine=self.machine(), operations=["read"]
        )

    def job_more(self) -> Job:
        return create_job(
            conversation_id=self.conversation.pk, owner_visitor_id=self.conversation.visitor_id, goal="x"
        )

    def step(self) -> JobStep:
        call = f"call-{next(_numbers)}"
        return request_job_step(
            self.job.pk, self.job.generation, provider_call_id=call, tool_name="recall_messages"
        )

    def incident(self) -> Any:
        return incidents.record(code="x", conversation=self.conversation, owner_user=self.owner)

    def webhook(self) -> Subscription:
        """One more than an owner may make."""
        known = Subscription.objects.get(pk=self.hook.pk)
        known.pk = uuid.uuid4()
        known.save(force_insert=True)
        return known

    def delivery(self) -> Any:
        return subscriptions.send_test(self.hook)


@pytest.fixture
def house(owner: User) -> House:
    conversation = ensure_conversation(owner)
    repository = Repository.objects.create(
        owner=owner, name="project", lifecycle_state="ready", ready_at=timezone.now(), storage_key=f"{1:032x}"
    )
    Membership.objects.get_or_create(repository=repository, user=owner, defaults={"role": "owner"})
    issue = Issue.objects.create(repository=repository, number=1, title="one", author=owner)
    job = claim_for_run(
        create_job(conversation_id=conversation.pk, owner_visitor_id=conversation.visitor_id, goal="x").pk
    )
    hook, _ = subscriptions.create(owner, url="https://hooks.example.org/all")
    return House(owner, conversation, repository, issue, job, hook)


# What fills each list, and the path of an object of it where a detail is meant.
Fill = Callable[[House], Any]
ROUTES: dict[str, tuple[Fill, Callable[[House, Any], str]]] = {
    "/me": (House.token, lambda it, row: "/me"),
    "/tokens": (House.token, lambda it, row: "/tokens"),
    "/conversations": (House.message, lambda it, row: "/conversations"),
    "/conversations/{conversation_id}": (House.message, lambda it, row: f"/conversations/{it.conversation.pk}"),
    "/conversations/{conversation_id}/messages": (House.message, lambda it, row: f"/conversations/{it.conversation.pk}/messages"),
    "/boxes": (House.run, lambda it, row: "/boxes"),
    "/boxes/{ref}": (House.run, lambda it, row: f"/boxes/{row.conversation_box.label}"),
    "/fanouts": (House.plan, lambda it, row: "/fanouts"),
    "/fanouts/{plan_id}": (House.plan, lambda it, row: f"/fanouts/{row.pk}"),
    "/fleet": (House.run, lambda it, row: "/fleet"),
    "/usage": (House.box, lambda it, row: "/usage?group=box"),
    "/runs": (House.run, lambda it, row: "/runs"),
    "/runs/{run_id}": (House.run, lambda it, row: f"/runs/{row.pk}"),
    "/runs/{run_id}/output": (House.run, lambda it, row: f"/runs/{row.pk}/output"),
    "/runs/{run_id}/log": (House.run, lambda it, row: f"/runs/{row.pk}/log"),
    "/runs/{run_id}/log/download": (House.run, lambda it, row: f"/runs/{row.pk}/log/download"),
    "/leaks": (House.leak, lambda it, row: "/leaks"),
    "/repositories": (House.repository_more, lambda it, row: "/repositories"),
    "/repositories/{repository_id}": (House.issue_more, lambda it, row: f"/repositories/{it.repository.pk}"),
    "/repositories/{repository_id}/issues": (House.issue_more, lambda it, row: f"/repositories/{it.repository.pk}/issues"),
    "/repositories/{repository_id}/issues/{number}": (House.issue_more, lambda it, row: f"/repositories/{it.repository.pk}/issues/{row.number}"),
    "/repositories/{repository_id}/issues/{number}/comments": (House.comment, lambda it, row: f"/repositories/{it.repository.pk}/issues/1/comments"),
    "/repositories/{repository_id}/pushes": (House.push, lambda it, row: f"/repositories/{it.repository.pk}/pushes"),
    "/repositories/{repository_id}/members": (House.member, lambda it, row: f"/repositories/{it.repository.pk}/members"),
    "/repositories/{repository_id}/machines": (House.grant, lambda it, row: f"/repositories/{it.repository.pk}/machines"),
    "/assignments": (House.assignment, lambda it, row: "/assignments"),
    "/assignments/{assignment_id}": (House.assignment, lambda it, row: f"/assignments/{row.pk}"),
    "/machines": (House.machine, lambda it, row: "/machines"),
    "/machines/{machine_id}": (House.machine, lambda it, row: f"/machines/{row.pk}"),
    "/jobs": (House.job_more, lambda it, row: "/jobs"),
    "/jobs/{job_id}": (House.job_more, lambda it, row: f"/jobs/{row.pk}"),
    "/jobs/{job_id}/steps": (House.step, lambda it, row: f"/jobs/{it.job.pk}/steps"),
    "/incidents": (House.incident, lambda it, row: "/incidents"),
    "/incidents/{incident_id}": (House.incident, lambda it, row: f"/incidents/{row.pk}"),
    "/webhooks": (House.webhook, lambda it, row: "/webhooks"),
    "/webhooks/{webhook_id}": (House.webhook, lambda it, row: f"/webhooks/{row.pk}"),
    "/webhooks/{webhook_id}/deliveries": (House.delivery, lambda it, row: f"/webhooks/{it.hook.pk}/deliveries"),
    "/history": (House.run, lambda it, row: f"/history?object=run:{row.pk}"),
}  # fmt: skip
ELSEWHERE = {
    "/runs/{run_id}/stream",  # holds no connection while it waits: tests/runs/test_streaming.py
    "/pairings/{pairing_id}",  # one row by its secret; there is no list of them
}


@pytest.mark.parametrize("route", ROUTES)
def test_thirty_rows_cost_as_many_queries_as_one(
    house: House, staff: User, owner: User, api_of: Callable[..., APIClient], route: str
) -> None:
    fill, path_of = ROUTES[route]
    client = api_of(staff if route == "/leaks" else owner)

    def queries(rows: int) -> int:
        made = [fill(house) for _ in range(rows)]
        path = API + path_of(house, made[-1])
        client.get(path)  # what is done once, as noting that a token was used
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(path)
            if answer.streaming:
                list(answer.streaming_content)
        assert answer.status_code == 200, answer
        return len(captured)

    few = queries(FEW)

    assert queries(MANY - FEW) <= few  # fewer where there is nothing to be fetched for them


def test_every_address_that_can_be_read_is_counted() -> None:
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]  # type: ignore[no-untyped-call]
    readable = {path.removeprefix(API) for path, operations in paths.items() if "get" in operations}

    assert readable == set(ROUTES) | ELSEWHERE
