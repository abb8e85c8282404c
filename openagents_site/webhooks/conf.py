"""Settings of outbound webhooks, read at call time from `settings.WEBHOOKS`."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from base.conf import resolve, setting


@dataclass(frozen=True)
class WebhookSettings:
    """The `WEBHOOKS` family."""

    allow_http: bool = setting(
        False, "WEBHOOKS_ALLOW_HTTP", "Whether webhooks may go to http addresses. Only for trying things out."
    )
    allow_private: bool = setting(
        False,
        "WEBHOOKS_ALLOW_PRIVATE",
        "Whether webhooks may go to private, loopback and link-local addresses: owners then reach what this machine reaches.",
    )
    maximum_per_owner: int = setting(
        20, "WEBHOOKS_MAXIMUM_PER_OWNER", "Webhooks of one user.", minimum=0, maximum=10_000
    )
    timeout_ms: int = setting(
        10_000,
        "WEBHOOKS_TIMEOUT_MS",
        "Total time of one delivery, name look-up aside.",
        minimum=100,
        maximum=60_000,
    )
    disable_after_days: int = setting(
        5,
        "WEBHOOKS_DISABLE_AFTER_DAYS",
        "A webhook that has taken nothing for this long, although it was told something, is switched off.",
        minimum=1,
    )


def webhook_settings() -> WebhookSettings:
    """The settings in force now. Raises ImproperlyConfigured for an unknown name or a value out of bounds."""
    return resolve(WebhookSettings, settings.WEBHOOKS)
