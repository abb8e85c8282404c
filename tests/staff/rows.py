"""So many rows of every table that has a staff page, each belonging to rows of its own."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django_q.models import OrmQ, Schedule, Task
from django_q.signing import SignedPackage

from accounts.models import IdempotencyKey, RateWindow, User
from accounts.services import create_token
from boxes.models import (
    Box,
    BudgetNotice,
    FanoutItem,
    FanoutRequest,
    Installation,
    ProcessHeartbeat,
    ReconciliationEvent,
    ScheduleSlot,
    WebhookDelivery,
)
from conversations.models import Conversation, Message, Visitor
from forge.models import (
    Assignment,
    AssignmentCredential,
    Comment,
    Issue,
    MachineGrant,
    Membership,
    Push,
    PushIntent,
    Repository,
)
from openagents_site.webhooks.models import Attempt, Delivery, Event, Subscription
from runs.models import Run, RunLogChunk
from work.models import (
    Delegation,
    Incident,
    Job,
    JobBox,
    JobStep,
    Machine,
    MachineChannel,
    MachineFrame,
    MachinePairing,
    MachineRequest,
)

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
DIGEST = "0" * 64
SECRET = "0ddba11c0ffee"
"""What is written wherever a table keeps something that no page may show."""


def fill(count: int, first: int = 0) -> None:
    """`count` rows of each table, numbered from `first`."""
    for number in range(first, first + count):
        Rows(number).make()


class Rows:
    """One row of each table, each with an owner of its own."""

    def __init__(self, number: int) -> None:
        self.number, self.name = number, f"row-{number}"
        self.deadline = datetime(2036, 1, 1, tzinfo=UTC)

    def make(self) -> None:
        self.people()
        self.boxes()
        self.runs()
        self.machines()
        self.jobs()
        self.repositories()
        self.attempts()
        self.webhooks()
        self.installation()

    def people(self) -> None:
        self.user = User.objects.create(username=self.name, slug=self.name)
        create_token(self.user, name=self.name)
        Group.objects.create(name=self.name)
        visitor = Visitor.objects.create(user=self.user)
        self.conversation = Conversation.objects.create(visitor=visitor)
        Message.objects.create(conversation=self.conversation, role="user", content=self.name)
        IdempotencyKey.objects.create(
            user=self.user, route="POST /boxes", key_digest=secrets.token_bytes(32), body_digest=bytes(32),
            answer={"token": SECRET}, created_at=NOW, locked_until=LATER,
        )  # fmt: skip
        RateWindow.objects.create(principal=self.name, operation="box_create", window_start=NOW)
        LogEntry.objects.create(
            user=self.user, content_type=ContentType.objects.get_for_model(User), object_id=self.user.pk,
            object_repr=self.name, action_flag=CHANGE, change_message="changed",
        )  # fmt: skip

    def boxes(self) -> None:
        self.box = Box.objects.create(
            conversation=self.conversation, box_id=f"bx_{self.number}", label=self.name, state="ready",
            create_key=f"{SECRET}-{self.number}", create_body={"key": SECRET}, created_at=NOW,
        )  # fmt: skip
        ReconciliationEvent.objects.create(
            provider_box_id=f"leak_{self.number}",
            event_type="leak",
            reason="x",
            observed_at=NOW,
            box=self.box,
        )
        plan = FanoutRequest.objects.create(
            conversation=self.conversation, requesting_principal={}, requested_count=1, effective_limits={}
        )
        FanoutItem.objects.create(
            request=plan, conversation=self.conversation, position=0, queue_sequence=self.number,
            label=self.name, box=self.box, requesting_principal={},
        )  # fmt: skip
        WebhookDelivery.objects.create(delivery_id=self.name, event_type="x", box=self.box, received_at=NOW)

    def runs(self) -> None:
        self.run = Run.objects.create(
            conversation=self.conversation, conversation_box=self.box, requesting_principal={}, state="running",
            command="make test", idempotency_key=self.name, run_directory="/tmp/x", admitted_at=NOW,
            deadline_at=LATER, output_state={"pending": SECRET},
        )  # fmt: skip
        RunLogChunk.objects.create(
            run=self.run, raw_start=0, raw_end=1, text_bytes=1, pieces=[SECRET], data=SECRET.encode()
        )

    def machines(self) -> None:
        self.machine = Machine.objects.create(
            user=self.user, name=self.name, tier="curated", roots=["/src"], last_probe={"env": SECRET},
            token_digest=secrets.token_bytes(32), token_expires_at=datetime(2036, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        MachinePairing.objects.create(
            name=self.name, tier="curated", code_digest=secrets.token_bytes(32), poll_secret_digest=bytes(32),
            machine=self.machine, sealed_token=SECRET.encode(), status="approved",
            expires_at=datetime(2036, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        MachineChannel.objects.create(machine=self.machine)
        MachineFrame.objects.create(machine=self.machine, kind="offer", body={"credential": SECRET})
        MachineRequest.objects.create(
            machine=self.machine, kind="check", answer={"secret": SECRET}, answered_at=NOW
        )

    def jobs(self) -> None:
        self.job = Job.objects.create(
            conversation=self.conversation, owner_visitor=self.conversation.visitor, surface="text",
            goal=f"mend {self.name}",
        )  # fmt: skip
        JobStep.objects.create(
            work_job=self.job, sequence=1, provider_call_id="call", tool_name="run", argument_digest=DIGEST
        )
        JobBox.objects.create(job=self.job, create_key=self.name, box=self.box)
        Delegation.objects.create(job=self.job, machine=self.machine)
        Incident.objects.create(
            conversation=self.conversation, owner_user=self.user, surface="job", origin="x", code="lost",
            severity="anomalous", correlation_ref=str(self.job.pk),
        )  # fmt: skip

    def repositories(self) -> None:
        self.repository = Repository.objects.create(
            owner=self.user, name=self.name, storage_key=secrets.token_hex(16)
        )
        Membership.objects.create(repository=self.repository, user=self.user, role="owner")
        MachineGrant.objects.create(repository=self.repository, machine=self.machine, operations=["read"])
        self.issue = Issue.objects.create(
            repository=self.repository, number=1, title=f"mend {self.name}", author=self.user
        )
        Comment.objects.create(issue=self.issue, repository=self.repository, body="why", author=self.user)
        Push.objects.create(
            repository=self.repository, sequence=0, principal=self.name, refs={"refs/heads/main": {}},
            duration_ms=3, recorded_at=NOW, previous_link=bytes(32), link=secrets.token_bytes(32),
        )  # fmt: skip
        PushIntent.objects.create(repository=self.repository, principal=self.name, updates={})

    def attempts(self) -> None:
        self.assignment = Assignment.objects.create(
            conversation=self.conversation, conversation_box=self.box, repository=self.repository, issue=self.issue,
            run=self.run, work_job=self.job, requesting_principal={}, branch="agent/1", command="make",
            creation_key=f"{SECRET}-{self.number}", deadline_at=self.deadline,
        )  # fmt: skip
        AssignmentCredential.objects.create(
            assignment=self.assignment, repository=self.repository, branch="agent/1", last_four="abcd",
            token_digest=secrets.token_bytes(32), expires_at=datetime(2036, 1, 1, tzinfo=UTC),
        )  # fmt: skip

    def webhooks(self) -> None:
        hook = Subscription.objects.create(
            owner=self.user, url=f"https://hooks.invalid/x?token={SECRET}", sealed_secret=SECRET.encode(),
            sealed_previous_secret=SECRET.encode(), disabled_at=NOW, disabled_reason="owner",
        )  # fmt: skip
        event = Event.objects.create(
            event_type="run.running", object_id=self.run.pk, row={"secret": SECRET}, occurred_at=NOW,
            payload="{}", fanned_out_at=NOW,
        )  # fmt: skip
        told = Delivery.objects.create(
            event=event, subscription=hook, state="delivered", next_attempt_at=None, ended_at=NOW
        )
        Attempt.objects.create(delivery=told, number=1, started_at=NOW, duration_ms=5, status=200)

    def installation(self) -> None:
        Installation.objects.get_or_create(pk=1, defaults={"ownership_marker": "oab-tests"})
        ScheduleSlot.objects.create(name=self.name, interval_ms=60_000, initial_delay_ms=0, next_at=NOW)
        ProcessHeartbeat.objects.create(name=self.name, stamped_at=NOW)
        BudgetNotice.objects.create(subject=self.name, day=NOW.date())
        Schedule.objects.create(
            name=self.name, func="boxes.tasks.promote_fanouts", schedule_type="I", minutes=1
        )
        facts: dict[str, Any] = {
            "func": "x.y",
            "started": NOW,
            "stopped": LATER,
            "result": "Bearer " + SECRET,
        }
        Task.objects.create(id=f"good-{self.number}", name=self.name, success=True, **facts)
        Task.objects.create(id=f"bad-{self.number}", name=self.name, success=False, **facts)
        OrmQ.objects.create(
            key="x", payload=SignedPackage.dumps({"id": "1", "name": self.name, "func": "x.y"})
        )
