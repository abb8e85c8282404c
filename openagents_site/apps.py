"""The site: settings, addresses, the API's router, health, schedules and the commands that span apps."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class SiteConfig(AppConfig):
    name = "openagents_site"
    verbose_name = "OpenAgents Boxes"

    def ready(self) -> None:
        from openagents_site import checks as _checks  # noqa: F401 - they register themselves
        from openagents_site import history_contexts
        from openagents_site.metrics.counters import register_listeners
        from openagents_site.sign_in import checks, listeners  # noqa: F401 - they register themselves
        from openagents_site.sign_in.staff import hide_unused_tables
        from openagents_site.staff.roles import NewPermissions

        register_listeners()
        hide_unused_tables()
        # This app is the last that `migrate` tells, so by then the permissions of every app are there.
        self.new_permissions = NewPermissions()
        pre_migrate.connect(self.new_permissions.before, sender=self)
        post_migrate.connect(self.new_permissions.after, sender=self)
        post_migrate.connect(history_contexts.write_none, sender=self)
