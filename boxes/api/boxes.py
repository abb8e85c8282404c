"""Boxes: list, create, look, stop, extend, forget, and short commands."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, made_once
from accounts.idempotency import Answer
from base import wakeups
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from boxes import activity, selectors, services
from boxes.errors import ADMISSION_ERRORS, PROVIDER_ERRORS, BoxNotFound
from boxes.filters import BoxFilter
from boxes.models import Box
from boxes.provisioning import is_settled_in
from boxes.serializers import (
    BoxSerializer,
    CommandResultSerializer,
    CommandSerializer,
    CreateBoxSerializer,
    ExtendBoxSerializer,
)
from conversations.listing import by_conversation
from conversations.services import conversation_of

CREATES_PER_MINUTE = 10
COMMANDS_PER_MINUTE = 30


def show(box: Box) -> dict[str, Any]:
    """The box as the API shows it."""
    return dict(BoxSerializer(activity.attach([box])[0]).data)


def visible_to(request: Request) -> QuerySet[Box]:
    """The boxes that the caller may see."""
    return Box.objects.all() if all_owners(request) else selectors.of_user(user_of(request))


def find_box(request: Request, ref: str) -> Box:
    """The caller's box by our id, the provider's id, or an active label; any box for staff with `?all=true`.

    Raises BoxNotFound for another owner's box just as for one that does not exist.
    """
    box = selectors.matching(visible_to(request), ref)
    if box is None:
        raise BoxNotFound
    return box


class Boxes(OwnedList):
    """The caller's boxes, newest first; stopped ones too."""

    queryset = Box.objects.none()
    serializer_class = BoxSerializer
    filterset_class = BoxFilter

    def rows(self) -> QuerySet[Box]:
        return by_conversation(self.request, visible_to(self.request))

    def paginate_queryset(self, queryset: Any) -> Any:
        return activity.attach(super().paginate_queryset(queryset) or [])

    @extend_schema(
        summary="Create a box",
        parameters=[KEY],
        extensions=refusals(
            *ADMISSION_ERRORS,
            "invalid_box_label",
            "conversation_not_found",
            "box_api_rate_limited",
            *PROVIDER_ERRORS,
            *KEY_ERRORS,
        ),
        description="The row is there when this answers; `state` may still be `provisioning`.",
        request=CreateBoxSerializer,
        responses={
            202: BoxSerializer,
        },
    )
    def post(self, request: Request) -> Response:
        rates.count(f"user:{request.user.pk}", "box_create", CREATES_PER_MINUTE, code="box_api_rate_limited")
        wanted = CreateBoxSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return made_once(
            request, "POST /boxes", lambda ticket: _create(request, wanted.validated_data, ticket)
        )


def _create(request: Request, wanted: dict[str, Any], ticket: UUID) -> Answer:
    conversation = conversation_of(user_of(request), wanted.get("conversation"))
    box = services.create_box(
        conversation.id, label=wanted["label"], budgeted=wanted["budgeted"], create_key=f"api-{ticket}"
    )
    if wanted["wait"] and not is_settled_in(box):
        wakeups.wait_until(f"box:{box.pk}", lambda: services.has_settled_in(box), seconds=wanted["wait"])
    return Answer(202, show(box))


class BoxDetail(ApiView):
    lookup_errors = ("box_not_found",)

    @extend_schema(summary="One box", responses={200: BoxSerializer})
    def get(self, request: Request, ref: str) -> Response:
        return Response(show(find_box(request, ref)))


class StopBox(ApiView):
    lookup_errors = ("box_not_found",)

    @extend_schema(
        summary="Stop a box",
        extensions=refusals("box_stopped", *PROVIDER_ERRORS),
        description="Frees its place at once. A box that is being stopped already is answered as it is.",
        request=None,
        responses={200: BoxSerializer},
    )
    def post(self, request: Request, ref: str) -> Response:
        box = find_box(request, ref)
        return Response(show(services.stop_box(box.conversation_id, str(box.pk))))


class ExtendBox(ApiView):
    lookup_errors = ("box_not_found",)

    @extend_schema(
        summary="Let a box live longer",
        extensions=refusals("box_stopped", "box_not_ready", "box_lifetime_reached"),
        description="Moves `expires_at` that many seconds further, at most to the maximum lifetime from its creation.",
        request=ExtendBoxSerializer,
        responses={200: BoxSerializer},
    )
    def post(self, request: Request, ref: str) -> Response:
        wanted = ExtendBoxSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        box = find_box(request, ref)
        return Response(show(services.extend_box(box, wanted.validated_data["seconds"])))


class BoxCommands(ApiView):
    lookup_errors = ("box_not_found",)

    @extend_schema(
        summary="Run one short command and wait for its end",
        extensions=refusals(
            "invalid_command",
            "invalid_command_timeout",
            "box_stopped",
            "box_not_ready",
            "box_api_rate_limited",
            *PROVIDER_ERRORS,
        ),
        description="For anything that may take longer than a minute, start a run.",
        request=CommandSerializer,
        responses={
            200: CommandResultSerializer,
        },
    )
    def post(self, request: Request, ref: str) -> Response:
        rates.count(f"user:{request.user.pk}", "command", COMMANDS_PER_MINUTE, code="box_api_rate_limited")
        wanted = CommandSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        box = find_box(request, ref)
        result = services.run_command(box.conversation_id, str(box.pk), **wanted.validated_data)
        return Response(CommandResultSerializer(result).data)


class ForgetBox(ApiView):
    lookup_errors = ("box_not_found",)
    staff_only = True
    staff_permission = "boxes.forget_box"

    @extend_schema(
        summary="Close the row of a box that cannot be stopped",
        extensions=refusals("box_stopped"),
        description="Recorded with who did it. The box may go on to cost; it shows as a leak from then on.",
        request=None,
        responses={200: BoxSerializer},
    )
    def post(self, request: Request, ref: str) -> Response:
        box = selectors.matching(Box.objects.all(), ref)
        if box is None:
            raise BoxNotFound
        return Response(show(services.forget_box(box, by=user_of(request))))
