"""The work app."""

from __future__ import annotations

from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        from work import checks, listeners  # noqa: F401 - a check registers itself

        listeners.register()
