"""Conversations over HTTP."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.caller import user_of
from base.api.schema import ErrorAnswer
from base.api.views import OwnedList
from conversations.models import Conversation, Message
from conversations.serializers import ConversationSerializer, CreateMessageSerializer, MessageSerializer
from conversations.services import add_user_message, conversation_of, delete_conversation, ensure_conversation


class Conversations(OwnedList):
    """The caller's conversations; there is one that is not deleted."""

    queryset = Conversation.objects.none()
    serializer_class = ConversationSerializer
    write_scope = "read"

    def rows(self) -> QuerySet[Conversation]:
        return Conversation.objects.filter(visitor__user=self.request.user.pk, deleted_at=None)

    @extend_schema(
        summary="Ensure the caller's conversation",
        description="Made if there is none; the same one every time.",
        request=None,
        responses={201: ConversationSerializer},
    )
    def post(self, request: Request) -> Response:
        return Response(ConversationSerializer(ensure_conversation(user_of(request))).data, status=201)


class ConversationDetail(APIView):
    @extend_schema(summary="One conversation", responses={200: ConversationSerializer, 404: ErrorAnswer})
    def get(self, request: Request, conversation_id: UUID) -> Response:
        return Response(ConversationSerializer(conversation_of(user_of(request), conversation_id)).data)

    @extend_schema(
        summary="Delete a conversation",
        description="Stops its boxes, cancels its runs, blanks its messages. The ledger of what it cost stays.",
        responses={204: None, 404: ErrorAnswer},
    )
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        delete_conversation(conversation_of(user_of(request), conversation_id))
        return Response(status=204)


class Messages(OwnedList):
    """The transcript, newest first."""

    queryset = Message.objects.none()
    serializer_class = MessageSerializer
    write_scope = "work:control"

    def rows(self) -> QuerySet[Message]:
        return Message.objects.filter(
            conversation=conversation_of(user_of(self.request), self.kwargs["conversation_id"])
        )

    @extend_schema(
        summary="Add a message",
        request=CreateMessageSerializer,
        responses={201: MessageSerializer, 422: ErrorAnswer},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        wanted = CreateMessageSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        message = add_user_message(
            conversation_of(user_of(request), conversation_id), wanted.validated_data["content"]
        )
        return Response(MessageSerializer(message).data, status=201)
