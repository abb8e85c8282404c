"""Which management commands are ours, and what each is for in one sentence."""

from __future__ import annotations

import re

from django.core.management import get_commands, load_command_class

APPS = {"accounts", "conversations", "boxes", "runs", "work", "forge", "openagents_site"}


def ours() -> list[tuple[str, str]]:
    """Name and first sentence of each command of this product, in the order of the alphabet."""
    found = sorted((name, app) for name, app in get_commands().items() if is_ours(app))
    return [(name, _first_sentence(load_command_class(app, name).help)) for name, app in found]


def others() -> list[str]:
    """The names of the rest."""
    return sorted(name for name, app in get_commands().items() if not is_ours(app))


def is_ours(app: str) -> bool:
    """Whether the app, or the module, is of this product."""
    return app.partition(".")[0] in APPS


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":.") + "."
