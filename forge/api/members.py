"""Who may use a repository: members, and computers by grant."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from accounts.scopes import Scope
from base.api.fields import OneOfField
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from forge import services
from forge.api.finding import find_repository, find_user, own_repository
from forge.models import MachineGrant, Membership
from forge.states import Operation, Role
from work.errors import MachineNotFound
from work.models import Machine


class MemberSerializer(serializers.ModelSerializer[Membership]):
    user = serializers.CharField(source="user.slug", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices, read_only=True)

    class Meta:
        model = Membership
        fields = ("id", "user", "role", "created_at")
        read_only_fields = fields


class SetMemberSerializer(StrictSerializer):
    user = serializers.CharField(help_text="The user's slug.")
    role = OneOfField(Role)


class Members(OwnedList):
    """The members of a repository, newest first."""

    lookup_errors = ("repository_not_found",)
    queryset = Membership.objects.none()
    serializer_class = MemberSerializer
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[Membership]:
        repository = find_repository(self.request, self.kwargs["repository_id"])
        return Membership.objects.select_related("user").filter(repository=repository)

    @extend_schema(
        summary="Give a user a role",
        parameters=[KEY],
        extensions=refusals(
            "repository_not_yours_to_change", "member_not_found", "repository_needs_an_owner", *KEY_ERRORS
        ),
        description="A role that the user has already is replaced. For owners and maintainers; only an owner makes owners.",
        request=SetMemberSerializer,
        responses={
            201: MemberSerializer,
        },
    )
    def post(self, request: Request, repository_id: UUID) -> Response:
        wanted = SetMemberSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        repository = own_repository(request, repository_id)
        user, role = find_user(wanted.validated_data["user"]), wanted.validated_data["role"]

        def make(_: UUID) -> Answer:
            member = services.set_member(repository, user, role, by=user_of(request))
            return Answer(201, dict(MemberSerializer(member).data))

        return made_once(request, f"POST /repositories/{repository_id}/members", make)


class MemberDetail(ApiView):
    lookup_errors = ("repository_not_found",)
    write_scope = Scope.FORGE_WRITE

    @extend_schema(
        summary="Take a user's role away",
        extensions=refusals(
            "repository_not_yours_to_change", "member_not_found", "repository_needs_an_owner"
        ),
        responses={204: None},
    )
    def delete(self, request: Request, repository_id: UUID, user: str) -> Response:
        repository = own_repository(request, repository_id)
        services.remove_member(repository, find_user(user), by=user_of(request))
        return Response(status=204)


class GrantSerializer(serializers.ModelSerializer[MachineGrant]):
    machine = serializers.UUIDField(source="machine_id", read_only=True)
    machine_name = serializers.CharField(source="machine.name", read_only=True)
    operations = serializers.ListField(child=serializers.ChoiceField(choices=Operation.choices))

    class Meta:
        model = MachineGrant
        fields = ("id", "machine", "machine_name", "operations", "created_at")
        read_only_fields = fields


class GrantMachineSerializer(StrictSerializer):
    machine = serializers.UUIDField(help_text="One of the caller's own computers.")
    operations = serializers.ListField(child=serializers.CharField(), help_text="read, write, or both")


class MachineGrants(OwnedList):
    """The computers that may use a repository by their own tokens."""

    lookup_errors = ("repository_not_found", "repository_not_yours_to_change")
    queryset = MachineGrant.objects.none()
    serializer_class = GrantSerializer
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[MachineGrant]:
        repository = own_repository(self.request, self.kwargs["repository_id"])
        return MachineGrant.objects.select_related("machine").filter(repository=repository)

    @extend_schema(
        summary="Let a computer fetch or push",
        parameters=[KEY],
        extensions=refusals("machine_not_found", *KEY_ERRORS),
        description="By its own token, while it is paired. A grant that it has already is replaced.",
        request=GrantMachineSerializer,
        responses={201: GrantSerializer},
    )
    def post(self, request: Request, repository_id: UUID) -> Response:
        wanted = GrantMachineSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        repository = own_repository(request, repository_id)
        machine = Machine.objects.filter(
            pk=wanted.validated_data["machine"], user=user_of(request), status="active"
        ).first()
        if machine is None:
            raise MachineNotFound

        def make(_: UUID) -> Answer:
            grant = services.grant_machine(repository, machine, wanted.validated_data["operations"])
            return Answer(201, dict(GrantSerializer(grant).data))

        return made_once(request, f"POST /repositories/{repository_id}/machines", make)


class MachineGrantDetail(ApiView):
    lookup_errors = ("repository_not_found",)
    write_scope = Scope.FORGE_WRITE

    @extend_schema(
        summary="Take a computer's grant away",
        extensions=refusals("repository_not_yours_to_change", "machine_not_found"),
        responses={204: None},
    )
    def delete(self, request: Request, repository_id: UUID, machine_id: UUID) -> Response:
        repository = own_repository(request, repository_id)
        grant = (
            MachineGrant.objects.select_related("machine")
            .filter(repository=repository, machine_id=machine_id)
            .first()
        )
        if grant is None:
            raise MachineNotFound
        services.revoke_machine_grant(repository, grant.machine)
        return Response(status=204)
