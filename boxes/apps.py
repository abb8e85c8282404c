"""The boxes app."""

from __future__ import annotations

from django.apps import AppConfig

from base import hooks


class BoxesConfig(AppConfig):
    name = "boxes"

    def ready(self) -> None:
        from boxes.deletion import stop_boxes_of
        from boxes.provisioning import ProvisioningDriver
        from boxes.usage.settlement import SettlementDriver
        from boxes.webhooks import LookDriver

        hooks.owner_deleted.register(stop_boxes_of)
        hooks.drivers.register(ProvisioningDriver)
        hooks.drivers.register(SettlementDriver)
        hooks.drivers.register(LookDriver)
