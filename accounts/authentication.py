"""Who calls: a bearer token, or the session of a signed-in user."""

from __future__ import annotations

from datetime import datetime, timedelta
from hmac import compare_digest

from django.db.models import F, Q, QuerySet
from knox.crypto import hash_token
from knox.settings import CONSTANTS
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.request import Request

from accounts.models import ApiToken, User
from base.errors import CodedError
from base.sql import ClockTimestamp

LONGEST_TOKEN = 240
USE_IS_NOTED_EVERY = timedelta(seconds=60)  # a write a request would cost more than the exact time is worth


class InvalidApiToken(CodedError):
    """The token is missing, unknown, expired or revoked."""

    code = "invalid_api_token"


class BearerTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer oa_pat_...`. Every failure is the same error."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise InvalidApiToken
        token = self.find(parts[1])
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def find(self, presented: bytes) -> ApiToken:
        """The live token with this plaintext, found by index; raises InvalidApiToken."""
        plaintext = presented.decode("latin-1")
        if len(plaintext) > LONGEST_TOKEN or not (plaintext.isascii() and plaintext.isprintable()):
            raise InvalidApiToken
        digest = hash_token(plaintext)
        known = live_tokens().filter(digest=digest, token_key=plaintext[: CONSTANTS.TOKEN_KEY_LENGTH])
        token: ApiToken | None = next(iter(known.order_by()), None)
        if token is None or not compare_digest(token.digest, digest):
            raise InvalidApiToken
        _note_use(token, token.now)
        return token


def live_tokens() -> QuerySet[ApiToken]:
    """The tokens that open something now, each with its user and with the database's time as `now`."""
    known = ApiToken.objects.select_related("user").annotate(now=ClockTimestamp())
    live: QuerySet[ApiToken] = known.filter(
        Q(expiry=None) | Q(expiry__gt=F("now")), revoked_at=None, user__is_active=True
    )
    return live


def _note_use(token: ApiToken, now: datetime) -> None:
    if token.last_used_at is None or now - token.last_used_at > USE_IS_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


class SignedInAuthentication(SessionAuthentication):
    """The session of a signed-in user; CSRF is enforced by the base class."""

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
