"""The writers of repositories, members, machine grants, issues and comments."""

from __future__ import annotations

from forge.services.issues import create_comment, create_issue, update_issue
from forge.services.members import grant_machine, remove_member, revoke_machine_grant, set_member
from forge.services.repositories import create_repository, update_repository

__all__ = [
    "create_comment",
    "create_issue",
    "create_repository",
    "grant_machine",
    "remove_member",
    "revoke_machine_grant",
    "set_member",
    "update_issue",
    "update_repository",
]
