"""Who a permitted request comes from."""

from __future__ import annotations

from django.contrib.auth import get_user
from django.http import HttpRequest
from rest_framework.request import Request

from accounts.authentication import live_tokens
from accounts.models import ApiToken, User


def user_of(request: Request) -> User:
    """The caller. Only for views behind a permission that lets nobody else in."""
    assert isinstance(request.user, User), "the view lets anonymous callers in"
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """The token that the caller showed; None for a signed-in session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


def caller_now(request: Request) -> User | None:
    """The caller of a request that goes on for long, as they are now; None if what they showed opens nothing any more: the token
    was revoked or has expired, the session was ended, the account closed."""
    token = token_of(request)
    if token is not None:
        live = live_tokens().filter(pk=token.pk).first()
        return live.user if live is not None else None
    afresh = HttpRequest()
    afresh.session = type(request.session)(request.session.session_key)
    user = get_user(afresh)
    return user if isinstance(user, User) else None
