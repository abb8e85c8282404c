"""Making an attempt: what must hold, in order, and then one transaction that claims everything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction

from accounts.models import User
from base.clock import database_now
from conversations.models import Conversation
from conversations.services import ConversationNotFound
from forge import credentials
from forge.assignments import starting, watching
from forge.assignments.checking import Checked, check, owned_conversation
from forge.credentials import NewSecret
from forge.errors import AssignmentError, BoxBusy, IssueClaimed, MachineBusy
from forge.models import Assignment, AssignmentCredential
from forge.states import Delivery, TargetKind

log = structlog.get_logger(__name__)

START_SECONDS = 60
"""How long whoever makes the attempt has to start it; then a worker does."""

_CLAIMS: Mapping[str, type[AssignmentError]] = {
    "forge_assignments_one_active_issue_index": IssueClaimed,
    "forge_assignments_one_active_box_index": BoxBusy,
    "forge_assignments_one_active_machine_index": MachineBusy,
}
_CREATION_KEY = "forge_assignments_creation_key_index"


def create(
    *,
    requesting_user: User,
    repository_id: UUID | str,
    issue_number: int | str | None = None,
    issue_id: int | None = None,
    target_kind: str | None = None,
    conversation_id: UUID | None = None,
    box_id: str | UUID | None = None,
    machine_id: UUID | str | None = None,
    branch: str | None = None,
    requesting_principal: User | Mapping[str, Any] | None = None,
    command: str | None = None,
    prompt: str | None = None,
    agent_id: str | None = None,
    cwd: str | None = None,
    deadline_at: datetime | str | None = None,
    idempotency_key: str | None = None,
) -> tuple[Assignment, str | None]:
    """Make an attempt and start it; returns it with the plaintext of its credential, which is nowhere else.

    A box gets a run with the repository cloned on the branch, in which `command` (default `true`) is carried out; a computer
    gets a delegation to `agent_id` in `cwd` with `prompt`, or else what the issue says. The deadline is the earliest of the
    box's time to live, the issue's wall clock, and `deadline_at`. With an `idempotency_key` that this conversation used,
    the attempt of that time comes back, without a plaintext.

    Raises, in this order: InvalidTarget, ConversationNotFound, BoxNotOwned, BoxStopped, MachineNotFound, MachineRevoked,
    MachineOffline, RepositoryNotFound, IssueNotFound, InvalidBranch, ProtectedBranch, InvalidPrincipal,
    RepositoryNotWritable, what is wrong with the rest (as a command for a computer), IssueClaimed, BoxBusy, MachineBusy. Then nothing is written. If it
    cannot be started it has failed with that code, which is raised; AssignmentFinished if it ended before that.
    """
    asked = dict(locals())
    if idempotency_key and (known := _made_before(owned_conversation(asked), idempotency_key)):
        return known, None  # whatever has changed since: it was made
    checked = check(asked)
    assignment, secret = _claim(checked, idempotency_key)
    if secret is None:
        return assignment, None
    return starting.start(assignment), secret.plaintext


def _claim(checked: Checked, key: str | None) -> tuple[Assignment, NewSecret | None]:
    """The transaction. Without a secret the attempt is one of the same key that was faster."""
    try:
        with transaction.atomic():
            _hold(checked.conversation)
            assignment = _insert(checked, key)
            secret = credentials.new_secret(assignment.pk)
            AssignmentCredential.objects.create(
                assignment=assignment,
                token_digest=secret.digest,
                last_four=secret.last_four,
                repository=checked.repository,
                branch=checked.branch,
                expires_at=assignment.deadline_at,
            )
            watching.changed(assignment.pk)
    except IntegrityError as error:
        name = _constraint(error)
        if name == _CREATION_KEY and key and (known := _made_before(checked.conversation, key)):
            return known, None
        if name in _CLAIMS:
            raise _CLAIMS[name] from None
        raise
    log.info("assignment_admitted", assignment=str(assignment.pk), target=assignment.target_kind)
    return assignment, secret


def _insert(checked: Checked, key: str | None) -> Assignment:
    now = database_now()
    on_box = checked.target_kind == TargetKind.BOX
    return Assignment.objects.create(
        target_kind=checked.target_kind,
        conversation=checked.conversation,
        conversation_box=checked.box,
        machine=checked.machine,
        repository=checked.repository,
        issue=checked.issue,
        requesting_principal=checked.principal,
        creation_key=key,
        branch=checked.branch,
        command=checked.command,
        prompt=checked.prompt,
        agent_id=checked.agent_id,
        cwd=checked.cwd,
        credential_delivery_status=Delivery.NOT_APPLICABLE if on_box else Delivery.PENDING,
        admitted_at=now,
        deadline_at=checked.deadline(now),
        lease_expires_at=now + timedelta(seconds=START_SECONDS),
        next_step_at=min(now + timedelta(seconds=START_SECONDS), checked.deadline(now)),
    )


def _hold(conversation: Conversation) -> None:
    """The conversation stays as it is until commit: its deletion ends the attempts that it sees."""
    rows = Conversation.objects.select_for_update(of=("self",), no_key=True)
    if not rows.filter(pk=conversation.pk, deleted_at=None).exists():
        raise ConversationNotFound


def _made_before(conversation: Conversation, key: str) -> Assignment | None:
    return Assignment.objects.filter(conversation=conversation, creation_key=key).first()


def _constraint(error: IntegrityError) -> str:
    diagnostics = getattr(error.__cause__, "diag", None)
    return str(getattr(diagnostics, "constraint_name", None) or "")
