"""What webhooks do when another app speaks up."""

from __future__ import annotations

from base import hooks
from base.pump import Driver


def register() -> None:
    """Register with the hooks; called once at start."""
    from openagents_site.webhooks import subscriptions

    hooks.drivers.register(event_driver)
    hooks.drivers.register(delivery_driver)
    hooks.owner_deleted.register(subscriptions.forget_owner)


def event_driver() -> Driver:
    from openagents_site.webhooks.fan_out import EventDriver

    return EventDriver()


def delivery_driver() -> Driver:
    from openagents_site.webhooks.driver import DeliveryDriver

    return DeliveryDriver()
