"""The app of outbound webhooks."""

from __future__ import annotations

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "openagents_site.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from openagents_site.webhooks import listeners

        listeners.register()
