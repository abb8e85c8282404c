"""Attempts at issues."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import token_of, user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from accounts.permissions import InsufficientScope
from accounts.scopes import Scope
from accounts.services import scopes_of
from accounts.waiting import WAIT, after_waiting
from base.api.fields import MomentTextField, OneOfField
from base.api.filters import MomentFilter, WholeNumberFilter
from base.api.pagination import NewestFirstPagination
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from conversations.listing import by_conversation
from forge import assignments
from forge.api.issues import FAILURE_REASON
from forge.assignments.watching import key_of
from forge.errors import CREATION_ERRORS, AssignmentNotFound, TargetRevoked
from forge.models import Assignment
from forge.states import AssignmentState, Delivery, TargetKind
from work.errors import MachineRevoked

CREATES_PER_MINUTE = 10


class AssignmentSerializer(serializers.ModelSerializer[Assignment]):
    """An attempt. Its credential is in no answer."""

    target_kind = serializers.ChoiceField(choices=TargetKind.choices, read_only=True)
    state = serializers.ChoiceField(choices=AssignmentState.choices, read_only=True)
    is_terminal = serializers.BooleanField(read_only=True)
    box = serializers.UUIDField(source="conversation_box_id", read_only=True, allow_null=True)
    issue_number = serializers.IntegerField(source="issue.number", read_only=True)
    run = serializers.UUIDField(source="run_id", read_only=True, allow_null=True)
    job = serializers.UUIDField(source="work_job_id", read_only=True, allow_null=True)
    credential_delivery_status = serializers.ChoiceField(choices=Delivery.choices, read_only=True)
    failure_reason = serializers.CharField(read_only=True, allow_null=True, help_text=FAILURE_REASON)

    class Meta:
        model = Assignment
        fields = (
            "id",
            "repository",
            "issue_number",
            "conversation",
            "target_kind",
            "box",
            "machine",
            "run",
            "job",
            "branch",
            "command",
            "prompt",
            "agent_id",
            "cwd",
            "state",
            "is_terminal",
            "terminal_branch",
            "terminal_commit",
            "failure_reason",
            "credential_delivery_status",
            "credential_delivery_reason",
            "requesting_principal",
            "admitted_at",
            "started_at",
            "finished_at",
            "deadline_at",
        )
        read_only_fields = fields


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class NumberField(serializers.Field[Any, Any, Any, Any]):
    """Whatever names an issue; whether there is such a one is found out later."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, bool) or not isinstance(data, int | str):
            raise serializers.ValidationError("must be a number")
        return str(data)


class CreateAssignmentSerializer(StrictSerializer):
    repository = serializers.CharField(help_text="The repository's id.")
    issue_number = NumberField(help_text="The issue's number, also as text.")
    target_kind = OneOfField(TargetKind, required=False, help_text="By default that of what is named.")
    conversation = serializers.UUIDField(required=False, help_text="Default: the caller's own.")
    box = serializers.CharField(required=False, help_text="Our id, the provider's id, or the label of a box.")
    machine = serializers.CharField(required=False, help_text="The id of a paired computer.")
    branch = serializers.CharField(required=False, help_text="Default: agent/issue-<number>.")
    command = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="What the box runs in the repository.",
    )
    prompt = serializers.CharField(
        required=False, trim_whitespace=False, help_text="Default: what the issue says."
    )
    agent_id = serializers.CharField(required=False, help_text="The agent on the computer.")
    cwd = serializers.CharField(required=False, help_text="Where it works.")
    deadline_at = MomentTextField(required=False, help_text="With a time zone; only narrows.")


