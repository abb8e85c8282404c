"""Settings of the box provider and of the ledger's policies, read at call time from `settings.BOX_API`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from base.addresses import is_this_machine
from base.conf import resolve, setting


@dataclass(frozen=True)
class BoxApi:
    """The `BOX_API` family. Money is in micro-US-dollars, sizes in bytes, times as their names say."""

    base_url: str = setting(
        "http://127.0.0.1:4600/api/box/v1",
        "BOX_API_BASE_URL",
        "Base URL of the provider's API, without a final slash. `bin/up` wants it set together with the key, or neither.",
        address=True,
    )
    api_key: str = setting(
        "",
        "BOX_API_KEY",
        "Key of the provider's API. Empty: creating boxes is refused; under `bin/up`, the embedded provider.",
        secret=True,
    )
    dialect: str = setting(
        "box", "BOX_API_DIALECT", "Nouns and paths of the provider's API.", choices=("box", "boat")
    )
    ownership_marker: str = setting(
        "",
        "BOX_OWNERSHIP_MARKER",
        "Name given to every box of ours. Empty: generated once and kept in the database.",
    )
    webhook_secret: str = setting(
        "",
        "BOX_WEBHOOK_SECRET",
        "Secret of the provider's webhooks. Empty: /hooks/box answers 404.",
        secret=True,
    )
    ttl_seconds: int = setting(
        3600, "BOX_TTL_SECONDS", "A box's life from its creation.", minimum=1, maximum=2_592_000
    )
    maximum_lifetime_seconds: int = setting(
        86_400,
        "BOX_MAXIMUM_LIFETIME_SECONDS",
        "How far an owner may extend a box, from its creation.",
        minimum=1,
    )
    idle_timeout_seconds: int = setting(
        1800, "BOX_IDLE_TIMEOUT_SECONDS", "A box without activity for this long is stopped.", minimum=1
    )
    reconciliation_interval_ms: int = setting(
        60_000, "BOX_RECONCILIATION_INTERVAL_MS", "Time between two reconcile passes.", minimum=1000
    )
    reconciliation_receive_timeout_ms: int = setting(
        15_000,
        "BOX_RECONCILIATION_RECEIVE_TIMEOUT_MS",
        "Total time of one provider call of a pass.",
        minimum=100,
    )
    reconcile_evidence: str = setting(
        "get",
        "BOX_RECONCILE_EVIDENCE",
        "get: every due row is confirmed by its own GET; list: rows that a complete listing shows healthy are not.",
        choices=("get", "list"),
    )
    reconcile_concurrency: int = setting(
        32, "BOX_RECONCILE_CONCURRENCY", "Provider calls of one pass at once.", minimum=1, maximum=256
    )
    default_maximum_active_boxes: int = setting(
        2, "BOX_DEFAULT_MAXIMUM_ACTIVE_BOXES", "Active boxes of one conversation.", minimum=0
    )
    maximum_active_boxes: int = setting(
        10,
        "BOX_MAXIMUM_ACTIVE_BOXES",
        "Active boxes of one conversation when the request is budgeted.",
        minimum=0,
    )
    maximum_active_boxes_per_owner: int = setting(
        4, "BOX_MAXIMUM_ACTIVE_BOXES_PER_OWNER", "Active boxes of one user.", minimum=0
    )
    maximum_active_boxes_global: int = setting(
        20, "BOX_MAXIMUM_ACTIVE_BOXES_GLOBAL", "Active boxes of the installation.", minimum=0
    )
    estimated_burn_rate_per_box_hour_microusd: int = setting(
        100_000,
        "BOX_ESTIMATED_BURN_RATE_PER_BOX_HOUR_MICROUSD",
        "What a box is estimated to cost an hour.",
        minimum=0,
    )
    maximum_burn_rate_per_conversation_microusd: int = setting(
        1_000_000,
        "BOX_MAXIMUM_BURN_RATE_PER_CONVERSATION_MICROUSD",
        "Ceiling of a conversation's estimates.",
        minimum=0,
    )
    maximum_burn_rate_per_owner_microusd: int = setting(
        5_000_000, "BOX_MAXIMUM_BURN_RATE_PER_OWNER_MICROUSD", "Ceiling of a user's estimates.", minimum=0
    )
    budget_per_owner_month_microusd: int = setting(
        0,
        "BOX_BUDGET_PER_OWNER_MONTH_MICROUSD",
        "What a user may spend a calendar month (UTC). 0: no ceiling.",
        minimum=0,
    )
    budget_month_microusd: int = setting(
        0,
        "BOX_BUDGET_MONTH_MICROUSD",
        "What the installation may spend a calendar month (UTC). 0: none.",
        minimum=0,
    )
    budget_stops_idle_boxes: bool = setting(
        False, "BOX_BUDGET_STOPS_IDLE_BOXES", "Whether a reached budget also stops the idle boxes it covers."
    )
    delete_after_days: int = setting(
        0,
        "BOX_DELETE_AFTER_DAYS",
        "Archived boxes of ours are deleted at the provider after this. 0: never.",
        minimum=0,
    )
    poll_attempts: int = setting(
        30, "BOX_POLL_ATTEMPTS", "How often a new box is looked at until ready.", minimum=1
    )
    poll_interval_ms: int = setting(1000, "BOX_POLL_INTERVAL_MS", "Time between two such looks.", minimum=0)
    create_timeout_ms: int = setting(
        20_000, "BOX_CREATE_TIMEOUT_MS", "Total time of a create call.", minimum=100
    )
    stop_timeout_ms: int = setting(30_000, "BOX_STOP_TIMEOUT_MS", "Total time of a stop call.", minimum=100)
    interactive_timeout_ms: int = setting(
        5000,
        "BOX_INTERACTIVE_TIMEOUT_MS",
        "Total time of a look that a person waits for; one try.",
        minimum=100,
    )
    retry_delay_ms: int = setting(
        200, "BOX_RETRY_DELAY_MS", "Time between the tries of one GET; doubled at the second.", minimum=0
    )
    setup_script: str = setting(
        "", "BOX_SETUP_SCRIPT", "Shell script that the provider runs in each new box."
    )
    run_max_duration_seconds: int = setting(
        1800, "RUN_MAX_DURATION_SECONDS", "A run's deadline, at most the box's TTL.", minimum=1
    )
    run_poll_interval_ms: int = setting(
        1000, "RUN_POLL_INTERVAL_MS", "The longest time between two looks at a running command.", minimum=1
    )
    run_log_bytes: int = setting(
        256 << 20,
        "RUN_LOG_BYTES",
        "What is kept of one run's redacted log; the rest is dropped and counted.",
        minimum=0,
    )
    run_log_retention_days: int = setting(
        30, "RUN_LOG_RETENTION_DAYS", "How long whole logs of ended runs are kept. 0: for ever.", minimum=0
    )
    secret_values: tuple[str, ...] = setting(
        (), "SECRET_VALUES", "Comma-separated values that are struck out of every output.", secret=True
    )


def box_api() -> BoxApi:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(BoxApi, settings.BOX_API)


def provider_is_here() -> bool:
    """Whether the provider is on this machine: what runs in its boxes comes from a loopback address as well."""
    return is_this_machine(urlsplit(box_api().base_url).hostname or "localhost")
