"""Staff pages of the ledger of boxes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from base.admin import (
    ReadOnlyAdmin,
    ReadOnlyInline,
    link_column,
    money_column,
    relate,
    span_column,
    state_column,
)
from boxes.models import (
    Box,
    BudgetNotice,
    FanoutItem,
    FanoutRequest,
    Installation,
    ProcessHeartbeat,
    ReconciliationEvent,
    ScheduleSlot,
    WebhookDelivery,
)
from boxes.staff import actions
from boxes.states import STARTING, UP, BoxState, EventType, ItemState
from conversations.admin import FIND_BY_OWNER, OWNER, owner_link
from conversations.models import Conversation

BOX_COLOURS = {
    **dict.fromkeys(map(str, UP), "success"),
    **dict.fromkeys(map(str, STARTING), "info"),
    BoxState.ERROR.value: "danger",
}
EVENT_COLOURS = {EventType.LEAK.value: "danger", EventType.STOP_UNDONE.value: "danger"}
ITEM_COLOURS = {
    ItemState.ADMITTED.value: "success",
    ItemState.QUEUED.value: "info",
    ItemState.REFUSED.value: "danger",
}


class LifeFilter(admin.SimpleListFilter):
    """Boxes that may cost now, and boxes of which it is not known what they cost."""

    title, parameter_name = "life", "life"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "active"), ("unsettled", "stopped, cost not known")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Box]) -> QuerySet[Box]:
        if self.value() == "active":
            return queryset.filter(stopped_at=None)
        if self.value() == "unsettled":
            return queryset.filter(stopped_at__isnull=False, usage_settled_at=None)
        return queryset


@admin.register(Box)
class BoxAdmin(ReadOnlyAdmin):
    list_display = (
        "label",
        "box_id",
        "owner",
        "shown_state",
        "created_at",
        "lived",
        "stop_reason",
        "cost",
        "trouble",
    )
    list_filter = (LifeFilter, "state", "stop_reason")
    list_select_related = (OWNER,)
    sortable_by = ("created_at",)
    search_fields = ("id", "^box_id", "^label", "conversation", FIND_BY_OWNER)
    search_help_text = "Id, provider's id, label, conversation or user name"
    date_hierarchy = "created_at"
    staff_actions = (actions.STOP, actions.FORGET, actions.RECONCILE)
    shown_state = state_column("state", BOX_COLOURS)
    cost = money_column("settled_cost_microusd", "cost")
    lived = span_column("lifetime_seconds", "lived")
    estimate = money_column("estimated_burn_rate_microusd", "estimated cost per hour")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("label", "box_id"),
                    ("id", "owner"),
                    ("state", "setup_status"),
                    ("created_at", "last_activity_at"),
                    ("ends", "extended_until"),
                )
            },
        ),
        (
            "Stop",
            {"fields": (("stop_requested_at", "stop_requested_reason"), ("stopped_at", "stop_reason"))},
        ),
        (
            "Money",
            {
                "fields": (
                    ("cost", "settled_cost_microusd"),
                    ("lived", "lifetime_seconds"),
                    ("usage_settled_at", "next_settlement_at"),
                    ("estimate", "budgeted"),
                )
            },
        ),
        (
            "Creation",
            {
                "fields": (
                    ("create_attempted_at", "create_attempts"),
                    ("create_error", "create_unknown"),
                    ("marked_at", "ready_checks"),
                    ("next_provision_at", "provision_failures"),
                )
            },
        ),
        (
            "Reconciliation",
            {
                "fields": (
                    ("last_reconciled_at", "next_reconciliation_at"),
                    ("reconciliation_error", "reconciliation_failures"),
                    "undone_sightings",
                    ("lease_owner", "lease_expires_at", "generation"),
                )
            },
        ),
    )

    @display(description="owner")
    def owner(self, box: Box) -> str | None:
        return owner_link(box.conversation)

    @display(description="is stopped at")
    def ends(self, box: Box) -> str | None:
        """The latest time, and the rule that it comes from."""
        end = box.lease_end
        return None if end is None else f"{end.at:%Y-%m-%d %H:%M:%S} ({end.because.value.replace('_', ' ')})"

    @display(description="trouble")
    def trouble(self, box: Box) -> str | None:
        return box.create_error if box.is_active and box.create_error else box.reconciliation_error


class HandledFilter(admin.SimpleListFilter):
    title, parameter_name = "handled", "handled"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "open"), ("yes", "handled")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ReconciliationEvent]
    ) -> QuerySet[ReconciliationEvent]:
        if self.value() in {"yes", "no"}:
            return queryset.filter(handled_at__isnull=self.value() == "no")
        return queryset


@admin.register(ReconciliationEvent)
class ReconciliationEventAdmin(ReadOnlyAdmin):
    list_display = (
        "provider_box_id",
        "kind",
        "owned",
        "box_link",
        "observed_at",
        "last_seen_at",
        "handled_at",
        "outcome",
    )
    list_filter = (HandledFilter, "event_type", "resolution")
    list_select_related = ("box",)
    sortable_by = ("observed_at",)
    search_fields = ("id", "provider_box_id")
    search_help_text = "Id, or the provider's id of the box"
    date_hierarchy = "observed_at"
    staff_actions = (actions.STOP_LEAK, actions.ADOPT_LEAK, actions.DISMISS_LEAK, actions.RECONCILE)
    kind = state_column("event_type", EVENT_COLOURS)
    outcome = state_column("resolution", {"none": "warning", "stopped": "success", "adopted": "success"})
    box_link = link_column("box")
    exclude = ("stopping_until",)

    def describe(self, row: ReconciliationEvent) -> str:
        return row.resolution or ("open" if row.handled_at is None else "handled")


class FanoutItemInline(ReadOnlyInline):
    model = FanoutItem
    fields = ("position", "label", "state", "queue_reason", "box", "admitted_at", "queued_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[FanoutItem]:
        rows: QuerySet[FanoutItem] = super().get_queryset(request).select_related("box")
        return rows


@admin.register(FanoutRequest)
class FanoutRequestAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "owner",
        "shown_state",
        "admitted_count",
        "queued_count",
        "created_at",
        "cancelled_at",
    )
    list_select_related = (OWNER,)
    search_fields = ("id", "conversation", FIND_BY_OWNER)
    search_help_text = "Id, conversation or user name"
    date_hierarchy = "created_at"
    inlines = (FanoutItemInline,)
    staff_actions = (actions.END_PLAN,)
    shown_state = state_column("state", {"admitted": "success", "queued": "info"})

    @display(description="owner")
    def owner(self, plan: FanoutRequest) -> str | None:
        return owner_link(plan.conversation)


@admin.register(FanoutItem)
class FanoutItemAdmin(ReadOnlyAdmin):
    list_display = (
        "label",
        "shown_state",
        "queue_reason",
        "request_link",
        "box_link",
        "queued_at",
        "admitted_at",
    )
    list_select_related = ("request", "box")
    ordering = ("-queue_sequence",)
    search_fields = ("id", "request", "conversation")
    search_help_text = "Id of the item, its plan or its conversation"
    shown_state = state_column("state", ITEM_COLOURS)
    request_link = link_column("request", "plan")
    box_link = link_column("box")


@admin.register(ScheduleSlot)
class ScheduleSlotAdmin(ReadOnlyAdmin):
    list_display = ("name", "interval", "next_at", "failures", "started_at", "finished_at", "outcome")
    staff_actions = (actions.RECONCILE,)
    interval = span_column("interval_ms", "interval", per_second=1000)


@admin.register(ProcessHeartbeat)
class ProcessHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("name", "stamped_at", "details")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("delivery_id", "event_type", "provider_box_id", "box_link", "received_at", "looked_at")
    list_select_related = ("box",)
    search_fields = ("^delivery_id", "box")
    search_help_text = "Id of the delivery or of the box"
    date_hierarchy = "received_at"
    box_link = link_column("box")


@admin.register(Installation)
class InstallationAdmin(ReadOnlyAdmin):
    list_display = ("ownership_marker", "absence_suspected_at", "creates_held_until")


@admin.register(BudgetNotice)
class BudgetNoticeAdmin(ReadOnlyAdmin):
    list_display = ("subject", "day")
    ordering = ("-id",)


def _of_conversation(conversation: Conversation) -> dict[str, Any]:
    return {"conversation__id__exact": conversation.pk}


relate(Box, "Conversation", lambda box: Conversation.objects.filter(pk=box.conversation_id))
relate(
    Box, "Sightings", lambda box: box.events.order_by("-observed_at"), lambda box: {"box__id__exact": box.pk}
)
relate(Box, "Plan", lambda box: FanoutRequest.objects.filter(items__box=box))
relate(
    Conversation, "Boxes", lambda conversation: conversation.boxes.order_by("-created_at"), _of_conversation
)
relate(
    Conversation,
    "Plans of several boxes",
    lambda conversation: conversation.fanouts.order_by("-created_at"),
    _of_conversation,
)
relate(ReconciliationEvent, "Box", lambda event: Box.objects.filter(pk=event.box_id))
relate(
    ReconciliationEvent,
    "Other sightings of it",
    lambda event: ReconciliationEvent.objects.filter(provider_box_id=event.provider_box_id).exclude(
        pk=event.pk
    ),
)
