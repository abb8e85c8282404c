"""The writers of users and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import IntegrityError, transaction

from accounts.models import ApiToken, User
from accounts.scopes import Scope
from base import hooks
from base.clock import database_now
from base.errors import CodedError


class InvalidToken(CodedError):
    """The scopes, the name or the expiry of the token are not valid."""

    code = "invalid_token_request"


def upsert_github_user(*, github_id: int, github_login: str, github_avatar_url: str = "") -> User:
    """The user with this GitHub identity, created or brought up to date; the same row every time, also in a race."""
    changes = {"github_login": github_login, "github_avatar_url": github_avatar_url}
    if User.objects.filter(github_id=github_id).update(**changes):
        return User.objects.get(github_id=github_id)
    try:
        with transaction.atomic():
            return _create_github_user(github_id, changes)
    except IntegrityError:
        return User.objects.get(github_id=github_id)


def _create_github_user(github_id: int, changes: dict[str, str]) -> User:
    user = User(
        github_id=github_id,
        username=f"github-{github_id}",
        **changes,
    )
    user.set_unusable_password()
    user.save(force_insert=True)
    return user


def create_token(
    user: User, *, name: str = "", scopes: Sequence[str] = (), expires_in: timedelta | None = None
) -> tuple[ApiToken, str]:
    """A new token of the user and its plaintext, which is nowhere afterwards. No scopes means read only.

    Raises InvalidToken for an unknown scope, a name over 80 characters, or a life that is not positive.
    """
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown:
        raise InvalidToken(detail=f"unknown scopes: {', '.join(unknown)}")
    if len(name) > 80:
        raise InvalidToken(detail="a token's name has at most 80 characters")
    if expires_in is not None and expires_in <= timedelta(0):
        raise InvalidToken(detail="a token's life must be longer than nothing")
    wanted = [scope for scope in Scope.values if scope in scopes] or [Scope.READ.value]
    token, plaintext = ApiToken.objects.create(user, expiry=expires_in, name=name, scopes=wanted)
    return token, plaintext


def revoke_token(token: ApiToken) -> bool:
    """End a token now. Returns False if it was revoked before."""
    return bool(ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=database_now()))


def delete_user(user: User) -> None:
    """Mark a user deleted: boxes stopped, runs and jobs cancelled (by hook), tokens revoked, personal fields blanked.

    The row and its slug stay, since the ledger refers to them; signing in is impossible from here on.
    """
    with transaction.atomic():
        now = database_now()
        if not User.objects.filter(pk=user.pk, deleted_at=None).update(
            deleted_at=now,
            is_active=False,
            is_staff=False,
            is_superuser=False,
            github_id=None,
            github_login="",
            github_avatar_url="",
            email="",
            first_name="",
            last_name="",
            username=f"deleted-{user.pk}",
            password="!",  # noqa: S106 - marks that there is none
        ):
            return
        ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=now)
    hooks.owner_deleted(user)


def scopes_of(token: ApiToken | None) -> frozenset[str]:
    """The scopes of a request: the token's, or all of them for a signed-in session (no token)."""
    return frozenset(Scope.values) if token is None else _known(token.scopes)


def _known(scopes: Iterable[str]) -> frozenset[str]:
    return frozenset(scope for scope in scopes if scope in Scope.values)
