"""Tokens over HTTP."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.caller import token_of, user_of
from accounts.models import ApiToken
from accounts.permissions import InsufficientScope
from accounts.serializers import CreatedTokenSerializer, CreateTokenSerializer, TokenSerializer
from accounts.services import create_token, revoke_token, scopes_of
from base.api.pagination import NewestFirstPagination
from base.api.schema import ErrorAnswer
from base.api.views import OwnedList


class TokenPagination(NewestFirstPagination):
    ordering = ("-created", "-digest")


class Tokens(OwnedList):
    """The caller's own tokens."""

    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = TokenPagination
    write_scope = "read"  # a token may hand out no more than it has itself: checked below

    def rows(self) -> QuerySet[ApiToken]:
        mine: QuerySet[ApiToken] = ApiToken.objects.filter(user=self.request.user.pk)
        return mine

    @extend_schema(
        summary="Create a token",
        description="The plaintext is in this answer and nowhere else. A token may give no scope that it does not have.",
        request=CreateTokenSerializer,
        responses={201: CreatedTokenSerializer, 422: ErrorAnswer},
    )
    def post(self, request: Request) -> Response:
        wanted = CreateTokenSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        beyond = set(wanted.validated_data["scopes"]) - scopes_of(token_of(request))
        if beyond:
            raise InsufficientScope(detail=f"this token cannot give the scopes {', '.join(sorted(beyond))}")
        token, plaintext = create_token(user_of(request), **wanted.validated_data)
        token.token = plaintext
        return Response(CreatedTokenSerializer(token).data, status=201)


class TokenDetail(APIView):
    write_scope = "read"  # a token may end what it could have handed out: checked below

    @extend_schema(
        summary="Revoke a token",
        description="A token may revoke itself, and others that have no scope that it does not have.",
        responses={204: None, 403: ErrorAnswer, 404: ErrorAnswer},
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
