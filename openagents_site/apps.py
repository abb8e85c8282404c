"""The site: settings, addresses, the API's router, health, schedules and the commands that span apps."""

from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "openagents_site"
    verbose_name = "OpenAgents Boxes"

    def ready(self) -> None:
        from openagents_site.metrics.counters import register_listeners

        register_listeners()
