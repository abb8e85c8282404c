"""What the caller may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.authentication import InvalidApiToken
from accounts.caller import token_of
from accounts.scopes import Scope
from accounts.services import scopes_of
from base.api.parameters import all_owners
from base.errors import CodedError

if TYPE_CHECKING:  # the view module reads the setting that names this module
    from rest_framework.views import APIView


class InsufficientScope(CodedError):
    """The token does not have the scope that this call needs."""

    code = "insufficient_scope"


class StaffOnly(CodedError):
    """Only staff may do this."""

    code = "staff_only"


class RoleForbids(CodedError):
    """The caller's role does not allow this."""

    code = "forbidden"


ACT_FOR_OWNERS = "accounts.act_for_owners"
"""What a member of staff needs to change, with `all=true`, what belongs to somebody else."""


class HasScope(BasePermission):
    """The caller is known, its token has the scope that the view names for writing (`read` for reading), and of staff the
    role allows the change.

    A view sets `write_scope`, `staff_only = True` where only staff may call it, and then `staff_permission`, which a change
    needs.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not (request.user and request.user.is_authenticated):
            raise InvalidApiToken
        needed = scope_needed(view, request.method or "GET")
        if needed not in scopes_of(token_of(request)):
            raise InsufficientScope(detail=f"this call needs a token with the scope {needed}")
        if getattr(view, "staff_only", False) and not request.user.is_staff:
            raise StaffOnly
        permission = permission_needed(view, request)
        if permission is not None and not request.user.has_perm(permission):
            raise RoleForbids
        return True


def permission_needed(view: APIView, request: Request) -> str | None:
    """What the role of a member of staff must hold for this change; None for what everybody may ask for themselves."""
    if request.method in SAFE_METHODS:
        return None
    if getattr(view, "staff_only", False):
        return str(getattr(view, "staff_permission", ACT_FOR_OWNERS))
    return ACT_FOR_OWNERS if all_owners(request) else None


def scope_needed(view: APIView, method: str) -> str:
    """The scope that `method` on this view needs."""
    if method in SAFE_METHODS:
        return Scope.READ
    return str(getattr(view, "write_scope", Scope.BOX_CONTROL))
