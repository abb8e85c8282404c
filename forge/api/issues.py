"""Issues with the attempts at them, and comments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
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
from base.api.filters import MomentFilter
from base.api.pagination import NewestFirstPagination
from base.api.schema import refusals
from base.api.serializers import StrictSerializer
from base.api.views import ApiView, OwnedList
from forge import services
from forge.api.finding import find_issue, find_repository, writable_repository
from forge.assignments import attempts_for_issues, cancel_by_viewer
from forge.errors import AssignmentNotFound
from forge.models import Comment, Issue
from forge.states import AssignmentState, IssueState, RequesterKind, TargetKind

FAILURE_REASON = (
    "Null unless it failed or was cancelled. Else `assignment_expired`, `cancelled_by_request`, `cancelled_by_viewer`,"
    " `repository_not_writable`, `machine_revoked`, `scoped_forge_credentials_disabled`, `owner_deleted`, `run_cancelled`,"
    " `run_failed`, or the code of what ended the run or the job, or of what refused to start it: new ones may come."
)


class AttemptSerializer(serializers.Serializer[Any]):
    """One attempt, as everybody who sees the issue may know it."""

    id = serializers.UUIDField()
    target_kind = serializers.ChoiceField(choices=TargetKind.choices)
    state = serializers.ChoiceField(choices=AssignmentState.choices)
    branch = serializers.CharField()
    terminal_branch = serializers.CharField(allow_null=True)
    terminal_commit = serializers.CharField(allow_null=True)
    failure_reason = serializers.CharField(allow_null=True, help_text=FAILURE_REASON)
    admitted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    requester_kind = serializers.ChoiceField(choices=RequesterKind.choices)


class IssueSerializer(serializers.ModelSerializer[Issue]):
    author = serializers.CharField(source="author.slug", read_only=True, default=None, allow_null=True)
    state = serializers.ChoiceField(choices=IssueState.choices, read_only=True)
    labels = serializers.ListField(child=serializers.CharField(), read_only=True)
    attempts = AttemptSerializer(many=True, read_only=True, help_text="Oldest first; failed ones too.")

    class Meta:
        model = Issue
        fields = (
            "number",
            "repository",
            "title",
            "body",
            "state",
            "state_reason",
            "labels",
            "author",
            "comment_count",
            "attempts",
            "closed_at",
            "created_at",
            "updated_at",
        )
        read_only_fields = fields


class ChangeIssueSerializer(StrictSerializer):
    title = serializers.CharField(required=False)
    body = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    labels = serializers.ListField(child=serializers.CharField(), required=False)
    state = OneOfField(IssueState, required=False)
    state_reason = serializers.CharField(required=False, allow_null=True)


class CreateIssueSerializer(StrictSerializer):
    title = serializers.CharField()
    body = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    labels = serializers.ListField(child=serializers.CharField(), required=False)


class CommentSerializer(serializers.ModelSerializer[Comment]):
    author = serializers.CharField(source="author.slug", read_only=True, default=None, allow_null=True)

    class Meta:
        model = Comment
        fields = ("id", "body", "author", "created_at")
        read_only_fields = fields


class CreateCommentSerializer(StrictSerializer):
    body = serializers.CharField(allow_blank=True, trim_whitespace=False)


class IssueFilter(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=IssueState.choices)
    label = django_filters.CharFilter(method="with_label")
    author = django_filters.CharFilter(field_name="author__slug", lookup_expr="iexact")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Issue
        fields: tuple[str, ...] = ()

    def with_label(self, issues: QuerySet[Issue], name: str, value: str) -> QuerySet[Issue]:
        return issues.filter(labels__contains=[value])


class IssuePagination(NewestFirstPagination):
    ordering = ("-number",)


def show(issue: Issue) -> dict[str, Any]:
    """The issue as the API shows it, with its attempts."""
    return dict(IssueSerializer(_with_attempts([issue])[0]).data)


def _with_attempts(issues: list[Issue]) -> list[Issue]:
    attempts = attempts_for_issues(issues)
    for issue in issues:
        issue.attempts = attempts[issue.pk]  # type: ignore[attr-defined]  # for the serializer
    return issues


class Issues(OwnedList):
    """The issues of a repository, newest first."""

    lookup_errors = ("repository_not_found",)
    queryset = Issue.objects.none()
    serializer_class = IssueSerializer
    pagination_class = IssuePagination
    filterset_class = IssueFilter
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[Issue]:
        repository = find_repository(self.request, self.kwargs["repository_id"])
        return Issue.objects.select_related("author").filter(repository=repository)

    def paginate_queryset(self, queryset: Any) -> Any:
        return _with_attempts(super().paginate_queryset(queryset) or [])

    @extend_schema(
        summary="Open an issue",
        parameters=[KEY],
        extensions=refusals(*KEY_ERRORS),
        description="Whoever may see the repository may.",
        request=CreateIssueSerializer,
        responses={201: IssueSerializer},
    )
    def post(self, request: Request, repository_id: UUID) -> Response:
        wanted = CreateIssueSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        repository = find_repository(request, repository_id)

        def make(_: UUID) -> Answer:
            made = services.create_issue(repository, author=user_of(request), **wanted.validated_data)
            return Answer(201, show(find_issue(repository, made.number)))

        route = f"POST /repositories/{repository_id}/issues"
        return made_once(request, route, make)


class IssueDetail(ApiView):
    lookup_errors = (
        "repository_not_found",
        "issue_not_found",
    )
    write_scope = Scope.FORGE_WRITE

    @extend_schema(summary="One issue with the attempts at it", responses={200: IssueSerializer})
    def get(self, request: Request, repository_id: UUID, number: int) -> Response:
        return Response(show(find_issue(find_repository(request, repository_id), number)))

    @extend_schema(
        summary="Change, close or reopen an issue",
        extensions=refusals("repository_not_writable"),
        description="For who may write to the repository, and its author.",
        request=ChangeIssueSerializer,
        responses={200: IssueSerializer},
    )
    def patch(self, request: Request, repository_id: UUID, number: int) -> Response:
        wanted = ChangeIssueSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        issue = find_issue(find_repository(request, repository_id), number)
        if issue.author_id != request.user.pk:
            writable_repository(request, repository_id)
        services.update_issue(issue, **wanted.validated_data)
        return Response(show(find_issue(issue.repository, number)))


class Comments(OwnedList):
    """What was said about an issue, newest first."""

    lookup_errors = (
        "repository_not_found",
        "issue_not_found",
    )
    queryset = Comment.objects.none()
    serializer_class = CommentSerializer
    write_scope = Scope.FORGE_WRITE

    def rows(self) -> QuerySet[Comment]:
        repository = find_repository(self.request, self.kwargs["repository_id"])
        issue = find_issue(repository, self.kwargs["number"])
        return Comment.objects.select_related("author").filter(issue=issue)

    @extend_schema(
        summary="Comment on an issue",
        parameters=[KEY],
        extensions=refusals(*KEY_ERRORS),
        request=CreateCommentSerializer,
        responses={201: CommentSerializer},
    )
    def post(self, request: Request, repository_id: UUID, number: int) -> Response:
        wanted = CreateCommentSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        issue = find_issue(find_repository(request, repository_id), number)

        def make(_: UUID) -> Answer:
            made = services.create_comment(issue, author=user_of(request), **wanted.validated_data)
            return Answer(201, dict(CommentSerializer(made).data))

        route = f"POST /repositories/{repository_id}/issues/{number}/comments"
        return made_once(request, route, make)


class CancelAttempt(ApiView):
    lookup_errors = (
        "repository_not_found",
        "issue_not_found",
        "assignment_not_found",
    )
    write_scope = Scope.FORGE_WRITE

    @extend_schema(
        summary="Cancel an attempt at this issue",
        extensions=refusals("repository_not_writable", "assignment_not_live"),
        description="Whoever's it is; for who may write to the repository.",
        request=None,
        responses={202: IssueSerializer},
    )
    def post(self, request: Request, repository_id: UUID, number: int, attempt_id: UUID) -> Response:
        issue = find_issue(find_repository(request, repository_id), number)
        if not issue.assignments.filter(pk=attempt_id).exists():
            raise AssignmentNotFound
        cancel_by_viewer(user_of(request), attempt_id)
        return Response(show(issue), status=202)
