"""The tables of webhooks, and the triggers by which the ledgers feed them."""

from __future__ import annotations

from openagents_site.webhooks.models.delivery import Attempt, Delivery
from openagents_site.webhooks.models.event import Event
from openagents_site.webhooks.models.ledgers import (
    AssignmentLedger,
    BoxLedger,
    IncidentLedger,
    JobLedger,
    LeakLedger,
    RunLedger,
)
from openagents_site.webhooks.models.subscription import Subscription

__all__ = [
    "AssignmentLedger",
    "Attempt",
    "BoxLedger",
    "Delivery",
    "Event",
    "IncidentLedger",
    "JobLedger",
    "LeakLedger",
    "RunLedger",
    "Subscription",
]
