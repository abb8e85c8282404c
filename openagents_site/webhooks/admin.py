"""Staff pages of webhooks. Secrets are never shown, and of an address no more than stands before its query."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.decorators import display

from accounts.models import User
from base.admin import (
    Action,
    Outcome,
    ReadOnlyAdmin,
    ReadOnlyInline,
    already,
    done,
    link_column,
    relate,
    state_column,
)
from openagents_site.webhooks import subscriptions
from openagents_site.webhooks.models import Attempt, Delivery, Event, Subscription
from openagents_site.webhooks.states import DisabledReason

COLOURS = {"pending": "info", "delivered": "success", "exhausted": "danger", "cancelled": "warning"}
SHOWN_PAYLOAD_CHARACTERS = 4_000


def switch_off(row: Subscription, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    off = subscriptions.disable(row.pk, DisabledReason.STAFF)
    return done("is off") if off else already("was off")


def switch_on(row: Subscription, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    return done("is on") if subscriptions.enable(row.pk) else already("was on")


def send_again(row: Delivery, request: HttpRequest, values: dict[str, Any]) -> Outcome:
    subscriptions.replay(row)
    return done("is due now")


SWITCH_OFF = Action(
    name="switch-off",
    title="Switch off",
    warning="Nothing more is told to it. What still waits is cancelled, and can be sent again once it is on.",
    permission="switch_subscription",
    perform=switch_off,
    icon="notifications_off",
    applies=lambda row: row.is_enabled,
    dangerous=True,
)
SWITCH_ON = Action(
    name="switch-on",
    title="Switch on",
    warning="It is told what happens from now on. What happened while it was off is not told.",
    permission="switch_subscription",
    perform=switch_on,
    icon="notifications_active",
    applies=lambda row: not row.is_enabled,
)
SEND_AGAIN = Action(
    name="send-again",
    title="Send now",
    warning="Its receiver gets it once more, or sooner, under the same id.",
    permission="replay_delivery",
    perform=send_again,
    icon="replay",
)


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "shown_owner",
        "address",
        "events",
        "shown_state",
        "failing_since",
        "created_at",
    )
    list_filter = ("disabled_reason", "all_owners")
    list_select_related = ("owner",)
    search_fields = ("id", "owner", "owner__username")
    search_help_text = "Id of the webhook or its owner, or user name"
    exclude = ("url",)
    readonly_fields = ("address",)
    staff_actions = (SWITCH_OFF, SWITCH_ON)
    shown_owner = link_column("owner")

    @display(description="address")
    def address(self, row: Subscription) -> str:
        return row.shown_url

    @display(description="events")
    def events(self, row: Subscription) -> str:
        return ", ".join(row.event_types) or "everything"

    @display(description="state", label={"on": "success", "off": "danger"})
    def shown_state(self, row: Subscription) -> str:
        return "on" if row.is_enabled else "off"


class AttemptInline(ReadOnlyInline):
    model = Attempt
    fields = ("number", "started_at", "duration_ms", "status", "error")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "webhook",
        "shown_state",
        "attempts",
        "last_status",
        "last_error",
        "created_at",
    )
    list_filter = ("state",)
    list_select_related = ("event", "subscription")
    search_fields = ("id", "subscription", "event")
    search_help_text = "Id of the delivery, its webhook or its event"
    staff_actions = (SEND_AGAIN,)
    inlines = (AttemptInline,)
    shown_state = state_column("state", COLOURS)
    webhook = link_column("subscription", "webhook")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("event_type", "message_id", "object_id", "occurred_at", "fanned_out_at")
    search_fields = ("id", "object_id")
    search_help_text = "Id of the event, or of what it happened to"
    exclude = ("payload",)
    readonly_fields = ("body",)

    @display(description="body")
    def body(self, event: Event) -> str:
        return (event.payload or "")[:SHOWN_PAYLOAD_CHARACTERS]


relate(
    Subscription,
    "Deliveries",
    lambda row: row.deliveries.select_related("event"),
    lambda row: {"q": str(row.pk)},
)
relate(Event, "Deliveries", lambda row: row.deliveries.select_related("event"))
relate(User, "Webhooks", lambda row: row.webhooks.all())
