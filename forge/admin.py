"""Staff pages of the forge."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from base.admin import (
    Action,
    Outcome,
    ReadOnlyAdmin,
    ReadOnlyInline,
    already,
    done,
    link_column,
    relate,
    short,
    span_column,
    state_column,
)
from base.clock import database_now
from boxes.models import Box
from conversations.admin import FIND_BY_OWNER
from conversations.models import Conversation
from forge import assignments
from forge.assignments.expiring import expire_one
from forge.errors import AssignmentNotDue
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
from runs.models import Run
from work.models import Job, Machine

ASSIGNMENT_COLOURS = {"admitted": "info", "running": "info", "completed": "success", "failed": "danger"}


def cancel(assignment: Assignment, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    if assignment.is_terminal:
        return already(f"had ended: {assignment.state}")
    ended = assignments.cancel(assignment)
    return done(f"has ended: {ended.state}")


def expire(assignment: Assignment, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    if assignment.is_terminal:
        return already(f"had ended: {assignment.state}")
    if assignment.deadline_at > database_now():
        raise AssignmentNotDue
    return done(f"has ended: {expire_one(assignment).failure_reason}")


def _lives(assignment: Assignment) -> bool:
    return not assignment.is_terminal


CANCEL = Action(
    name="cancel",
    title="Cancel",
    warning="The attempt ends as cancelled, its credential dies at once, and what it started, a run or an agent on a "
    "computer, is ended. What it has pushed stays.",
    permission="finish_assignment",
    perform=cancel,
    icon="cancel",
    applies=_lives,
    dangerous=True,
)
EXPIRE = Action(
    name="expire",
    title="Expire",
    warning="Only for an attempt whose deadline has passed: it ends as failed, its credential dies at once, and what it started "
    "is ended. The worker does this by itself at the deadline.",
    permission="finish_assignment",
    perform=expire,
    icon="timer_off",
    applies=_lives,
    dangerous=True,
)


class MembershipInline(ReadOnlyInline):
    model = Membership
    fields = ("user", "role", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request).select_related("user")
        return rows


@admin.register(Repository)
class RepositoryAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "owner_link",
        "visibility",
        "shown_state",
        "default_branch",
        "pushed_at",
        "created_at",
    )
    list_filter = ("visibility", "lifecycle_state")
    list_select_related = ("owner",)
    search_fields = ("id", "^name", "owner__slug", "storage_key")
    search_help_text = "Id, name, owner or folder on disk"
    inlines = (MembershipInline,)
    shown_state = state_column(
        "lifecycle_state", {"ready": "success", "provisioning": "info", "failed": "danger"}
    )
    owner_link = link_column("owner")


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    list_display = ("user_link", "role", "repository_link", "created_at")
    list_filter = ("role",)
    list_select_related = ("repository__owner", "user")
    search_fields = ("repository", "^repository__name", "user__username", "user__slug")
    search_help_text = "Repository or user"
    user_link = link_column("user")
    repository_link = link_column("repository")


@admin.register(MachineGrant)
class MachineGrantAdmin(ReadOnlyAdmin):
    list_display = ("machine_link", "operations", "repository_link", "created_at")
    list_select_related = ("repository__owner", "machine")
    search_fields = ("repository", "machine")
    search_help_text = "Id of the repository or of the machine"
    machine_link = link_column("machine")
    repository_link = link_column("repository")


@admin.register(Issue)
class IssueAdmin(ReadOnlyAdmin):
    list_display = (
        "shown_title",
        "repository_link",
        "shown_state",
        "author_link",
        "comment_count",
        "created_at",
    )
    list_filter = ("state",)
    list_select_related = ("repository__owner", "author")
    ordering = ("-id",)
    search_fields = ("repository", "^repository__name", "author__username")
    search_help_text = "Repository or author"
    shown_state = state_column("state", {"open": "info", "closed": "success"})
    repository_link = link_column("repository")
    author_link = link_column("author")

    @display(description="issue")
    def shown_title(self, issue: Issue) -> str:
        return short(str(issue), 80)


@admin.register(Comment)
class CommentAdmin(ReadOnlyAdmin):
    list_display = ("shown_body", "issue_link", "author_link", "created_at")
    list_select_related = ("issue", "author")
    ordering = ("-id",)
    search_fields = ("issue", "author__username")
    search_help_text = "Id of the issue, or author"
    issue_link = link_column("issue")
    author_link = link_column("author")

    @display(description="comment")
    def shown_body(self, comment: Comment) -> str:
        return short(comment.body, 80)


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    list_display = ("branch", "issue_link", "target", "shown_state", "failure_reason", "short_commit", "admitted_at",
                    "deadline_at", "finished_at")  # fmt: skip
    list_filter = ("state",)
    list_select_related = ("issue", "conversation_box", "machine")
    sortable_by = ("admitted_at",)
    search_fields = ("id", "conversation_box", "machine", "issue", "repository", "conversation", "run", "work_job",
                     "^repository__name", FIND_BY_OWNER)  # fmt: skip
    search_help_text = "Id of it or of what it is about, repository or user name"
    date_hierarchy = "admitted_at"
    staff_actions = (CANCEL, EXPIRE)
    shown_state = state_column("state", ASSIGNMENT_COLOURS)
    issue_link = link_column("issue")

    @display(description="on")
    def target(self, assignment: Assignment) -> str:
        return str(assignment.conversation_box or assignment.machine)

    @display(description="commit")
    def short_commit(self, assignment: Assignment) -> str | None:
        return assignment.terminal_commit and assignment.terminal_commit[:12]


@admin.register(AssignmentCredential)
class AssignmentCredentialAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "assignment_link",
        "repository_link",
        "branch",
        "deliveries",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("assignment", "repository__owner")
    ordering = ("-assignment__admitted_at",)
    search_fields = ("id", "assignment", "repository")
    search_help_text = "Id of the credential, its assignment or repository"
    exclude = ("token_digest",)
    assignment_link = link_column("assignment")
    repository_link = link_column("repository")


@admin.register(Push)
class PushAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "repository_link", "shown_refs", "took", "recovered", "recorded_at")
    list_select_related = ("repository__owner",)
    ordering = ("-id",)
    search_fields = ("repository", "principal", "^repository__name")
    search_help_text = "Repository, or principal as in assignment:<id>"
    repository_link = link_column("repository")
    took = span_column("duration_ms", "took", per_second=1000)

    @display(description="refs")
    def shown_refs(self, push: Push) -> str:
        return short(", ".join(push.refs), 80)


@admin.register(PushIntent)
class PushIntentAdmin(ReadOnlyAdmin):
    list_display = ("repository_link", "principal", "started_at")
    list_select_related = ("repository__owner",)
    repository_link = link_column("repository")


def _attempts(**which: Any) -> QuerySet[Assignment]:
    return Assignment.objects.filter(**which).order_by("-admitted_at")


relate(
    Box,
    "Assignments",
    lambda box: _attempts(conversation_box=box),
    lambda box: {"conversation_box__id__exact": box.pk},
)
relate(Run, "Assignment", lambda run: _attempts(run=run))
relate(Job, "Assignment", lambda job: _attempts(work_job=job))
relate(
    Conversation,
    "Assignments",
    lambda conversation: _attempts(conversation=conversation),
    lambda conversation: {"conversation__id__exact": conversation.pk},
)
relate(
    Machine,
    "Assignments",
    lambda machine: _attempts(machine=machine),
    lambda machine: {"machine__id__exact": machine.pk},
)
relate(
    Machine, "Grants", lambda machine: MachineGrant.objects.filter(machine=machine).select_related("machine")
)
relate(
    Issue, "Assignments", lambda issue: _attempts(issue=issue), lambda issue: {"issue__id__exact": issue.pk}
)
relate(
    Issue,
    "Repository",
    lambda issue: Repository.objects.filter(pk=issue.repository_id).select_related("owner"),
)
relate(
    Repository,
    "Issues",
    lambda repository: repository.issues.order_by("-id"),
    lambda repository: {"repository__id__exact": repository.pk},
)
relate(
    Repository,
    "Pushes",
    lambda repository: repository.pushes.order_by("-sequence"),
    lambda repository: {"repository__id__exact": repository.pk},
)
relate(Assignment, "Box", lambda row: Box.objects.filter(pk=row.conversation_box_id))
relate(Assignment, "Run", lambda row: Run.objects.filter(pk=row.run_id).defer("output", "output_state"))
relate(Assignment, "Machine", lambda row: Machine.objects.filter(pk=row.machine_id))
relate(Assignment, "Job", lambda row: Job.objects.filter(pk=row.work_job_id).defer("report"))
relate(Assignment, "Issue", lambda row: Issue.objects.filter(pk=row.issue_id))
relate(
    Assignment, "Pushes", lambda row: Push.objects.filter(principal=f"assignment:{row.pk}").order_by("-id")
)
relate(Assignment, "Credential", lambda row: AssignmentCredential.objects.filter(assignment=row))
relate(Assignment, "Conversation", lambda row: Conversation.objects.filter(pk=row.conversation_id))
