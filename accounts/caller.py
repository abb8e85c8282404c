"""Who a permitted request comes from."""

from __future__ import annotations

from rest_framework.request import Request

from accounts.models import ApiToken, User


def user_of(request: Request) -> User:
    """The caller. Only for views behind a permission that lets nobody else in."""
    assert isinstance(request.user, User), "the view lets anonymous callers in"
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """The token that the caller showed; None for a signed-in session."""
    return request.auth if isinstance(request.auth, ApiToken) else None
