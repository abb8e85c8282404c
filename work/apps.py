"""The work app."""

from __future__ import annotations

from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        from work import listeners

        listeners.register()
