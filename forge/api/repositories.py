"""Repositories, and what was pushed to them."""

from __future__ import annotations

from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from accounts.scopes import Scope
from base.api.fields import OneOfField
from base.api.filters import MomentFilter
from base.api.pagination import NewestFirstPagination
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from forge import services
from forge.api.finding import find_repository, own_repository, repositories_of
from forge.assignments.objective import clone_url
from forge.limits import PUSHES_SHOWN
from forge.models import Push, Repository
from forge.states import Lifecycle, Visibility


class RepositorySerializer(serializers.ModelSerializer[Repository]):
    owner = serializers.CharField(source="owner.slug", read_only=True)
    visibility = serializers.ChoiceField(choices=Visibility.choices, read_only=True)
    lifecycle_state = serializers.ChoiceField(choices=Lifecycle.choices, read_only=True)
    clone_url = serializers.SerializerMethodField(help_text="For git; no secret is in it.")

    class Meta:
        model = Repository
        fields = (
            "id",
            "owner",
            "name",
            "description",
            "visibility",
            "default_branch",
            "protected_branches",
            "lifecycle_state",
            "clone_url",
            "created_at",
            "ready_at",
            "pushed_at",
        )
        read_only_fields = fields

    def get_clone_url(self, repository: Repository) -> str:
        return clone_url(repository)


class ChangeRepositorySerializer(StrictSerializer):
    description = serializers.CharField(required=False, allow_blank=True)
    visibility = OneOfField(Visibility, required=False)
    default_branch = serializers.CharField(required=False)
    protected_branches = serializers.ListField(child=serializers.CharField(), required=False)


class CreateRepositorySerializer(ChangeRepositorySerializer):
    name = serializers.CharField(help_text="1 to 64 lower-case letters, digits, _, - and .")


class RepositoryFilter(django_filters.FilterSet):
    owner = django_filters.CharFilter(field_name="owner__slug", lookup_expr="iexact")
    name = django_filters.CharFilter()
    visibility = django_filters.ChoiceFilter(choices=Visibility.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Repository
        fields: tuple[str, ...] = ()


class Repositories(OwnedList):
    """The caller's repositories and the public ones, newest first."""

    queryset = Repository.objects.none()
    serializer_class = RepositorySerializer
    filterset_class = RepositoryFilter
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[Repository]:
        return repositories_of(self.request)

    @extend_schema(
        summary="Make a repository",
        parameters=[KEY],
        extensions=refusals(
            "invalid_repository_name", "repository_taken", "repository_not_made", *KEY_ERRORS
        ),
        description="Empty, in the caller's namespace; ready when this answers.",
        request=CreateRepositorySerializer,
        responses={201: RepositorySerializer},
    )
    def post(self, request: Request) -> Response:
        wanted = CreateRepositorySerializer(data=request.data)
        wanted.is_valid(raise_exception=True)

        def make(_: UUID) -> Answer:
            made = services.create_repository(user_of(request), **wanted.validated_data)
            return Answer(201, dict(RepositorySerializer(made).data))

        return made_once(request, "POST /repositories", make)


class RepositoryDetail(ApiView):
    lookup_errors = ("repository_not_found",)
    write_scope = Scope.FORGE_WRITE

    @extend_schema(summary="One repository", responses={200: RepositorySerializer})
    def get(self, request: Request, repository_id: UUID) -> Response:
        return Response(RepositorySerializer(find_repository(request, repository_id)).data)

    @extend_schema(
        summary="Change a repository",
        extensions=refusals("repository_not_yours_to_change"),
        description="For its owners and maintainers.",
        request=ChangeRepositorySerializer,
        responses={200: RepositorySerializer},
    )
    def patch(self, request: Request, repository_id: UUID) -> Response:
        wanted = ChangeRepositorySerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        repository = own_repository(request, repository_id)
        changed = services.update_repository(repository, **wanted.validated_data)
        return Response(RepositorySerializer(changed).data)


class PushSerializer(serializers.ModelSerializer[Push]):
    link = serializers.SerializerMethodField(help_text="SHA-256 over the link before it and this receipt.")
    previous_link = serializers.SerializerMethodField()
    refs = serializers.DictField(help_text="ref -> {old, new}; null where it was made or deleted")

    class Meta:
        model = Push
        fields = (
            "sequence",
            "principal",
            "refs",
            "duration_ms",
            "recovered",
            "recorded_at",
            "previous_link",
            "link",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_link(self, push: Push) -> str:
        return bytes(push.link).hex()

    @extend_schema_field(serializers.CharField())
    def get_previous_link(self, push: Push) -> str:
        return bytes(push.previous_link).hex()


class PushPagination(NewestFirstPagination):
    ordering = ("-sequence",)
    page_size = 30
    max_page_size = PUSHES_SHOWN


class Pushes(OwnedList):
    """The receipts of a repository's pushes, newest first."""

    lookup_errors = ("repository_not_found",)
    queryset = Push.objects.none()
    serializer_class = PushSerializer
    pagination_class = PushPagination

    def rows(self) -> QuerySet[Push]:
        return Push.objects.filter(repository=find_repository(self.request, self.kwargs["repository_id"]))
