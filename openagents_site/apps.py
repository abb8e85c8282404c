"""The site: settings, addresses, the API's router, health, schedules and the commands that span apps."""

from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "openagents_site"
    verbose_name = "OpenAgents Boxes"

    def ready(self) -> None:
        from openagents_site.metrics.counters import register_listeners
        from openagents_site.sign_in import checks, listeners  # noqa: F401 - they register themselves
        from openagents_site.sign_in.staff import hide_unused_tables

        register_listeners()
        hide_unused_tables()