class AssignmentFilter(django_filters.FilterSet):
    repository = django_filters.UUIDFilter()
    issue_number = WholeNumberFilter(field_name="issue__number")
    conversation = django_filters.UUIDFilter()
    box = django_filters.UUIDFilter(field_name="conversation_box")
    machine = django_filters.UUIDFilter()
    state = django_filters.ChoiceFilter(choices=AssignmentState.choices)
    created_after = MomentFilter(field_name="admitted_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="admitted_at", lookup_expr="lt")

    class Meta:
        model = Assignment
        fields: tuple[str, ...] = ()


class AssignmentPagination(NewestFirstPagination):
    ordering = ("-admitted_at", "-id")


def assignments_of(request: Request) -> QuerySet[Assignment]:
    """The attempts that the caller may see: those of their conversations."""
    rows = Assignment.objects.select_related("issue")
    if all_owners(request):
        return rows
    return rows.filter(conversation__visitor__user=request.user.pk, conversation__deleted_at=None)


def find_assignment(request: Request, assignment_id: UUID) -> Assignment:
    """Raises AssignmentNotFound."""
    found = assignments_of(request).filter(pk=assignment_id).first()
    if found is None:
        raise AssignmentNotFound
    return found


class Assignments(OwnedList):
    """The caller's attempts, newest first."""

    queryset = Assignment.objects.none()
    serializer_class = AssignmentSerializer
    pagination_class = AssignmentPagination
    filterset_class = AssignmentFilter
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[Assignment]:
        return by_conversation(self.request, assignments_of(self.request))

    @extend_schema(
        summary="Let a box or a computer make an attempt at an issue", parameters=[KEY], extensions=refusals(*CREATION_ERRORS, "rate_limited", *KEY_ERRORS),
        description="Claims the issue and the target, and starts. The token also needs `box:control` for a box, or "
        "`computer:control` for a computer. The credential is in no answer.",
        request=CreateAssignmentSerializer,
        responses={202: AssignmentSerializer},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        rates.count(f"user:{request.user.pk}", "run_create", CREATES_PER_MINUTE, code="rate_limited")
        wanted = CreateAssignmentSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        _check_scope(request, wanted.validated_data)
        return made_once(
            request, "POST /assignments", lambda ticket: _create(request, wanted.validated_data, ticket)
        )


def _check_scope(request: Request, wanted: dict[str, Any]) -> None:
    """What is put to work must be the token's to use."""
    kind = wanted.get("target_kind", TargetKind.COMPUTER if "machine" in wanted else TargetKind.BOX)
    on_computer = kind == TargetKind.COMPUTER
    needed = Scope.COMPUTER_CONTROL if on_computer else Scope.BOX_CONTROL
    if needed not in scopes_of(token_of(request)):
        raise InsufficientScope(detail=f"this call needs a token with the scope {needed.value} as well")


def _create(request: Request, wanted: dict[str, Any], ticket: UUID) -> Answer:
    names = {
        "repository": "repository_id",
        "box": "box_id",
        "machine": "machine_id",
        "conversation": "conversation_id",
    }
    keywords = {names.get(name, name): value for name, value in wanted.items()}
    try:
        made, _ = assignments.create(
            requesting_user=user_of(request), idempotency_key=f"api-{ticket}", **keywords
        )
    except MachineRevoked as refused:
        # To a computer that shows its token this is 401; the caller here is who they say.
        raise TargetRevoked(detail=refused.detail) from refused
    return Answer(202, dict(AssignmentSerializer(find_assignment(request, made.pk)).data))


class AssignmentDetail(ApiView):
    lookup_errors = ("assignment_not_found",)

    @extend_schema(
        summary="One attempt",
        description="With `wait`, answers when its state changes, at the latest after that time.",
        parameters=[WAIT],
        responses={200: AssignmentSerializer},
    )
    def get(self, request: Request, assignment_id: UUID) -> Response:
        found = after_waiting(request, lambda: find_assignment(request, assignment_id), key_of(assignment_id))
        return Response(AssignmentSerializer(found).data)


class CancelAssignment(ApiView):
    lookup_errors = ("assignment_not_found",)
    write_scope = Scope.FORGE_WRITE

    @extend_schema(
        summary="Cancel an attempt",
        description="Its credential is dead when this answers, and its run or job will be ended. One that has ended is "
        "answered as it is.",
        request=None,
        responses={202: AssignmentSerializer},
    )
    def post(self, request: Request, assignment_id: UUID) -> Response:
        found = find_assignment(request, assignment_id)
        assignments.cancel(found)
        return Response(AssignmentSerializer(find_assignment(request, assignment_id)).data, status=202)
