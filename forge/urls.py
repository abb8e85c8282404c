"""Addresses of the forge's API, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from forge.api import assignments, issues, members, repositories

_ONE = "repositories/<id:repository_id>"
_ISSUE = f"{_ONE}/issues/<int:number>"

urlpatterns = [
    path("repositories", repositories.Repositories.as_view()),
    path(_ONE, repositories.RepositoryDetail.as_view()),
    path(f"{_ONE}/pushes", repositories.Pushes.as_view()),
    path(f"{_ONE}/members", members.Members.as_view()),
    path(f"{_ONE}/members/<str:user>", members.MemberDetail.as_view()),
    path(f"{_ONE}/machines", members.MachineGrants.as_view()),
    path(f"{_ONE}/machines/<id:machine_id>", members.MachineGrantDetail.as_view()),
    path(f"{_ONE}/issues", issues.Issues.as_view()),
    path(_ISSUE, issues.IssueDetail.as_view()),
    path(f"{_ISSUE}/comments", issues.Comments.as_view()),
    path(f"{_ISSUE}/attempts/<id:attempt_id>/cancel", issues.CancelAttempt.as_view()),
    path("assignments", assignments.Assignments.as_view()),
    path("assignments/<id:assignment_id>", assignments.AssignmentDetail.as_view()),
    path("assignments/<id:assignment_id>/cancel", assignments.CancelAssignment.as_view()),
]
