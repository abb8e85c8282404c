"""What an API token may be allowed to do."""

from __future__ import annotations

from django.db import models


class Scope(models.TextChoices):
    """Each is independent of the others: none contains another."""

    READ = "read", "read everything of the owner"
    BOX_CONTROL = "box:control", "create, use and stop boxes and runs"
    COMPUTER_CONTROL = "computer:control", "pair and use computers"
    FORGE_WRITE = "forge:write", "create repositories and issues, push"
    WORK_CONTROL = "work:control", "start and cancel agent jobs"
