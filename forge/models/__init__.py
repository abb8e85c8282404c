"""The tables of the forge."""

from __future__ import annotations

from forge.models.assignment import Assignment
from forge.models.credential import AssignmentCredential
from forge.models.issue import Comment, Issue
from forge.models.push import Push, PushIntent
from forge.models.repository import MachineGrant, Membership, Repository

__all__ = [
    "Assignment",
    "AssignmentCredential",
    "Comment",
    "Issue",
    "MachineGrant",
    "Membership",
    "Push",
    "PushIntent",
    "Repository",
]
