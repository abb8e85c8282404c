"""The ledger of boxes, what is planned, what was noticed, and what the installation's processes share."""

from boxes.models.box import Box
from boxes.models.event import ReconciliationEvent, WebhookDelivery
from boxes.models.fanout import FanoutItem, FanoutRequest
from boxes.models.installation import BudgetNotice, Installation, ProcessHeartbeat, ScheduleSlot

__all__ = [
    "Box",
    "BudgetNotice",
    "FanoutItem",
    "FanoutRequest",
    "Installation",
    "ProcessHeartbeat",
    "ReconciliationEvent",
    "ScheduleSlot",
    "WebhookDelivery",
]
