"""The states, roles and kinds of the forge, as data."""

from __future__ import annotations

from django.db import models


class Visibility(models.TextChoices):
    PUBLIC = "public", "everybody may read it"
    PRIVATE = "private", "members may read it"


class Lifecycle(models.TextChoices):
    PROVISIONING = "provisioning", "being made on disk"
    READY = "ready", "in service"
    FAILED = "failed", "could not be made"


class Role(models.TextChoices):
    OWNER = "owner", "may do everything"
    MAINTAINER = "maintainer", "may push and change the repository"
    CONTRIBUTOR = "contributor", "may push"
    VIEWER = "viewer", "may read"


WRITERS = (Role.OWNER, Role.MAINTAINER, Role.CONTRIBUTOR)
KEEPERS = (Role.OWNER, Role.MAINTAINER)
"""Who may change the repository itself: its settings, members and machines."""


class Operation(models.TextChoices):
    READ = "read", "fetch"
    WRITE = "write", "push"


class IssueState(models.TextChoices):
    OPEN = "open", "to be done"
    CLOSED = "closed", "done, or not to be done"


class RequesterKind(models.TextChoices):
    USER = "user", "a user, for themselves"


class TargetKind(models.TextChoices):
    BOX = "box", "a run on a box"
    COMPUTER = "computer", "an agent on a paired machine"


class AssignmentState(models.TextChoices):
    ADMITTED = "admitted", "accepted, to be started"
    RUNNING = "running", "at work"
    COMPLETED = "completed", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


LIVE = (AssignmentState.ADMITTED, AssignmentState.RUNNING)
TERMINAL = (AssignmentState.COMPLETED, AssignmentState.FAILED, AssignmentState.CANCELLED)


class Delivery(models.TextChoices):
    NOT_APPLICABLE = "not_applicable", "goes with the run"
    PENDING = "pending", "not handed over yet"
    ENABLED = "enabled", "handed over"
    REFUSED = "refused", "not handed over"
