"""Tokens over HTTP."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.caller import token_of, user_of
from accounts.creating import KEY, KEY_ERRORS, ShownOnce, made_once
from accounts.idempotency import Answer
from accounts.models import ApiToken
from accounts.permissions import InsufficientScope
from accounts.serializers import CreatedTokenSerializer, CreateTokenSerializer, TokenSerializer
from accounts.services import create_token, revoke_token, scopes_of
from base.api.pagination import NewestFirstPagination
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList

TOKEN = ShownOnce("token", "the answer that shows a token once")


class TokenPagination(NewestFirstPagination):
    ordering = ("-created", "-id")


class Tokens(OwnedList):
    """The caller's own tokens."""

    takes_all = False
    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = TokenPagination
    write_scope = "read"  # a token may hand out no more than it has itself: checked below

    def rows(self) -> QuerySet[ApiToken]:
        mine: QuerySet[ApiToken] = ApiToken.objects.filter(user=self.request.user.pk)
        return mine

    @extend_schema(
        summary="Create a token",
        parameters=[KEY],
        extensions=refusals(*KEY_ERRORS),
        description="The plaintext is in this answer and nowhere else. A token may give no scope that it does not have.",
        request=CreateTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request) -> Response:
        wanted = CreateTokenSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        beyond = set(wanted.validated_data["scopes"]) - scopes_of(token_of(request))
        if beyond:
            raise InsufficientScope(detail=f"this token cannot give the scopes {', '.join(sorted(beyond))}")
        answer = made_once(request, "POST /tokens", lambda _: _create(request, wanted.validated_data))
        return TOKEN.shown(answer)


def _create(request: Request, wanted: dict[str, Any]) -> Answer:
    """The answer as it is kept under an idempotency key: there is no plaintext in the database."""
    token, plaintext = create_token(user_of(request), **wanted)
    token.token = TOKEN.sealed(plaintext)
    return Answer(201, dict(CreatedTokenSerializer(token).data))


class TokenDetail(ApiView):
    takes_all = False
    write_scope = "read"  # a token may end what it could have handed out: checked below

    @extend_schema(
        summary="Revoke a token",
        description="A token may revoke itself, and others that have no scope that it does not have.",
        responses={204: None},
    )
    def delete(self, request: Request, token_id: str) -> Response:
        found = get_object_or_404(ApiToken, id=token_id, user=request.user.pk)
        beyond = scopes_of(found) - scopes_of(token_of(request))
        if beyond:
            raise InsufficientScope(
                detail=f"this token cannot end one with the scopes {', '.join(sorted(beyond))}"
            )
        revoke_token(found)
        return Response(status=204)
