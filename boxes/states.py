"""The states of a box and of what is planned, as data: models, triggers, docs and tests read these tables."""

from __future__ import annotations

from django.db import models


class BoxState(models.TextChoices):
    """What the provider says of a box, as far as we know. Whether it counts and costs is said by `stopped_at`."""

    INIT = "init", "being created"
    PROVISIONING = "provisioning", "starting"
    PROVISIONED = "provisioned", "started"
    CLONING = "cloning", "being copied"
    READY = "ready", "ready"
    IDLE = "idle", "ready, idle"
    RUNNING = "running", "ready, at work"
    ARCHIVING = "archiving", "stopping"
    ARCHIVED = "archived", "stopped"
    ERROR = "error", "failed"


UP = frozenset({BoxState.READY, BoxState.IDLE, BoxState.RUNNING})
STARTING = frozenset({BoxState.INIT, BoxState.PROVISIONING, BoxState.PROVISIONED, BoxState.CLONING})
DOWN = frozenset({BoxState.ARCHIVING, BoxState.ARCHIVED, BoxState.ERROR})


class SetupStatus(models.TextChoices):
    PENDING = "pending", "setup pending"
    RUNNING = "running", "setting up"
    DONE = "done", "set up"
    FAILED = "failed", "setup failed"


SETUP_ENDED = frozenset({SetupStatus.DONE, SetupStatus.FAILED})


class StopReason(models.TextChoices):
    USER_REQUESTED = "user_requested", "stopped by its owner"
    TTL_EXPIRED = "ttl_expired", "its time was up"
    IDLE_TIMEOUT = "idle_timeout", "idle for too long"
    PROVIDER_MISSING = "provider_missing", "gone at the provider"
    PROVIDER_TERMINAL = "provider_terminal", "ended by the provider"
    OWNER_DELETED = "owner_deleted", "its owner was deleted"
    BUDGET_REACHED = "budget_reached", "the budget was reached"
    FORGOTTEN = "forgotten", "closed by staff without a stop"
    CREATE_ABANDONED = "create_abandoned", "its creation was never answered"


class EventType(models.TextChoices):
    LEAK = "leak", "a box at the provider that no row claims"
    MALFORMED_ID = "malformed_id", "an id that cannot be asked about"
    UNKNOWN_STATE = "unknown_state", "a state that the product does not know"
    MARKER_MISSING = "marker_missing", "a box of ours under another name"
    STOP_UNDONE = "stop_undone", "a stopped box that came up again"
    CREATE_ABANDONED = "create_abandoned", "a creation that was never answered"


class Resolution(models.TextChoices):
    """How an event was handled."""

    STOPPED = "stopped", "stopped"
    ADOPTED = "adopted", "adopted into a conversation"
    DISMISSED = "dismissed", "dismissed"
    GONE = "gone", "not there any more"


class FanoutState(models.TextChoices):
    ADMITTED = "admitted", "everything admitted"
    QUEUED = "queued", "something is queued"


class ItemState(models.TextChoices):
    ADMITTED = "admitted", "admitted"
    QUEUED = "queued", "queued"
    REFUSED = "refused", "refused"


HOLDS_LABEL = (ItemState.ADMITTED, ItemState.QUEUED)


class QueueReason(models.TextChoices):
    """Why an item of a plan waits, or why it waits no more."""

    CONVERSATION_LIMIT = "conversation_active_limit", "a place in its conversation"
    OWNER_LIMIT = "owner_active_limit", "a place among its owner's boxes"
    GLOBAL_LIMIT = "global_active_limit", "a place in the installation"
    CONVERSATION_BURN_RATE = "conversation_burn_rate_ceiling", "room below its conversation's ceiling"
    OWNER_BURN_RATE = "owner_burn_rate_ceiling", "room below its owner's ceiling"
    OWNER_BUDGET = "owner_budget_reached", "its owner's budget"
    BUDGET = "budget_reached", "the installation's budget"
    PROVIDER_BILLING = "provider_billing_required", "the provider asks for payment"
    PROVIDER_RATE = "provider_rate_limited", "the provider asks for a pause"
    NOT_CONFIGURED = "box_not_configured", "no provider is configured"
    MALFORMED_ID = "box_malformed_id", "an id that cannot be asked about"
    UNAUTHORIZED = "box_unauthorized", "the provider refuses the key"
    NOT_FOUND = "box_not_found", "the provider knows no such box"
    UNREACHABLE = "box_unreachable", "the provider does not answer"
    RESPONSE_INVALID = "box_response_invalid", "the provider's answer is not understood"
    REFUSED = "box_provider_refused", "the provider refused"
    CANCELLED = "cancelled", "its plan was cancelled"
    OWNER_DELETED = "owner_deleted", "its owner was deleted"
