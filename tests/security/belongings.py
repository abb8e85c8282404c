"""One of everything that a user can have, made straight into the ledgers: nothing of it is at a provider."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from accounts.services import create_token
from boxes.models import Box, FanoutRequest
from boxes.states import FanoutState
from conversations.services import add_user_message, ensure_conversation
from forge import assignments
from forge.services import create_issue, create_repository
from openagents_site.webhooks import subscriptions
from runs.models import Run
from work.incidents import report
from work.machines import approve_pairing, start_pairing
from work.services import create_job


def belongings_of(user: User) -> dict[str, Any]:
    """The ids of what the user has now, by the name that the addresses of the API give them."""
    conversation = ensure_conversation(user)
    add_user_message(conversation, "mine")
    box = _box(user)
    run = _run(box)
    repository = create_repository(user, f"r-{uuid.uuid4().hex[:8]}")
    issue = create_issue(repository, title="Mine", body="")
    attempt, _ = assignments.create(
        requesting_user=user,
        repository_id=repository.pk,
        issue_number=issue.number,
        box_id=_box(user).box_id,
        command="true",
    )
    machine = approve_pairing(user, _pairing().code)
    job = create_job(
        conversation_id=conversation.pk,
        owner_visitor_id=conversation.visitor_id,
        goal="look through the plan",
    )
    incident = report(
        {"surface": "job", "origin": "work.test", "code": "anything", "summary": "mine", "owner_user": user}
    )
    assert incident is not None
    return {
        "token_id": create_token(user)[0].pk,
        "conversation_id": conversation.pk,
        "ref": box.box_id,
        "plan_id": _plan(user).pk,
        "run_id": run.pk,
        "repository_id": repository.pk,
        "number": issue.number,
        "user": user.pk,
        "assignment_id": attempt.pk,
        "attempt_id": attempt.pk,
        "machine_id": machine.pk,
        "job_id": job.pk,
        "incident_id": incident.pk,
        **_webhook(user),
    }


def _webhook(user: User) -> dict[str, Any]:
    webhook, _ = subscriptions.create(user, url="https://hooks.invalid/mine")
    return {"webhook_id": webhook.pk, "delivery_id": subscriptions.send_test(webhook).pk}


def _box(user: User) -> Box:
    name = f"bx_{uuid.uuid4().hex[:8]}"
    return Box.objects.create(
        conversation=ensure_conversation(user), box_id=name, label=name, state="ready", setup_status="done"
    )


def _run(box: Box) -> Run:
    now = timezone.now()
    return Run.objects.create(
        conversation_box=box,
        conversation=box.conversation,
        requesting_principal={"type": "user", "id": "mine"},
        command="true",
        idempotency_key=str(uuid.uuid4()),
        run_directory=f"/tmp/openagents-box-runs/{uuid.uuid4()}",
        admitted_at=now,
        deadline_at=now + timedelta(seconds=600),
    )


def _plan(user: User) -> FanoutRequest:
    return FanoutRequest.objects.create(
        conversation=ensure_conversation(user),
        requesting_principal={"type": "user", "id": str(user.pk)},
        requested_count=1,
        effective_limits={},
        admitted_count=1,
        queued_count=0,
        state=FanoutState.ADMITTED,
    )


def _pairing() -> Any:
    return start_pairing(
        name="mine", tier="curated", platform="linux-x64", agent_version="0.1.0", roots=["/home/mine"]
    )
