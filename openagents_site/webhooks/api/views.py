"""Views of webhooks: the caller's own; for staff with `?all=true` everybody's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rates
from accounts.caller import user_of
from accounts.creating import KEY, KEY_ERRORS, ShownOnce, made_once
from accounts.idempotency import Answer
from accounts.scopes import Scope
from base.api.filters import MomentFilter
from base.api.parameters import all_owners
from base.api.schema import refusals
from base.api.views import ApiView, OwnedList
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.api.serializers import (
    ChangeWebhookSerializer,
    CreatedWebhookSerializer,
    CreateWebhookSerializer,
    WebhookDeliverySerializer,
    WebhookSerializer,
)
from openagents_site.webhooks.errors import DeliveryNotFound, WebhookNotFound
from openagents_site.webhooks.models import Delivery, Subscription
from openagents_site.webhooks.states import EVENT_TYPES, TEST, DeliveryState

SECRET = ShownOnce("secret", "the answer that shows the secret of a webhook once")
SENDS_PER_MINUTE = 30
EXAMPLE = OpenApiExample(
    "ends of runs",
    value={
        "url": "https://example.com/hooks/boxes",
        "event_types": ["run.completed", "run.failed", "leak.*"],
    },
    request_only=True,
)


def webhooks_of(request: Request) -> QuerySet[Subscription]:
    """The webhooks that the caller may see."""
    found = Subscription.objects.all()
    return found if all_owners(request) else found.filter(owner=request.user.pk)


def find_webhook(request: Request, webhook_id: UUID) -> Subscription:
    """Raises WebhookNotFound for another owner's just as for one that is not there."""
    found: Subscription | None = webhooks_of(request).filter(pk=webhook_id).first()
    if found is None:
        raise WebhookNotFound
    return found


class Webhooks(OwnedList):
    """The caller's webhooks, newest first."""

    queryset = Subscription.objects.none()
    serializer_class = WebhookSerializer
    write_scope = Scope.BOX_CONTROL

    def rows(self) -> QuerySet[Subscription]:
        return webhooks_of(self.request)

    @extend_schema(
        summary="Create a webhook",
        description="Its secret is in this answer and nowhere else. Deliveries are signed as Standard Webhooks are.",
        parameters=[KEY],
        extensions=refusals("invalid_webhook_url", "too_many_webhooks", "staff_only", *KEY_ERRORS),
        request=CreateWebhookSerializer,
        responses={201: CreatedWebhookSerializer},
        examples=[EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        wanted = CreateWebhookSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        values = dict(wanted.validated_data)
        values["all_owners"] = values.pop("all")

        def make(ticket: UUID) -> Answer:
            made, secret = subscriptions.create(user_of(request), ticket=ticket, **values)
            return Answer(201, _with_secret(request, made, secret))

        return SECRET.shown(made_once(request, "POST /webhooks", make))


class WebhookDetail(ApiView):
    lookup_errors = ("webhook_not_found",)
    write_scope = Scope.BOX_CONTROL

    @extend_schema(summary="One webhook", responses={200: WebhookSerializer})
    def get(self, request: Request, webhook_id: UUID) -> Response:
        return Response(_shown(request, find_webhook(request, webhook_id)))

    @extend_schema(
        summary="Change a webhook, or switch it on or off",
        extensions=refusals("invalid_webhook_url"),
        request=ChangeWebhookSerializer,
        responses={200: WebhookSerializer},
    )
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        found = find_webhook(request, webhook_id)
        wanted = ChangeWebhookSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return Response(_shown(request, subscriptions.change(found, **wanted.validated_data)))

    @extend_schema(
        summary="Delete a webhook", description="With its deliveries and their log.", responses={204: None}
    )
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        found = find_webhook(request, webhook_id)
        subscriptions.delete(Subscription.objects.filter(pk=found.pk))
        return Response(status=204)


class RotateSecret(ApiView):
    lookup_errors = ("webhook_not_found",)
    write_scope = Scope.BOX_CONTROL

    @extend_schema(
        summary="Give a webhook another secret",
        description="For 24 hours deliveries carry a signature of the old secret as well. Its owner alone: staff do not learn "
        "others' secrets.",
        parameters=[KEY],
        extensions=refusals(*KEY_ERRORS),
        request=None,
        responses={200: CreatedWebhookSerializer},
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        found = find_webhook(request, webhook_id)
        if found.owner_id != user_of(request).pk:
            raise WebhookNotFound

        def rotate(_: UUID) -> Answer:
            return Answer(200, _with_secret(request, found, subscriptions.rotate(found)))

        return SECRET.shown(made_once(request, f"POST /webhooks/{found.pk}/rotate", rotate))


class TestWebhook(ApiView):
    lookup_errors = ("webhook_not_found",)
    write_scope = Scope.BOX_CONTROL

    @extend_schema(
        summary="Send a webhook `webhook.test`",
        description="The answer is the delivery; look at it again to see how it went.",
        parameters=[KEY],
        extensions=refusals("webhook_disabled", "rate_limited", *KEY_ERRORS),
        request=None,
        responses={201: WebhookDeliverySerializer},
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        found = find_webhook(request, webhook_id)
        _count_send(request)

        def send(_: UUID) -> Answer:
            return Answer(201, dict(WebhookDeliverySerializer(subscriptions.send_test(found)).data))

        return made_once(request, f"POST /webhooks/{found.pk}/test", send)


class DeliveryFilter(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=DeliveryState.choices)
    event_type = django_filters.ChoiceFilter(
        field_name="event__event_type", choices=[(name, name) for name in (*EVENT_TYPES, TEST)]
    )
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")


class Deliveries(OwnedList):
    """What a webhook was told and is still to be told, newest first."""

    lookup_errors = ("webhook_not_found",)
    queryset = Delivery.objects.none()
    serializer_class = WebhookDeliverySerializer
    filterset_class = DeliveryFilter

    def rows(self) -> QuerySet[Delivery]:
        found = find_webhook(self.request, self.kwargs["webhook_id"])
        return found.deliveries.select_related("event").prefetch_related("attempt_log")


class ReplayDelivery(ApiView):
    lookup_errors = ("webhook_not_found", "webhook_delivery_not_found")
    write_scope = Scope.BOX_CONTROL

    @extend_schema(
        summary="Send a delivery now",
        description="Once more if it ended, sooner if it waits; the header `webhook-id` stays the same.",
        extensions=refusals("webhook_disabled", "rate_limited"),
        request=None,
        responses={200: WebhookDeliverySerializer},
    )
    def post(self, request: Request, webhook_id: UUID, delivery_id: UUID) -> Response:
        known: Any = find_webhook(request, webhook_id).deliveries.select_related("event", "subscription")
        delivery = known.filter(pk=delivery_id).first()
        if delivery is None:
            raise DeliveryNotFound
        _count_send(request)
        return Response(WebhookDeliverySerializer(subscriptions.replay(delivery)).data)


def _count_send(request: Request) -> None:
    rates.count(f"user:{request.user.pk}", "webhook_send", SENDS_PER_MINUTE)


def _shown(request: Request, webhook: Subscription) -> dict[str, Any]:
    return dict(WebhookSerializer(webhook, context={"request": request}).data)


def _with_secret(request: Request, webhook: Subscription, secret: str) -> dict[str, Any]:
    """The answer as it is kept under an idempotency key: there is no plaintext in the database."""
    return _shown(request, webhook) | {"secret": SECRET.sealed(secret)}
