"""The boxes app."""

from __future__ import annotations

from django.apps import AppConfig


class BoxesConfig(AppConfig):
    name = "boxes"
