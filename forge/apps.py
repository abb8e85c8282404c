"""The forge app."""

from __future__ import annotations

from django.apps import AppConfig


class ForgeConfig(AppConfig):
    name = "forge"

    def ready(self) -> None:
        from forge import checks, listeners  # noqa: F401 - a check registers itself

        listeners.register()
