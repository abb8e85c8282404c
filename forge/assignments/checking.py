"""What must hold before an attempt is made. The first thing that does not is what the caller hears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime

from accounts.models import User
from base.clock import database_now
from boxes import selectors as box_selectors
from boxes.conf import box_api
from boxes.errors import BoxStopped
from boxes.models import Box
from conversations.models import Conversation
from conversations.services import ConversationNotFound, conversation_of
from forge import names
from forge.assignments import objective
from forge.errors import (
    BoxNotOwned,
    FieldsInvalid,
    InvalidBranch,
    InvalidDeadline,
    InvalidPrincipal,
    InvalidTarget,
    IssueNotFound,
    ProtectedBranch,
    RepositoryNotFound,
    RepositoryNotWritable,
)
from forge.models import Issue, Repository
from forge.selectors import ready_repository, role_of
from forge.states import WRITERS, TargetKind, Visibility
from runs.services.admission import check_command
from work import limits as work_limits
from work.delegations import check_known
from work.errors import MachineNotFound, MachineRevoked
from work.machines.errors import MachineOffline
from work.machines.presence import is_online
from work.models import Machine
from work.states import MachineStatus

DEFAULT_COMMAND = "true"
_LONGEST = {
    "agent_id": work_limits.AGENT_ID_BYTES,
    "cwd": work_limits.CWD_BYTES,
    "prompt": work_limits.PROMPT_BYTES,
}
_NOT_FOR = {
    TargetKind.BOX: (("machine", "machine_id"), ("agent_id", "agent_id"), ("cwd", "cwd")),
    TargetKind.COMPUTER: (("box", "box_id"), ("command", "command")),
}
"""What says how the other kind of target is to work: as the caller calls it, and the keyword."""

LARGEST_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Checked:
    """An attempt that may be made, but for what others claim."""

    target_kind: TargetKind
    conversation: Conversation
    box: Box | None
    machine: Machine | None
    repository: Repository
    issue: Issue
    branch: str
    principal: dict[str, Any]
    command: str | None
    prompt: str | None
    agent_id: str | None
    cwd: str | None
    wanted_deadline: datetime | None

    def deadline(self, now: datetime) -> datetime:
        """The earliest of all that limit it; a caller can only narrow."""
        seconds = min(box_api().ttl_seconds, objective.wall_clock_seconds(self.issue.body))
        latest = now + timedelta(seconds=seconds)
        return latest if self.wanted_deadline is None else min(latest, self.wanted_deadline)


def check(asked: Mapping[str, Any]) -> Checked:
    """The attempt that is asked for, by the keywords of `forge.assignments.create`. Raises what it says there."""
    kind = _target_kind(asked["target_kind"], asked["machine_id"])
    user, conversation = _owner(asked["requesting_user"], asked["conversation_id"])
    box = _box(conversation, asked["box_id"]) if kind == TargetKind.BOX else None
    machine = _machine(user, asked["machine_id"]) if kind == TargetKind.COMPUTER else None
    repository = _repository(user, asked["repository_id"])
    issue = _issue(repository, asked["issue_number"], asked["issue_id"])
    branch = _branch(asked["branch"], issue, repository)
    principal = _principal(asked["requesting_principal"], user)
    if role_of(user, repository) not in WRITERS:
        raise RepositoryNotWritable
    return Checked(
        target_kind=kind,
        conversation=conversation,
        box=box,
        machine=machine,
        repository=repository,
        issue=issue,
        branch=branch,
        principal=principal,
        wanted_deadline=_deadline(asked["deadline_at"]),
        **_what_to_do(kind, machine, asked),
    )


def owned_conversation(asked: Mapping[str, Any]) -> Conversation:
    """The conversation that the attempt is to be of. Raises ConversationNotFound."""
    return _owner(asked["requesting_user"], asked["conversation_id"])[1]


def _target_kind(kind: Any, machine_id: Any) -> TargetKind:
    if kind is None:
        return TargetKind.COMPUTER if machine_id is not None else TargetKind.BOX
    if kind not in TargetKind.values:
        raise InvalidTarget
    return TargetKind(kind)


def _owner(user: Any, conversation_id: Any) -> tuple[User, Conversation]:
    if not isinstance(user, User) or not user.is_active:
        raise ConversationNotFound
    if conversation_id is not None and not isinstance(conversation_id, UUID):
        try:
            conversation_id = UUID(str(conversation_id))
        except ValueError:
            raise ConversationNotFound from None
    return user, conversation_of(user, conversation_id)


def _box(conversation: Conversation, box_id: Any) -> Box:
    box = None if box_id is None else box_selectors.find(conversation.pk, box_id)
    if box is None:
        raise BoxNotOwned
    if box.stopped_at is not None or box.stop_requested_at is not None:
        raise BoxStopped
    return box


def _machine(user: User, machine_id: Any) -> Machine:
    try:
        wanted = UUID(str(machine_id))
    except ValueError:
        raise MachineNotFound from None
    machine = Machine.objects.select_related("channel").filter(pk=wanted, user=user).first()
    if machine is None:
        raise MachineNotFound
    if machine.status != MachineStatus.ACTIVE:
        raise MachineRevoked
    if not is_online(machine, database_now()):
        raise MachineOffline
    return machine


def _repository(user: User, repository_id: Any) -> Repository:
    repository = ready_repository(repository_id)
    if repository.visibility != Visibility.PUBLIC and role_of(user, repository) is None:
        raise RepositoryNotFound
    return repository


def _issue(repository: Repository, number: Any, issue_id: Any) -> Issue:
    wanted = _whole(issue_id, 2**63 - 1) if number is None else _whole(number, LARGEST_NUMBER)
    rows = Issue.objects.filter(repository=repository)
    issue = rows.filter(pk=wanted).first() if number is None else rows.filter(number=wanted).first()
    if issue is None:
        raise IssueNotFound
    return issue


def _whole(value: Any, most: int) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not 1 <= int(text) <= most:
        raise IssueNotFound
    return int(text)


def _branch(branch: Any, issue: Issue, repository: Repository) -> str:
    name = names.default_branch_of(issue.number) if branch is None else branch
    if not names.is_branch_name(name):
        raise InvalidBranch
    if names.is_protected(name, repository.default_branch, repository.protected_branches):
        raise ProtectedBranch
    return str(name)


def _principal(principal: Any, user: User) -> dict[str, Any]:
    """Who asks, as the row keeps it. Only users ask, each for themselves."""
    if isinstance(principal, Mapping):
        is_user = principal.get("type") == "user" and str(principal.get("id")) == str(user.pk)
    else:
        is_user = principal is None or principal == user
    if not is_user:
        raise InvalidPrincipal
    return {"type": "user", "id": str(user.pk), "actor_type": "user", "actor_id": str(user.pk)}


def _deadline(wanted: Any) -> datetime | None:
    if wanted is None:
        return None
    try:
        moment = wanted if isinstance(wanted, datetime) else parse_datetime(str(wanted))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment <= database_now():
        raise InvalidDeadline
    return moment


def _what_to_do(kind: TargetKind, machine: Machine | None, asked: Mapping[str, Any]) -> dict[str, str | None]:
    beside_it = {shown: f"is not for a {kind}" for shown, name in _NOT_FOR[kind] if asked[name] is not None}
    wrong = beside_it | _too_long(
        asked, ["prompt"] if kind == TargetKind.BOX else ["agent_id", "cwd", "prompt"]
    )
    if wrong:
        raise FieldsInvalid(wrong)
    if machine is None:
        command = DEFAULT_COMMAND if asked["command"] is None else asked["command"]
        check_command(command)
        objective.check_length(command)
        return {"command": command, "prompt": asked["prompt"], "agent_id": None, "cwd": None}
    check_known(machine, asked["agent_id"], asked["prompt"] or "", asked["cwd"])
    return {"command": None, "prompt": asked["prompt"], "agent_id": asked["agent_id"], "cwd": asked["cwd"]}


def _too_long(asked: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """What is missing or too long, by field; only a prompt may be missing."""
    return {
        name: f"1 to {_LONGEST[name]:,} bytes"
        for name in names
        if not (name == "prompt" and asked[name] is None) and not _fits(asked[name], _LONGEST[name])
    }


def _fits(text: Any, most: int) -> bool:
    return (
        isinstance(text, str)
        and bool(text.strip())
        and "\0" not in text
        and len(text.encode(errors="replace")) <= most
    )
