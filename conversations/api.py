"""Conversations over HTTP."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from conversations.models import Conversation, Message
from conversations.serializers import ConversationSerializer, CreateMessageSerializer, MessageSerializer
from conversations.services import add_user_message, conversation_of, delete_conversation, ensure_conversation

MESSAGES_PER_MINUTE = 50


class Conversations(OwnedList):
    """The caller's conversations; there is one that is not deleted."""

    takes_all = False
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


class ConversationDetail(ApiView):
    takes_all = False
    lookup_errors = ("conversation_not_found",)

    @extend_schema(summary="One conversation", responses={200: ConversationSerializer})
    def get(self, request: Request, conversation_id: UUID) -> Response:
        return Response(ConversationSerializer(conversation_of(user_of(request), conversation_id)).data)

    @extend_schema(
        summary="Delete a conversation",
        description="Stops its boxes, cancels its runs, blanks its messages. The ledger of what it cost stays.",
        responses={204: None},
    )
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        delete_conversation(conversation_of(user_of(request), conversation_id))
        return Response(status=204)


class Messages(OwnedList):
    """The transcript, newest first."""

    takes_all = False
    lookup_errors = ("conversation_not_found",)
    queryset = Message.objects.none()
    serializer_class = MessageSerializer
    write_scope = "work:control"

    def rows(self) -> QuerySet[Message]:
        return Message.objects.filter(
            conversation=conversation_of(user_of(self.request), self.kwargs["conversation_id"])
        )

    @extend_schema(
        summary="Add a message",
        parameters=[KEY],
        extensions=refusals("empty_message", "message_too_long", "rate_limited", *KEY_ERRORS),
        request=CreateMessageSerializer,
        responses={201: MessageSerializer},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        wanted = CreateMessageSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        conversation = conversation_of(user_of(request), conversation_id)

        def make(_: UUID) -> Answer:
            rates.count(f"conversation:{conversation.pk}", "message", MESSAGES_PER_MINUTE)
            message = add_user_message(conversation, wanted.validated_data["content"])
            return Answer(201, dict(MessageSerializer(message).data))

        return made_once(request, f"POST /conversations/{conversation.pk}/messages", make)
