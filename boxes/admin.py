"""Staff pages of the ledger of boxes."""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import TabularInline

from base.admin import ReadOnlyAdmin
from boxes.models import (
    Box,
    FanoutItem,
    FanoutRequest,
    ProcessHeartbeat,
    ReconciliationEvent,
    ScheduleSlot,
    WebhookDelivery,
)


@admin.register(Box)
class BoxAdmin(ReadOnlyAdmin):
    list_display = (
        "label",
        "box_id",
        "conversation",
        "state",
        "created_at",
        "stopped_at",
        "stop_reason",
        "lifetime_seconds",
        "settled_cost_microusd",
        "reconciliation_failures",
    )
    list_filter = ("state", "setup_status", "stop_reason")
    list_select_related = ("conversation",)
    search_fields = ("box_id", "label", "id", "conversation__id")
    date_hierarchy = "created_at"
    exclude = ("create_body",)


@admin.register(ReconciliationEvent)
class ReconciliationEventAdmin(ReadOnlyAdmin):
    list_display = (
        "provider_box_id",
        "event_type",
        "owned",
        "observed_at",
        "last_seen_at",
        "handled_at",
        "resolution",
    )
    list_filter = ("event_type", "owned", "resolution")
    search_fields = ("provider_box_id",)


class FanoutItemInline(TabularInline):
    model = FanoutItem
    fields = ("position", "label", "state", "queue_reason", "box", "admitted_at", "queued_at")
    readonly_fields = fields
    extra = 0
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(FanoutRequest)
class FanoutRequestAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "conversation",
        "requested_count",
        "state",
        "admitted_count",
        "queued_count",
        "created_at",
    )
    list_filter = ("state", "budgeted")
    inlines = (FanoutItemInline,)


@admin.register(ScheduleSlot)
class ScheduleSlotAdmin(ReadOnlyAdmin):
    list_display = ("name", "interval_ms", "next_at", "failures", "started_at", "finished_at", "outcome")


@admin.register(ProcessHeartbeat)
class ProcessHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("name", "stamped_at", "details")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("delivery_id", "event_type", "provider_box_id", "received_at", "looked_at")
    list_filter = ("event_type",)
    search_fields = ("delivery_id", "provider_box_id")
